
/*
 * Headers of requests and responses: what the files that change them share.
 */


#ifndef NGX_HTTP_SLUICE_HEADER_H_INCLUDED
#define NGX_HTTP_SLUICE_HEADER_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* static, or made by Lua (lib/sluice/header.lua), which never frees it */

typedef struct {
    u_char    *name;
    u_char    *lowcase;
    size_t     length;
    uint64_t   hash;            /* ngx_hash_key() of lowcase */
    uint32_t   own;             /* replaces the upstream's */
} sluice_header_t;


/* a header with what it is to say */

typedef struct {
    sluice_header_t  *header;
    ngx_str_t         value;
} ngx_http_sluice_header_line_t;


/* what a request's response says by headers of the gateway's own */

typedef struct {
    ngx_array_t  headers;       /* of sluice_header_t * */
    uint64_t     hashes;        /* a bit for each: most lines have none */
} ngx_http_sluice_response_own_t;


/* whether a line is to go */

typedef ngx_uint_t (*ngx_http_sluice_header_test_pt)(ngx_table_elt_t *h,
    void *data);


#define ngx_http_sluice_response_own_bit(hash)                                \
    ((uint64_t) 1 << ((hash) & 63))


/* ngx_http_sluice_header.c */

/*
 * Sets headers of the response, each with another name, in place of all that
 * were set under these names and of the upstream's.  Names and values are not
 * copied: they live as long as the request.  Not for those that nginx keeps in
 * places of their own (Location, Server).  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_header_set_response(ngx_http_request_t *r,
    ngx_http_sluice_header_line_t *lines, ngx_uint_t n);

/*
 * Adds a line to a list of the request's, whatever is there; the same of name
 * and value.
 */
ngx_int_t ngx_http_sluice_header_add(ngx_http_request_t *r, ngx_list_t *list,
    sluice_header_t *header, u_char *value, size_t length);

/* ngx_http_sluice_header_list.c */

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
ngx_int_t ngx_http_sluice_header_list_drop(ngx_list_t *list, ngx_pool_t *pool,
    ngx_http_sluice_header_test_pt test, void *data);

/* ngx_http_sluice_header_clear.c */

/*
 * Takes all lines of a name, or all that a test finds, out of the request, and
 * out of what nginx has noted of it.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_header_clear(ngx_http_request_t *r, u_char *lowcase,
    size_t length);
ngx_int_t ngx_http_sluice_header_clear_all(ngx_http_request_t *r,
    ngx_http_sluice_header_test_pt test, void *data);

/* ngx_http_sluice_response.c */

/* The upstream's lines of these names are not passed on. */
ngx_int_t ngx_http_sluice_response_add_own(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n);

/* ngx_http_sluice_response_lines.c */

ngx_int_t ngx_http_sluice_response_drop_lines(ngx_http_request_t *r,
    ngx_http_sluice_response_own_t *own);


#endif /* NGX_HTTP_SLUICE_HEADER_H_INCLUDED */
