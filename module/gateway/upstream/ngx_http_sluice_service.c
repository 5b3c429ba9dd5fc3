
/*
 * Compiles a service of the image (ngx_http_sluice_service.h).
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_service.h"


#define NGX_HTTP_SLUICE_SERVICE_MS  60000  /* what nginx has by default */


static ngx_http_sluice_service_t *ngx_http_sluice_service_compile(
    ngx_pool_t *pool, sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_service_path(ngx_pool_t *pool,
    sluice_core_found_t *found, ngx_str_t *path);
static uint32_t ngx_http_sluice_service_ms(sluice_core_found_t *found,
    int field);


ngx_http_sluice_service_t *
ngx_http_sluice_service_of(ngx_http_sluice_compiled_t *compiled, uint32_t slot)
{
    const uint32_t             *slots;
    sluice_core_found_t         found;
    ngx_http_sluice_service_t  *service;

    service = ngx_http_sluice_compiled_get(compiled,
                                           NGX_HTTP_SLUICE_COMPILED_SERVICES,
                                           slot);

    if (service || sluice_images_view() == NULL) {
        return service;
    }

    found = sluice_core_by_slot(sluice_images_view(), SLUICE_CORE_SERVICE,
                                slot);
    if (found.record == NULL) {
        return NULL;
    }

    service = ngx_http_sluice_service_compile(compiled->pool, &found);
    if (service == NULL) {
        return NULL;
    }

    service->plugins = sluice_core_children(sluice_images_view(),
                                            SLUICE_CORE_PLUGIN,
                                            SLUICE_CORE_SERVICE, slot,
                                            &slots) != 0;

    if (ngx_http_sluice_compiled_put(compiled,
                                     NGX_HTTP_SLUICE_COMPILED_SERVICES, slot,
                                     service)
        != NGX_OK)
    {
        return NULL;
    }

    /* a new pool holds those balancers only that are asked for */

    if (ngx_http_sluice_balancer_is_full()) {
        compiled->full = 1;
    }

    return service;
}


static ngx_http_sluice_service_t *
ngx_http_sluice_service_compile(ngx_pool_t *pool, sluice_core_found_t *found)
{
    uint32_t                    port;
    ngx_int_t                   rc;
    ngx_str_t                   host;
    sluice_core_text_t          text;
    sluice_core_entity_t        head;
    ngx_http_sluice_service_t  *to;

    to = ngx_pcalloc(pool, sizeof(ngx_http_sluice_service_t));

    if (to == NULL
        || ngx_http_sluice_names_read(pool, found, SLUICE_CORE_SERVICE_NAME,
                                      &to->named)
           != NGX_OK
        || ngx_http_sluice_service_path(pool, found, &to->path)
           != NGX_OK)
    {
        return NULL;
    }

    /* port in the upper half, retries in the lower */

    port = sluice_core_number(found, SLUICE_CORE_SERVICE_PORT);
    text = sluice_core_text(found, SLUICE_CORE_SERVICE_HOST);
    host.data = (u_char *) text.data;
    host.len = text.length;

    if (ngx_http_sluice_names_copy(pool, &to->host, &host) != NGX_OK) {
        return NULL;
    }

    if (to->named.name.len == 0) {
        to->named.host = to->host;
    }

    sluice_core_head(found, &head);

    to->generation = head.generation;
    to->port = (in_port_t) (port >> 16);
    to->tries = ngx_min((port & 0xffff) + 1, NGX_HTTP_SLUICE_TRIES);
    to->https = (sluice_core_number(found, SLUICE_CORE_SERVICE_FLAGS)
                 & SLUICE_SERVICE_HTTPS) != 0;

    to->connect_ms = ngx_http_sluice_service_ms(found,
                                               SLUICE_CORE_SERVICE_CONNECT_MS);
    to->send_ms = ngx_http_sluice_service_ms(found,
                                             SLUICE_CORE_SERVICE_WRITE_MS);
    to->read_ms = ngx_http_sluice_service_ms(found,
                                             SLUICE_CORE_SERVICE_READ_MS);

    to->balancer = ngx_http_sluice_balancer(&host, to->port, to->https, pool);

    if (to->balancer == NULL) {
        return NULL;
    }

    rc = ngx_http_sluice_upstream_tls_read(pool, found, &to->tls);

    if (rc == NGX_ERROR) {
        return NULL;
    }

    to->unusable = (rc == NGX_DECLINED);

    return to;
}


static ngx_int_t
ngx_http_sluice_service_path(ngx_pool_t *pool, sluice_core_found_t *found,
    ngx_str_t *path)
{
    sluice_core_text_t  text;

    text = sluice_core_text(found, SLUICE_CORE_SERVICE_PATH);

    if (text.data == NULL) {
        ngx_str_set(path, "/");
        return NGX_OK;
    }

    path->len = text.length;
    path->data = ngx_pnalloc(pool, text.length + 1);
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(path->data, text.data, text.length);

    return NGX_OK;
}


static uint32_t
ngx_http_sluice_service_ms(sluice_core_found_t *found, int field)
{
    uint32_t  ms;

    ms = sluice_core_number(found, field);

    return ms == NGX_HTTP_SLUICE_SERVICE_MS ? 0 : ms;
}
