
/*
 * From what plugins have noted (ngx_http_sluice_changed.h) to the service that
 * the request's tries go by.  Services are compiled once and shared, so the
 * request gets a copy of its own.
 *
 * A target is an upstream, or a host: an address, or a name.  A name that the
 * image has, since some service has the host, is known.  All others Lua is
 * asked for, which asks the control worker, and waits.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_changed_service.h"


static ngx_int_t ngx_http_sluice_changed_balancer(ngx_http_request_t *r,
    ngx_http_sluice_changed_t *changed, ngx_http_sluice_service_t *service);


ngx_int_t
ngx_http_sluice_changed_service(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_uint_t                  https;
    ngx_http_sluice_changed_t  *changed;
    ngx_http_sluice_service_t  *service;

    changed = ctx->changed;

    if (changed->target.data == NULL
        && changed->scheme == 0
        && changed->tries == 0
        && changed->connect_ms == 0
        && changed->tls == NULL)
    {
        return NGX_OK;
    }

    service = ngx_palloc(r->pool, sizeof(ngx_http_sluice_service_t));
    if (service == NULL) {
        return NGX_ERROR;
    }

    *service = *ctx->service;

    if (changed->tries) {
        service->tries = ngx_min(changed->tries, NGX_HTTP_SLUICE_TRIES);
    }

    if (changed->connect_ms) {
        service->connect_ms = changed->connect_ms;
        service->send_ms = changed->send_ms;
        service->read_ms = changed->read_ms;
    }

    https = service->https;

    if (changed->scheme) {
        https = changed->scheme == NGX_HTTP_SLUICE_CHANGED_HTTPS;
    }

    if (changed->target.data || https != service->https) {
        service->https = https;

        rc = ngx_http_sluice_changed_balancer(r, changed, service);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (changed->tls && https
        && ngx_http_sluice_changed_tls(r, changed->tls, &service->tls)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->service = service;

    return NGX_OK;
}


/* Of an upstream without targets the balancer is one without peers: 503. */

static ngx_int_t
ngx_http_sluice_changed_balancer(ngx_http_request_t *r,
    ngx_http_sluice_changed_t *changed, ngx_http_sluice_service_t *service)
{
    in_port_t                    port;
    ngx_str_t                   *host;
    ngx_http_sluice_balancer_t  *balancer;

    host = changed->target.data ? &changed->target : &service->host;
    port = changed->target.data ? changed->port : service->port;

    if (changed->addresses) {
        balancer = ngx_http_sluice_balancer_of(changed->addresses, port,
                                               service->https, r->pool);

    } else if (sluice_images_refresh() == NGX_OK) {
        balancer = ngx_http_sluice_balancer(host, port, service->https,
                                            r->pool);

        if (balancer && balancer->count == 0 && !balancer->upstream
            && changed->target.data)
        {
            return NGX_AGAIN;
        }

    } else {
        return NGX_ERROR;
    }

    if (balancer == NULL) {
        return NGX_ERROR;
    }

    service->balancer = balancer;

    return NGX_OK;
}


int
sluice_changed_upstream(ngx_http_request_t *r, const char *name, size_t length)
{
    sluice_core_found_t  found;

    if (sluice_images_refresh() != NGX_OK) {
        return NGX_DECLINED;
    }

    found = sluice_core_by_key(sluice_images_view(), SLUICE_CORE_UPSTREAM,
                               name, (uint32_t) length);

    if (found.record == NULL) {
        return NGX_DECLINED;
    }

    return sluice_changed_target(r, name, length, 0);
}
