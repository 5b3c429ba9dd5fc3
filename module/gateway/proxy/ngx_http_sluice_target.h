
/*
 * What the upstream is asked, and what it is told of the way there
 * (ngx_http_sluice_target.c).
 */


#ifndef NGX_HTTP_SLUICE_TARGET_H_INCLUDED
#define NGX_HTTP_SLUICE_TARGET_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/*
 * Sets those of $sluice_upstream, $sluice_uri, $sluice_request_path,
 * $sluice_prefix, $sluice_proxy_ms that differ from what they begin with.
 * The context has a destination.  NGX_OK, or the status to refuse with: 400,
 * the path leads out of the service's; 500, no memory.
 */
ngx_int_t ngx_http_sluice_target_set(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


#endif /* NGX_HTTP_SLUICE_TARGET_H_INCLUDED */
