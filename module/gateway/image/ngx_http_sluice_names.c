
/*
 * Keeps the names of a request's route and service
 * (ngx_http_sluice_names.h).
 */


#include "ngx_http_sluice_names.h"


ngx_uint_t  ngx_http_sluice_names_are_logged;


ngx_int_t
ngx_http_sluice_names_keep(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_found_t *route, const ngx_http_sluice_named_t *service)
{
    ngx_http_sluice_names_t  *names;

    names = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_names_t));
    if (names == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_sluice_names_read(r->pool, route, SLUICE_CORE_ROUTE_NAME,
                                   &names->route)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (service) {
        names->service = *service;

        if (ngx_http_sluice_names_copy(r->pool, &names->service.name,
                                       &service->name)
            != NGX_OK
            || ngx_http_sluice_names_copy(r->pool, &names->service.host,
                                          &service->host)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ctx->names = names;

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_names_read(ngx_pool_t *pool, const sluice_core_found_t *found,
    int field, ngx_http_sluice_named_t *named)
{
    ngx_str_t             name;
    sluice_core_text_t    text;
    sluice_core_entity_t  head;

    sluice_core_head(found, &head);
    ngx_memcpy(named->id, head.id, sizeof(named->id));

    text = sluice_core_text(found, field);
    name.data = (u_char *) text.data;
    name.len = text.length;

    ngx_str_null(&named->host);

    return ngx_http_sluice_names_copy(pool, &named->name, &name);
}


ngx_int_t
ngx_http_sluice_names_copy(ngx_pool_t *pool, ngx_str_t *to,
    const ngx_str_t *from)
{
    ngx_str_null(to);

    if (from->len) {
        to->data = ngx_pstrdup(pool, (ngx_str_t *) from);
        if (to->data == NULL) {
            return NGX_ERROR;
        }

        to->len = from->len;
    }

    return NGX_OK;
}
