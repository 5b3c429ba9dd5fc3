
/*
 * The head of what a try sends to its upstream (ngx_http_sluice_head.c).
 */


#ifndef NGX_HTTP_SLUICE_HEAD_H_INCLUDED
#define NGX_HTTP_SLUICE_HEAD_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Replaces the head that nginx has made, of which frame is kept: the lines
 * that frame the body, and the empty one.  To be called for the first try, and
 * again when variables have changed.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_head_write(ngx_http_request_t *r,
    const ngx_str_t *frame);

/* That of the head that nginx's proxy module has just made. */
void ngx_http_sluice_head_frame(ngx_http_request_t *r, ngx_str_t *frame);


#endif /* NGX_HTTP_SLUICE_HEAD_H_INCLUDED */
