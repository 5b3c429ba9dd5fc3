
/*
 * The access phase of a request with plugins in Lua, as Lua calls it
 * (gateway/proxy/phases.lua).  In all of them NGX_DECLINED says that Lua is to
 * refuse the request; the texts of a refusal are good as long as the request.
 */


#include "ngx_http_sluice_access.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_framing.h"
#include "ngx_http_sluice_route.h"


/*
 * Bits: of a request that is routed; that has late phases in Lua.  To be
 * called before any plugin in Lua runs.
 */

int
sluice_access_look(ngx_http_request_t *r)
{
    int                     bits;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->chain == NULL) {
        return 0;
    }

    ngx_http_sluice_framing_begin(r, ctx);

    bits = ctx->routed ? NGX_HTTP_SLUICE_ACCESS_ROUTED : 0;

    if (ngx_http_sluice_chain_level(ctx->chain)) {
        bits |= NGX_HTTP_SLUICE_ACCESS_LATE;
    }

    return bits;
}


/* Routes what plugins have made of the request; NGX_AGAIN: in another turn. */

int
sluice_access_route(ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal)
{
    return (int) ngx_http_sluice_route(r, ngx_http_sluice_ctx(r), refusal);
}


/* ms, before it is routed again. */

uint32_t
sluice_access_wait(ngx_http_request_t *r)
{
    return (uint32_t) ngx_http_sluice_ctx(r)->wait;
}


int
sluice_access_enter(ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal)
{
    return (int) ngx_http_sluice_access_enter(r, ngx_http_sluice_ctx(r),
                                              refusal);
}


int
sluice_access_leave(ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal)
{
    return (int) ngx_http_sluice_access_leave(r, ngx_http_sluice_ctx(r),
                                              refusal);
}
