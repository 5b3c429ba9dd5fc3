
/*
 * How long the body is that the upstream is told of
 * (ngx_http_sluice_framing.c).
 */


#ifndef NGX_HTTP_SLUICE_FRAMING_H_INCLUDED
#define NGX_HTTP_SLUICE_FRAMING_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/* Before any plugin in Lua has run; again it does nothing. */
void ngx_http_sluice_framing_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* Behind all of them. */
void ngx_http_sluice_framing_end(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


#endif /* NGX_HTTP_SLUICE_FRAMING_H_INCLUDED */
