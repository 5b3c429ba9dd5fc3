
/*
 * The entities of a log entry: the route and the service that the request was
 * matched with, as they were then, and who asks.  They are written as the
 * image has them, without what is unset.  Those of routes and services are
 * kept with what the worker has compiled (ngx_http_sluice_compiled.h).
 */


#include "ngx_http_sluice_compiled.h"
#include "ngx_http_sluice_log.h"
#include "ngx_sluice_images.h"


typedef struct {
    ngx_str_t    member;        /* ,"route":{...} */
    uint64_t     revision;
} ngx_http_sluice_log_entity_t;


static ngx_int_t ngx_http_sluice_log_entity(
    ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, const char *name,
    const sluice_core_found_t *found, ngx_str_t *member);
static ngx_int_t ngx_http_sluice_log_member(ngx_pool_t *pool,
    const char *name, const sluice_core_found_t *found, ngx_str_t *member);
static ngx_int_t ngx_http_sluice_log_copy_text(ngx_http_request_t *r,
    ngx_str_t *text);
static void ngx_http_sluice_log_consumer(ngx_http_sluice_log_t *log,
    ngx_http_sluice_ctx_t *ctx);
static void ngx_http_sluice_log_id(ngx_http_sluice_log_t *log,
    const char *name, ngx_str_t *id);


ngx_int_t
ngx_http_sluice_log_keep(ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view, const sluice_core_found_t *route)
{
    sluice_core_found_t  service;

    ngx_str_null(&ctx->log_route);
    ngx_str_null(&ctx->log_service);

    if (route->record == NULL) {
        return NGX_OK;
    }

    if (ngx_http_sluice_log_entity(ctx->compiled,
                                   NGX_HTTP_SLUICE_COMPILED_LOG_ROUTES,
                                   ",\"route\":", route, &ctx->log_route)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->service_slot == SLUICE_CORE_NOBODY) {
        return NGX_OK;
    }

    service = sluice_core_by_slot(view, SLUICE_CORE_SERVICE,
                                  ctx->service_slot);

    return ngx_http_sluice_log_entity(ctx->compiled,
                                      NGX_HTTP_SLUICE_COMPILED_LOG_SERVICES,
                                      ",\"service\":", &service,
                                      &ctx->log_service);
}


static ngx_int_t
ngx_http_sluice_log_entity(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, const char *name,
    const sluice_core_found_t *found, ngx_str_t *member)
{
    sluice_core_entity_t           head;
    ngx_http_sluice_log_entity_t  *entity;

    sluice_core_head(found, &head);

    entity = ngx_http_sluice_compiled_get(compiled, table, head.slot);

    if (entity == NULL || entity->revision != head.revision) {

        entity = ngx_palloc(compiled->pool,
                            sizeof(ngx_http_sluice_log_entity_t));
        if (entity == NULL) {
            return NGX_ERROR;
        }

        entity->revision = head.revision;

        if (ngx_http_sluice_log_member(compiled->pool, name, found,
                                       &entity->member)
            != NGX_OK
            || ngx_http_sluice_compiled_put(compiled, table, head.slot, entity)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    *member = entity->member;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_log_member(ngx_pool_t *pool, const char *name,
    const sluice_core_found_t *found, ngx_str_t *member)
{
    u_char              *p;
    size_t               length;
    sluice_core_text_t   text;

    text = sluice_core_body(found);
    length = ngx_strlen(name);

    member->data = ngx_pnalloc(pool, length + text.length + 2);
    if (member->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(member->data, name, length);
    p = (u_char *) sluice_json_set_members((char *) p, text.data, text.length);
    member->len = p - member->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_log_detach(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    if (ngx_http_sluice_log_copy_text(r, &ctx->log_route) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_log_copy_text(r, &ctx->log_service);
}


static ngx_int_t
ngx_http_sluice_log_copy_text(ngx_http_request_t *r, ngx_str_t *text)
{
    if (text->len == 0) {
        return NGX_OK;
    }

    text->data = ngx_pstrdup(r->pool, text);

    return text->data ? NGX_OK : NGX_ERROR;
}


void
ngx_http_sluice_log_entities(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, const char *who, size_t length)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL) {
        return;
    }

    ngx_http_sluice_log_raw(log, (char *) ctx->log_route.data,
                            ctx->log_route.len);
    ngx_http_sluice_log_raw(log, (char *) ctx->log_service.data,
                            ctx->log_service.len);

    if (length) {
        ngx_http_sluice_log_raw(log, who, length);
        return;
    }

    if (ctx->consumer.len) {
        ngx_http_sluice_log_consumer(log, ctx);
    }

    if (ctx->credential.len) {
        ngx_http_sluice_log_id(log, ",\"authenticated_entity\":{\"id\":",
                               &ctx->credential);

        if (ctx->consumer.len) {
            ngx_http_sluice_log_id(log, ",\"consumer_id\":", &ctx->consumer);
        }

        ngx_http_sluice_log_text(log, "}");
    }
}


/* Of one that is gone, or that only a plugin knows, less is known. */

static void
ngx_http_sluice_log_consumer(ngx_http_sluice_log_t *log,
    ngx_http_sluice_ctx_t *ctx)
{
    sluice_core_text_t    text;
    sluice_core_found_t   found;
    sluice_core_entity_t  head;

    if (ctx->consumer_slot != SLUICE_CORE_NOBODY
        && sluice_images_by_slot(SLUICE_CORE_CONSUMER, ctx->consumer_slot,
                                 &found)
           == SLUICE_CORE_OK)
    {
        sluice_core_head(&found, &head);
        text = sluice_core_body(&found);

        if (head.generation == ctx->consumer_generation
            && ngx_http_sluice_log_has_room(log, text.length + 14))
        {
            ngx_http_sluice_log_text(log, ",\"consumer\":");
            log->pos = (u_char *) sluice_json_set_members((char *) log->pos,
                                                          text.data,
                                                          text.length);
            return;
        }
    }

    ngx_http_sluice_log_id(log, ",\"consumer\":{\"id\":", &ctx->consumer);

    if (ctx->own_identity && ctx->username.len) {
        ngx_http_sluice_log_id(log, ",\"username\":", &ctx->username);
    }

    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_id(ngx_http_sluice_log_t *log, const char *name,
    ngx_str_t *id)
{
    ngx_http_sluice_log_raw(log, name, ngx_strlen(name));
    ngx_http_sluice_log_string(log, *id);
}
