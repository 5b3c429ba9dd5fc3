
/*
 * Headers of requests and responses: what the files that change them share.
 */


#ifndef NGX_HTTP_SLUICE_HEADER_H_INCLUDED
#define NGX_HTTP_SLUICE_HEADER_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "header_name.h"


/* FFI */

int sluice_header_of_request(ngx_http_request_t *r, sluice_header_t *header,
    sluice_header_value_t *first);
int sluice_header_first(ngx_http_request_t *r, const u_char *name,
    size_t length, sluice_header_value_t *first);
int sluice_header_to_request(ngx_http_request_t *r, sluice_header_t *header,
    const u_char *value, size_t length);
int sluice_header_to_response(ngx_http_request_t *r, sluice_header_t *header,
    const u_char *value, size_t length);
int sluice_header_number_to_response(ngx_http_request_t *r,
    sluice_header_t *header, int64_t value);

/* FFI end */


typedef sluice_header_line_t  ngx_http_sluice_header_line_t;


/* whether a line is to go */

typedef ngx_uint_t (*ngx_http_sluice_header_test_pt)(ngx_table_elt_t *h,
    void *data);


/* Eight bytes, those of capitals as small letters. */

static ngx_inline uint64_t
ngx_http_sluice_header_small(const u_char *p)
{
    uint64_t  word, low, is_capital;

    ngx_memcpy(&word, p, sizeof(word));

    /* a top bit where a byte is 'A' or above, and not above 'Z', and ASCII */

    low = word & 0x7f7f7f7f7f7f7f7full;
    is_capital = (low + 0x3f3f3f3f3f3f3f3full) & ~(low + 0x2525252525252525ull)
                 & ~word & 0x8080808080808080ull;

    return word | is_capital >> 2;
}


/* In any case; the name is in lower case. */

static ngx_inline ngx_uint_t
ngx_http_sluice_header_named(ngx_table_elt_t *h, const void *name,
    size_t length)
{
    size_t    i;
    uint64_t  word;

    if (h->key.len != length) {
        return 0;
    }

    if (length < sizeof(word)) {

        for (i = 0; i < length; i++) {

            if (ngx_tolower(h->key.data[i]) != ((u_char *) name)[i]) {
                return 0;
            }
        }

        return 1;
    }

    /* the last eight again with those before */

    for (i = 0; i < length; i += sizeof(word)) {

        if (i > length - sizeof(word)) {
            i = length - sizeof(word);
        }

        ngx_memcpy(&word, (u_char *) name + i, sizeof(word));

        if (ngx_http_sluice_header_small(h->key.data + i) != word) {
            return 0;
        }
    }

    return 1;
}


/* ngx_http_sluice_header.c */

/*
 * Called where the response gets headers that replace the upstream's: these
 * lines of it are not passed on.  NULL: nothing stands between.  NGX_ERROR: no
 * memory.
 */
extern ngx_int_t  (*ngx_http_sluice_header_own)(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n);

/*
 * Sets headers of the response, each with another name, in place of all that
 * were set under these names and of the upstream's.  Names and values are not
 * copied: they live as long as the request.  Not for those that nginx keeps in
 * places of their own (Location, Server).  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_header_set_response(ngx_http_request_t *r,
    ngx_http_sluice_header_line_t *lines, ngx_uint_t n);

/* A test for lists: whether a line has the name of a sluice_header_t. */
ngx_uint_t ngx_http_sluice_header_is(ngx_table_elt_t *h, void *data);

/*
 * Adds a line to a list of the request's, whatever is there; the same of name
 * and value.
 */
ngx_int_t ngx_http_sluice_header_add(ngx_http_request_t *r, ngx_list_t *list,
    sluice_header_t *header, u_char *value, size_t length);

/* ngx_http_sluice_header_list.c */

/*
 * Over each line of a list; h is the line, walk a variable for it.  These are
 * two loops: it is left by "return", a "break" leaves a part of the list.
 */

#define ngx_http_sluice_header_each(h, walk, list)                            \
    for ((walk).part = &(list)->part; (walk).part;                            \
         (walk).part = (walk).part->next)                                     \
        for (h = (walk).part->elts, (walk).last = h + (walk).part->nelts;     \
             h < (walk).last;                                                 \
             h++)

typedef struct {
    ngx_list_part_t  *part;
    ngx_table_elt_t  *last;
} ngx_http_sluice_header_walk_t;

/*
 * A new line at the end, zeroed; NULL: no memory.  All lines are added by
 * this, to requests as to responses: nginx makes no list of headers for
 * HTTP/0.9, nor for a request line that it has refused, and ngx_list_push()
 * takes one for granted.  Here such a request gets its list.
 */
ngx_table_elt_t *ngx_http_sluice_header_list_push(ngx_list_t *list,
    ngx_pool_t *pool);
ngx_table_elt_t *ngx_http_sluice_header_find(ngx_list_t *list,
    u_char *lowcase, size_t length, ngx_uint_t *count);
/* Takes out the lines that a test finds; NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_header_list_drop(ngx_list_t *list, ngx_pool_t *pool,
    ngx_http_sluice_header_test_pt test, void *data);

/* ngx_http_sluice_header_clear.c */

/*
 * Takes all lines of a name, or all that a test finds, out of the request, and
 * out of what nginx has noted of it.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_header_clear(ngx_http_request_t *r,
    sluice_header_t *header);
ngx_int_t ngx_http_sluice_header_clear_all(ngx_http_request_t *r,
    ngx_http_sluice_header_test_pt test, void *data);

#endif /* NGX_HTTP_SLUICE_HEADER_H_INCLUDED */
