
/*
 * Lines of a list of headers, added, found by their name or taken out for
 * good: nginx passes on each line that is in the list.
 */


#include "ngx_http_sluice_header.h"


static ngx_uint_t ngx_http_sluice_header_list_has(ngx_list_t *list,
    ngx_http_sluice_header_test_pt test, void *data);


ngx_table_elt_t *
ngx_http_sluice_header_list_push(ngx_list_t *list, ngx_pool_t *pool)
{
    ngx_table_elt_t  *elt;

    if (list->last == NULL
        && ngx_list_init(list, pool, 8, sizeof(ngx_table_elt_t)) != NGX_OK)
    {
        return NULL;
    }

    elt = ngx_list_push(list);

    if (elt) {
        /* later versions of nginx have more fields */
        ngx_memzero(elt, sizeof(ngx_table_elt_t));
    }

    return elt;
}


/* the first line of a name, and how many there are */

ngx_table_elt_t *
ngx_http_sluice_header_find(ngx_list_t *list, u_char *lowcase, size_t length,
    ngx_uint_t *count)
{
    ngx_table_elt_t               *elt, *first;
    ngx_http_sluice_header_walk_t  walk;

    first = NULL;
    *count = 0;

    ngx_http_sluice_header_each(elt, walk, list) {

        if (ngx_http_sluice_header_named(elt, lowcase, length)
            && (*count)++ == 0)
        {
            first = elt;
        }
    }

    return first;
}


/*
 * The lines that stay do not move, since nginx keeps pointers to them: each
 * run of them becomes a part of the list.  NGX_ERROR: no memory, and the list
 * has lost its end.
 */

ngx_int_t
ngx_http_sluice_header_list_drop(ngx_list_t *list, ngx_pool_t *pool,
    ngx_http_sluice_header_test_pt test, void *data)
{
    ngx_uint_t        i, start;
    ngx_list_part_t   part, *last, *next;
    ngx_table_elt_t  *h;

    if (!ngx_http_sluice_header_list_has(list, test, data)) {
        return NGX_OK;
    }

    part = list->part;
    last = NULL;

    for ( ;; ) {

        h = part.elts;
        start = 0;

        for (i = 0; i <= part.nelts; i++) {

            if (i < part.nelts && !test(&h[i], data)) {
                continue;
            }

            if (i > start) {

                next = last ? ngx_palloc(pool, sizeof(ngx_list_part_t))
                            : &list->part;
                if (next == NULL) {
                    return NGX_ERROR;
                }

                if (last) {
                    last->next = next;
                }

                last = next;
                last->elts = &h[start];
                last->nelts = i - start;
                last->next = NULL;
            }

            start = i + 1;
        }

        if (part.next == NULL) {
            break;
        }

        part = *part.next;
    }

    if (last == NULL) {
        return ngx_list_init(list, pool, 4, sizeof(ngx_table_elt_t));
    }

    /* full: what is behind these lines may be one that went */

    list->last = last;
    list->nalloc = last->nelts;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_header_list_has(ngx_list_t *list,
    ngx_http_sluice_header_test_pt test, void *data)
{
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    ngx_http_sluice_header_each(h, walk, list) {

        if (test(h, data)) {
            return 1;
        }
    }

    return 0;
}
