
/*
 * Lines of a list of headers, added, found by their name or taken out for
 * good: nginx passes on each line that is in the list.
 */


#include "ngx_http_sluice_header.h"


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
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *elt, *first;

    first = NULL;
    *count = 0;

    for (part = &list->part; part; part = part->next) {

        elt = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (elt[i].key.len != length
                || ngx_strncasecmp(elt[i].key.data, lowcase, length) != 0)
            {
                continue;
            }

            if (first == NULL) {
                first = &elt[i];
            }

            (*count)++;
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
    ngx_list_part_t   part, *last;
    ngx_table_elt_t  *h;

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

                if (last == NULL) {
                    last = &list->part;

                } else {
                    last->next = ngx_palloc(pool, sizeof(ngx_list_part_t));
                    if (last->next == NULL) {
                        return NGX_ERROR;
                    }

                    last = last->next;
                }

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
