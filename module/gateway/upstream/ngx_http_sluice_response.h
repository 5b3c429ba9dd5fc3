
/*
 * What the files that read an upstream's response share.
 */


#ifndef NGX_HTTP_SLUICE_RESPONSE_H_INCLUDED
#define NGX_HTTP_SLUICE_RESPONSE_H_INCLUDED


#include "ngx_http_sluice_header.h"


/* what a request's response says by headers of the gateway's own */

typedef struct {
    ngx_array_t  headers;       /* of sluice_header_t * */
    uint64_t     hashes;        /* a bit for each: most lines have none */
} ngx_http_sluice_response_own_t;


#define ngx_http_sluice_response_own_bit(hash)                                \
    ((uint64_t) 1 << ((hash) & 63))


typedef ngx_int_t (*ngx_http_sluice_response_step_pt)(ngx_http_request_t *r);


/* of a request to an upstream */

typedef struct {
    ngx_http_sluice_response_step_pt  process_header;  /* nginx's next one */
    ngx_http_sluice_response_step_pt  reinit_request;
    ngx_uint_t                        interim;         /* of this try */
    size_t                            interim_size;    /* bytes of all tries */
} ngx_http_sluice_response_t;


/* ngx_http_sluice_response.c */

/* What ngx_http_sluice_header_own is (ngx_http_sluice_header.h). */
ngx_int_t ngx_http_sluice_response_add_own(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n);

/*
 * Has nginx read the heads of a request's responses by our functions, which
 * find response in the data of its peer.
 */
void ngx_http_sluice_response_begin(ngx_http_sluice_response_t *response,
    ngx_http_upstream_t *u);

/* ngx_http_sluice_response_lines.c */

/*
 * Drops the lines that are not the client's.  NGX_OK, NGX_ERROR: no memory;
 * NGX_HTTP_UPSTREAM_INVALID_HEADER: its Connection has too many names.
 * own may be NULL.
 */
ngx_int_t ngx_http_sluice_response_drop_lines(ngx_http_request_t *r,
    ngx_http_sluice_response_own_t *own);

/*
 * Drops those that nginx would not copy to a final response: which it hides,
 * which it writes itself, and names that it takes for none; and those with
 * which a client may refuse all of a stream.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_response_drop_nginx(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_RESPONSE_H_INCLUDED */
