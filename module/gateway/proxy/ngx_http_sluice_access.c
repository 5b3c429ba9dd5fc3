
/*
 * The access phase, for a request whose plugins need no Lua in it.
 *
 * Where Lua runs there (sluice_location lua), it calls the same functions.
 */


#include "ngx_http_sluice_access.h"
#include "ngx_http_sluice_buffered.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_changed_service.h"
#include "ngx_http_sluice_framing.h"
#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_turn.h"
#include "ngx_http_sluice_upgrade.h"
#include "ngx_http_sluice_upstream_uri.h"


static ngx_int_t ngx_http_sluice_access_ask(ngx_http_request_t *r,
    sluice_refusal_route_t *facts, u_char *address);
static ngx_int_t ngx_http_sluice_access_address(ngx_connection_t *c,
    u_char *address, ngx_str_t *host);


ngx_int_t
ngx_http_sluice_access_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_sluice_ctx_t      *ctx;
    ngx_http_sluice_refusal_t   refusal;

    if (ngx_http_sluice_location_kind(r) != NGX_HTTP_SLUICE_LOCATION_NATIVE) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* a plugin has sent it back to the beginning */

    if (r->internal) {

        rc = ngx_http_sluice_route(r, ctx, &refusal);

        if (rc == NGX_AGAIN) {
            return ngx_http_sluice_turn(r, ctx);
        }

        if (rc != NGX_OK) {
            return ngx_http_sluice_refusal_send(r, &refusal);
        }

        if (ngx_http_sluice_location_kind(r)
            != NGX_HTTP_SLUICE_LOCATION_NATIVE)
        {
            return NGX_DECLINED;
        }
    }

    if (ngx_http_sluice_access_enter(r, ctx, &refusal) != NGX_OK) {
        return ngx_http_sluice_refusal_send(r, &refusal);
    }

    rc = ngx_http_sluice_chain_access(r, ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_sluice_access_leave(r, ctx, &refusal) != NGX_OK) {
        return ngx_http_sluice_refusal_send(r, &refusal);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_access_enter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    u_char                  address[NGX_SOCKADDR_STRLEN + 2];
    ngx_str_t               protocols;
    sluice_refusal_t        said;
    sluice_refusal_route_t  facts;

    facts.route = ctx->route;
    facts.flags = ctx->route_flags;

    if (sluice_refusal_needs_scheme(facts.flags)
        && ngx_http_sluice_access_ask(r, &facts, address) != NGX_OK)
    {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    if (!sluice_refusal_of_route(&facts, &said)) {
        return NGX_OK;
    }

    if (said.upgrade.data) {
        protocols.data = (u_char *) said.upgrade.data;
        protocols.len = said.upgrade.length;

        if (ngx_http_sluice_upgrade_require(r, &protocols) != NGX_OK) {
            return ngx_http_sluice_refusal(refusal,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR);
        }
    }

    return ngx_http_sluice_refusal_set(r, refusal, &said);
}


/* What the client has asked for, as far as it is believed. */

static ngx_int_t
ngx_http_sluice_access_ask(ngx_http_request_t *r,
    sluice_refusal_route_t *facts, u_char *address)
{
    ngx_str_t                       scheme, host;
    ngx_http_sluice_access_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, access);

    if (conf->scheme == NULL
        || conf->host == NULL
        || ngx_http_complex_value(r, conf->scheme, &scheme) != NGX_OK)
    {
        return NGX_ERROR;
    }

    facts->is_https = scheme.len == 5
                      && ngx_strncmp(scheme.data, "https", 5) == 0;

    if (facts->is_https) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, conf->host, &host) != NGX_OK) {
        return NGX_ERROR;
    }

    if (host.len == 0
        && ngx_http_sluice_access_address(r->connection, address, &host)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    facts->is_http2 = r->http_version >= NGX_HTTP_VERSION_20;
    facts->host.data = (const char *) host.data;
    facts->host.length = (uint32_t) host.len;
    facts->target.data = (const char *) r->unparsed_uri.data;
    facts->target.length = (uint32_t) r->unparsed_uri.len;

    return NGX_OK;
}


/* the host of a request that names none: the address that it came to */

static ngx_int_t
ngx_http_sluice_access_address(ngx_connection_t *c, u_char *address,
    ngx_str_t *host)
{
    host->data = address + 1;
    host->len = NGX_SOCKADDR_STRLEN;

    if (ngx_connection_local_sockaddr(c, host, 0) != NGX_OK) {
        return NGX_ERROR;
    }

#if (NGX_HAVE_INET6)

    if (c->local_sockaddr->sa_family == AF_INET6) {
        address[0] = '[';
        address[host->len + 1] = ']';

        host->data = address;
        host->len += 2;
    }

#endif

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_access_leave(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    ngx_int_t                   rc;
    sluice_refusal_t            said;
    sluice_refusal_service_t    facts;
    ngx_http_sluice_service_t  *service;

    ngx_http_sluice_framing_end(r, ctx);

    if (ctx->changed && ctx->service) {
        rc = ngx_http_sluice_changed_service(r, ctx);

        if (rc != NGX_OK) {
            (void) ngx_http_sluice_refusal(refusal,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR);
            return rc == NGX_AGAIN ? NGX_AGAIN : NGX_DECLINED;
        }
    }

    service = ctx->service;
    facts.service = SLUICE_CORE_NOBODY;

    if (service) {
        facts.service = ctx->service_slot;
        facts.unusable = service->unusable;
        facts.is_upstream = service->balancer->upstream;
        facts.targets = (uint32_t) service->balancer->count;
        facts.no_turn = 0;
    }

    if (sluice_refusal_of_service(&facts, &said)) {

        if (service && !facts.unusable) {
            ngx_http_sluice_balancer_want(service->balancer);
        }

        return ngx_http_sluice_refusal_set(r, refusal, &said);
    }

    rc = ngx_http_sluice_upstream_uri_set(r, ctx);

    if (rc != NGX_OK) {
        return ngx_http_sluice_refusal(refusal, rc);
    }

    if (ngx_http_sluice_peer_begin(r, ctx) != NGX_OK) {
        facts.no_turn = 1;
        (void) sluice_refusal_of_service(&facts, &said);

        return ngx_http_sluice_refusal_set(r, refusal, &said);
    }

    if (((ctx->chain && (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_RESPONSE))
         || ctx->buffered)
        && !ngx_http_sluice_upgrade_asked(r)
        && ngx_http_sluice_buffered_want(r, ctx,
               ctx->chain ? ngx_http_sluice_chain_level(ctx->chain) : 0)
           != NGX_OK)
    {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    r->request_body_no_buffering =
        (ctx->route_flags & SLUICE_ROUTE_STREAM_REQUEST) != 0;

    return NGX_OK;
}
