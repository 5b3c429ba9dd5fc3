
/*
 * From a service of the image to where its requests go
 * (ngx_http_sluice_destination.h).
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_destination.h"


#define NGX_HTTP_SLUICE_DESTINATION_MS  60000  /* what nginx has by default */


static ngx_http_sluice_destination_t *ngx_http_sluice_destination_compile(
    ngx_pool_t *pool, sluice_core_found_t *service);
static ngx_int_t ngx_http_sluice_destination_path(ngx_pool_t *pool,
    sluice_core_found_t *service, ngx_str_t *path);
static uint32_t ngx_http_sluice_destination_ms(sluice_core_found_t *service,
    int field);


ngx_http_sluice_destination_t *
ngx_http_sluice_destination_of(ngx_http_sluice_live_t *live, uint32_t service)
{
    const uint32_t                 *slots;
    sluice_core_found_t             found;
    ngx_http_sluice_destination_t  *destination;

    destination = ngx_http_sluice_live_get(live,
                                           NGX_HTTP_SLUICE_LIVE_SERVICES,
                                           service);

    if (destination || sluice_images_view() == NULL) {
        return destination;
    }

    found = sluice_core_by_slot(sluice_images_view(), SLUICE_CORE_SERVICE,
                                service);
    if (found.record == NULL) {
        return NULL;
    }

    destination = ngx_http_sluice_destination_compile(live->pool, &found);
    if (destination == NULL) {
        return NULL;
    }

    destination->plugins = sluice_core_children(sluice_images_view(),
                                                SLUICE_CORE_PLUGIN,
                                                SLUICE_CORE_SERVICE, service,
                                                &slots) != 0;

    if (ngx_http_sluice_live_put(live, NGX_HTTP_SLUICE_LIVE_SERVICES, service,
                                 destination)
        != NGX_OK)
    {
        return NULL;
    }

    /* a new live pool holds those rotations only that are asked for */

    if (ngx_http_sluice_rotations_are_full()) {
        live->full = 1;
    }

    return destination;
}


static ngx_http_sluice_destination_t *
ngx_http_sluice_destination_compile(ngx_pool_t *pool,
    sluice_core_found_t *service)
{
    uint32_t                        port;
    ngx_int_t                       rc;
    ngx_str_t                       host;
    sluice_core_text_t              text;
    sluice_core_entity_t            head;
    ngx_http_sluice_destination_t  *to;

    to = ngx_pcalloc(pool, sizeof(ngx_http_sluice_destination_t));

    if (to == NULL
        || ngx_http_sluice_names_read(pool, service, SLUICE_CORE_SERVICE_NAME,
                                      &to->named)
           != NGX_OK
        || ngx_http_sluice_destination_path(pool, service, &to->path)
           != NGX_OK)
    {
        return NULL;
    }

    /* port in the upper half, retries in the lower */

    port = sluice_core_number(service, SLUICE_CORE_SERVICE_PORT);
    text = sluice_core_text(service, SLUICE_CORE_SERVICE_HOST);
    host.data = (u_char *) text.data;
    host.len = text.length;

    sluice_core_head(service, &head);

    to->generation = head.generation;
    to->tries = ngx_min((port & 0xffff) + 1, NGX_HTTP_SLUICE_TRIES);
    to->https = (sluice_core_number(service, SLUICE_CORE_SERVICE_FLAGS)
                 & NGX_HTTP_SLUICE_SERVICE_HTTPS) != 0;

    to->connect_ms = ngx_http_sluice_destination_ms(service,
                                               SLUICE_CORE_SERVICE_CONNECT_MS);
    to->send_ms = ngx_http_sluice_destination_ms(service,
                                                 SLUICE_CORE_SERVICE_WRITE_MS);
    to->read_ms = ngx_http_sluice_destination_ms(service,
                                                 SLUICE_CORE_SERVICE_READ_MS);

    to->rotation = ngx_http_sluice_rotation(&host, (in_port_t) (port >> 16),
                                            to->https, pool);

    if (to->rotation == NULL) {
        return NULL;
    }

#if (NGX_HTTP_SSL)

    rc = ngx_http_sluice_upstream_tls_read(pool, service, &to->tls);

    if (rc == NGX_ERROR) {
        return NULL;
    }

    to->unusable = (rc == NGX_DECLINED);

#endif

    return to;
}


static ngx_int_t
ngx_http_sluice_destination_path(ngx_pool_t *pool,
    sluice_core_found_t *service, ngx_str_t *path)
{
    sluice_core_text_t  text;

    text = sluice_core_text(service, SLUICE_CORE_SERVICE_PATH);

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
ngx_http_sluice_destination_ms(sluice_core_found_t *service, int field)
{
    uint32_t  ms;

    ms = sluice_core_number(service, field);

    return ms == NGX_HTTP_SLUICE_DESTINATION_MS ? 0 : ms;
}
