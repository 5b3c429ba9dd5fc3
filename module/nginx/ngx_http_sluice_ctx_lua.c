
/*
 * What Lua reads and keeps of a request's context.
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_sluice_abi.h"


/* Where Lua keeps what is the request's; 0: nowhere. */

int
sluice_ctx_lua(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    return ctx ? ctx->lua : 0;
}


/* NGX_ERROR: no memory. */

int
sluice_ctx_set_lua(ngx_http_request_t *r, int place)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->lua = place;

    return NGX_OK;
}
