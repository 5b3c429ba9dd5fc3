
/*
 * Bodies of requests that were read into memory.
 */


#ifndef NGX_HTTP_SLUICE_BODY_H_INCLUDED
#define NGX_HTTP_SLUICE_BODY_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


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


#endif /* NGX_HTTP_SLUICE_BODY_H_INCLUDED */
