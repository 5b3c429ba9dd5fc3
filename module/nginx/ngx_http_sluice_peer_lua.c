
/*
 * What the Lua of an access phase asks of destinations and peers.
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_peer.h"


static ngx_int_t ngx_http_sluice_peer_find(ngx_http_request_t *r,
    uint32_t service, uint32_t route_flags);


/*
 * What a plan has of a service; its texts are to be copied at once.  NGX_OK;
 * NGX_DECLINED: there is no such service; NGX_ERROR: no memory.
 */

int
sluice_destination(uint32_t service, sluice_destination_t *destination)
{
    sluice_core_found_t             found;
    ngx_http_sluice_live_t         *live;
    ngx_http_sluice_destination_t  *to;

    if (sluice_images_by_slot(SLUICE_CORE_SERVICE, service, &found)
        != SLUICE_CORE_OK)
    {
        return NGX_DECLINED;
    }

    live = ngx_http_sluice_live();
    to = live ? ngx_http_sluice_destination_of(live, service) : NULL;

    if (to == NULL) {
        return NGX_ERROR;
    }

    destination->path = to->path.data;
    destination->path_length = (uint32_t) to->path.len;
    destination->empty = to->empty.data;
    destination->empty_length = (uint32_t) to->empty.len;
    destination->https = to->https;

    return NGX_OK;
}


/*
 * Takes the turn of the first try.  NGX_OK; NGX_DECLINED: the service is gone,
 * or has no peer; NGX_ERROR: no memory.
 */

int
sluice_peer_begin(ngx_http_request_t *r, uint32_t service,
    uint32_t route_flags)
{
    ngx_int_t  rc;

    rc = ngx_http_sluice_peer_find(r, service, route_flags);

    if (rc != NGX_OK) {
        return (int) rc;
    }

    return (int) ngx_http_sluice_peer_begin(r, ngx_http_sluice_ctx(r));
}


static ngx_int_t
ngx_http_sluice_peer_find(ngx_http_request_t *r, uint32_t service,
    uint32_t route_flags)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->route_flags = route_flags;

    if (ctx->destination && ctx->service == service) {
        return NGX_OK;
    }

    ctx->live = ngx_http_sluice_live();

    if (ctx->live == NULL
        || ngx_http_sluice_live_hold(ctx->live, r->pool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->destination = ngx_http_sluice_destination_of(ctx->live, service);
    ctx->service = service;

    return ctx->destination ? NGX_OK : NGX_DECLINED;
}
