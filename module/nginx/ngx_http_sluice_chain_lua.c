
/*
 * The chain of a request that Lua has routed.
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_live.h"


/*
 * Gives the request the chain of what it matches; match NULL: of no route.
 * Returns the level of its late phases, and bits: NGX_HTTP_SLUICE_CHAIN_HAS:
 * it has plugins, _REWRITES: some in the rewrite phase; or NGX_ERROR: no
 * memory.
 */

int
sluice_chain_begin(ngx_http_request_t *r, const sluice_images_match_t *match)
{
    int                      bits;
    ngx_http_sluice_ctx_t   *ctx;
    ngx_http_sluice_live_t  *live;

    ctx = ngx_http_sluice_ctx_make(r);
    live = ngx_http_sluice_live();

    if (ctx == NULL || live == NULL) {
        return NGX_ERROR;
    }

    if (ctx->live != live
        && ngx_http_sluice_live_hold(live, r->pool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->live = live;
    ctx->route = match ? match->slot : SLUICE_CORE_NOBODY;
    ctx->service = match ? match->service : SLUICE_CORE_NOBODY;
    ctx->consumer_chain = NULL;
    ctx->step = 0;
    ctx->chain = ngx_http_sluice_chain(live, ctx->route,
                                       match ? match->revision : 0,
                                       ctx->service);
    if (ctx->chain == NULL) {
        return NGX_ERROR;
    }

    bits = (int) ngx_http_sluice_chain_level(ctx->chain);

    if (ctx->chain->nelts || ctx->chain->failure.len) {
        bits |= NGX_HTTP_SLUICE_CHAIN_HAS;
    }

    if (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_REWRITE) {
        bits |= NGX_HTTP_SLUICE_CHAIN_REWRITES;
    }

    return bits;
}
