
/*
 * The access phase: from the matched route to nginx's proxy
 * (ngx_http_sluice_access.c).
 */


#ifndef NGX_HTTP_SLUICE_ACCESS_H_INCLUDED
#define NGX_HTTP_SLUICE_ACCESS_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_refuse.h"


/* What sluice_access_look() says. */

#define NGX_HTTP_SLUICE_ACCESS_ROUTED  0x01
#define NGX_HTTP_SLUICE_ACCESS_LATE    0x02


/* Both: NGX_OK; NGX_DECLINED: refuse the request.  They do not yield. */

/* Before the plugins: is there a route, and may it be asked like this? */
ngx_int_t ngx_http_sluice_access_enter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);

/* Behind them: says what the upstream is asked, and which peer. */
ngx_int_t ngx_http_sluice_access_leave(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);


#endif /* NGX_HTTP_SLUICE_ACCESS_H_INCLUDED */
