
/*
 * A request that lets others have their turn of the event loop
 * (ngx_http_sluice_turn.c).
 */


#ifndef NGX_HTTP_SLUICE_TURN_H_INCLUDED
#define NGX_HTTP_SLUICE_TURN_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/*
 * NGX_DONE, for a handler of the rewrite or access phase to return: it is
 * called again after ctx->wait ms, unless the request is gone by then.  Else a
 * status: there is no memory.
 */
ngx_int_t ngx_http_sluice_turn(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* Where something else has called it before that. */
void ngx_http_sluice_turn_end(ngx_http_sluice_ctx_t *ctx);


#endif /* NGX_HTTP_SLUICE_TURN_H_INCLUDED */
