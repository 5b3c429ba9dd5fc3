
/*
 * What Lua reads and keeps of a request's context.
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_sluice_turn.h"


/*
 * What runs, for Lua to read and to write; NULL: the request has no context.
 * Those that Lua's module makes for its timers have not even variables.
 */

sluice_running_t *
sluice_ctx_running(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r->variables ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx == NULL) {
        return NULL;
    }

    /* a step that has waited goes on in another turn, or behind others */

    if (ctx->running.phase
        && (ngx_sluice_turn->serial != ctx->running.serial
            || ngx_sluice_turn->step != ngx_sluice_turn->turn))
    {
        ngx_sluice_turn->kind = ctx->running.phase;
        ngx_sluice_turn->owner = ctx->running.plugin;
        ngx_sluice_turn->serial = ctx->running.serial;
        ngx_sluice_turn->root = ctx->running.root;
        ngx_sluice_turn->step = ngx_sluice_turn->turn;
    }

    return &ctx->running;
}


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


/* The next that it has not read yet; NGX_DECLINED: there is none. */

int
sluice_ctx_shared(ngx_http_request_t *r, sluice_shared_t *shared)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r->variables ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx == NULL || ctx->shared == NULL) {
        return NGX_DECLINED;
    }

    *shared = ctx->shared->pair;
    ctx->shared = ctx->shared->next;

    return NGX_OK;
}


/* The path, normalised; of length 0: the request was not read that far. */

void
sluice_ctx_path(ngx_http_request_t *r, sluice_core_text_t *path)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r->variables ? ngx_http_sluice_ctx(r) : NULL;

    path->data = ctx ? (const char *) ctx->path.data : NULL;
    path->length = ctx ? (uint32_t) ctx->path.len : 0;
}


/*
 * Slot and text of the route or the service (SLUICE_CORE_ROUTE, _SERVICE) that
 * the request is of; NGX_DECLINED: it has none, or no plugin in Lua.
 */

int
sluice_ctx_entity(ngx_http_request_t *r, int kind,
    sluice_core_entity_t *entity)
{
    ngx_str_t              *body;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r->variables ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx == NULL) {
        return NGX_DECLINED;
    }

    if (kind == SLUICE_CORE_ROUTE) {
        entity->slot = ctx->route;
        body = &ctx->route_body;

    } else {
        entity->slot = ctx->service_slot;
        body = &ctx->service_body;
    }

    entity->body = (const char *) body->data;
    entity->body_length = (uint32_t) body->len;

    return body->data ? NGX_OK : NGX_DECLINED;
}
