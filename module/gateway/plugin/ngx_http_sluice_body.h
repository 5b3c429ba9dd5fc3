
/*
 * Bodies of requests that were read into memory.
 */


#ifndef NGX_HTTP_SLUICE_BODY_H_INCLUDED
#define NGX_HTTP_SLUICE_BODY_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "decision.h"


/* FFI */

/*
 * The file that the body was read into, being larger than
 * client_body_buffer_size, and its size; -1: it is in none.
 */
int sluice_body_file(ngx_http_request_t *r, int64_t *size);

/* FFI end */


/*
 * The body, of length 0 where there is none or it was thrown away.  It is in
 * nginx's buffer, or a copy in the request's pool where it came in several.
 *
 * NGX_OK; NGX_AGAIN: it has to be read first; NGX_DECLINED: it is in a file,
 * being larger than client_body_buffer_size; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_body(ngx_http_request_t *r, ngx_str_t *body);

/*
 * Puts another in the place of one that was read; Content-Length follows.  The
 * body, which is in the request's pool, is not copied.  NGX_OK, NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_http_sluice_body_replace(ngx_http_request_t *r, ngx_str_t *body);

/* ngx_http_sluice_body_bound.c */

/*
 * Bounds the body, whoever reads it from now on: a longer one ends as the
 * bound says, and the connection with it.  NGX_OK; NGX_DECLINED: it was read,
 * and is longer; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_body_set_bound(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_decision_bound_t *bound);

/* When the configuration has been read: nginx asks of each piece. */
void ngx_http_sluice_body_bound_init(void);


#endif /* NGX_HTTP_SLUICE_BODY_H_INCLUDED */
