
/*
 * Keeps the names of a request's route and service
 * (ngx_http_sluice_names.h).
 */


#include "ngx_http_sluice_names.h"


static u_char *ngx_http_sluice_names_put(u_char *p, ngx_str_t *to,
    const ngx_str_t *from);


ngx_uint_t  ngx_http_sluice_names_are_logged;


/* In one piece of memory: it is done for each request. */

ngx_int_t
ngx_http_sluice_names_keep(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_found_t *route, const ngx_http_sluice_named_t *service)
{
    u_char                   *p;
    size_t                    size;
    ngx_str_t                 text;
    sluice_core_text_t        name;
    sluice_core_entity_t      head;
    ngx_http_sluice_names_t  *names;

    name = sluice_core_text(route, SLUICE_CORE_ROUTE_NAME);

    size = sizeof(ngx_http_sluice_names_t) + name.length;

    if (service) {
        size += service->name.len + service->host.len;
    }

    names = ngx_palloc(r->pool, size);
    if (names == NULL) {
        return NGX_ERROR;
    }

    sluice_core_head(route, &head);
    ngx_memcpy(names->route.id, head.id, sizeof(names->route.id));

    p = (u_char *) (names + 1);

    text.data = (u_char *) name.data;
    text.len = name.length;
    p = ngx_http_sluice_names_put(p, &names->route.name, &text);
    ngx_str_null(&names->route.host);

    if (service) {
        ngx_memcpy(names->service.id, service->id, sizeof(service->id));
        p = ngx_http_sluice_names_put(p, &names->service.name, &service->name);
        (void) ngx_http_sluice_names_put(p, &names->service.host,
                                         &service->host);

    } else {
        ngx_memzero(&names->service, sizeof(names->service));
    }

    ctx->names = names;

    return NGX_OK;
}


static u_char *
ngx_http_sluice_names_put(u_char *p, ngx_str_t *to, const ngx_str_t *from)
{
    to->data = p;
    to->len = from->len;

    return from->len ? ngx_cpymem(p, from->data, from->len) : p;
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
