
/*
 * What a request is matched with, and what is kept of that.
 *
 * No pointer into the image outlives a match: what the request needs later is
 * in its context, or in what this worker has compiled
 * (ngx_http_sluice_compiled.h).
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_compiled.h"
#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_turn.h"
#include "ngx_http_sluice_match.h"
#include "ngx_http_sluice_patterns.h"
#include "ngx_sluice_metrics.h"
#include "uuid.h"


static ngx_int_t ngx_http_sluice_route_keep(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_keep_route(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    const sluice_images_match_t *match);
static uint32_t ngx_http_sluice_route_of_chain(const sluice_core_view_t *view,
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_keep_names(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_keep_bodies(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_copy(ngx_http_request_t *r,
    ngx_str_t *body, const sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal);
static void ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_pin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static ngx_uint_t ngx_http_sluice_route_needs_lua(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


ngx_int_t
ngx_http_sluice_route(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_refusal_t *refusal)
{
    const sluice_core_view_t  *view;

    if (ngx_http_sluice_route_waits(ctx)) {
        return NGX_AGAIN;
    }

    view = ngx_http_sluice_route_look(r, ctx);

    if (view == NULL) {
        return ngx_http_sluice_route_refuse_unread(r, refusal);
    }

    return ngx_http_sluice_route_match(r, ctx, view, refusal);
}


/*
 * Whether a request whose match is to be asked again has no need to: those who
 * wait go on one after the other, not all of them in each turn.
 */

ngx_uint_t
ngx_http_sluice_route_waits(ngx_http_sluice_ctx_t *ctx)
{
    return ctx->turns
           && !sluice_core_regexes_has_time(ngx_http_sluice_patterns())
           && ++ctx->turns < SLUICE_CORE_TURNS;
}


ngx_int_t
ngx_http_sluice_route_match(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view, ngx_http_sluice_refusal_t *refusal)
{
    int                    rc;
    ngx_int_t              kept;
    sluice_images_match_t  match;

    rc = sluice_match_request(r, view, ctx->path.data, ctx->path.len, &match);

    if (rc == SLUICE_CORE_AGAIN && ++ctx->turns < SLUICE_CORE_TURNS) {
        return NGX_AGAIN;
    }

    if (rc != SLUICE_CORE_OK && rc != SLUICE_CORE_NONE) {
        ctx->turns = 0;
        return ngx_http_sluice_route_refuse(r, rc, &match, refusal);
    }

    kept = ngx_http_sluice_route_keep(r, ctx, view, &match);

    if (kept == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc == SLUICE_CORE_NONE) {
        ngx_sluice_metrics_add(SLUICE_METRICS_UNMATCHED, 1);
    }

    ctx->turns = 0;

    if (kept != NGX_OK) {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    ctx->routed = 1;

    ngx_http_sluice_route_enter(r, ngx_http_sluice_route_needs_lua(r, ctx)
                                   ? NGX_HTTP_SLUICE_LOCATION_LUA
                                   : NGX_HTTP_SLUICE_LOCATION_NATIVE);

    return NGX_OK;
}


/*
 * Keeps what the match has found; no route: then only the path is known.
 * NGX_AGAIN: nothing is kept yet, patterns of its plugins are to be compiled.
 */

static ngx_int_t
ngx_http_sluice_route_keep(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view, const sluice_images_match_t *match)
{
    uint32_t                    slot;
    ngx_http_sluice_chain_t    *chain;
    ngx_http_sluice_service_t  *service;

    slot = SLUICE_CORE_NOBODY;
    service = NULL;

    if (match->route.record && match->service != SLUICE_CORE_NOBODY) {
        service = ngx_http_sluice_service_of(ctx->compiled, match->service);
    }

    if (service) {
        slot = match->service;

        /* the access phase reads it: of many services it is in no cache */

        __builtin_prefetch(&service->balancer->peers);
        __builtin_prefetch(&service->balancer->own);
    }

    chain = ngx_http_sluice_chain(ctx->compiled,
                                  ngx_http_sluice_route_of_chain(view, match),
                                  match->revision, slot,
                                  service && service->plugins);

    if (chain && !chain->prepared
        && ngx_http_sluice_chain_prepare(chain, view) == NGX_AGAIN
        && ++ctx->turns < SLUICE_CORE_TURNS)
    {
        return NGX_AGAIN;
    }

    ctx->chain = chain;
    ctx->consumer_chain = NULL;
    ctx->said_groups = 0;
    ctx->groups.len = 0;
    ctx->step = 0;
    ctx->service = service;
    ctx->service_slot = slot;
    ctx->service_generation = service ? service->generation : 0;
    ctx->prefix = match->prefix;

    return ngx_http_sluice_route_keep_route(r, ctx, view, match);
}


static ngx_int_t
ngx_http_sluice_route_keep_route(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    const sluice_images_match_t *match)
{
    ctx->route = match->route.record ? match->slot : SLUICE_CORE_NOBODY;
    ctx->route_generation = match->generation;
    ctx->route_revision = match->revision;
    ctx->route_flags = match->route.record
                       ? sluice_core_number(&match->route,
                                            SLUICE_CORE_ROUTE_FLAGS)
                       : 0;

    if (ctx->chain == NULL
        || ngx_http_sluice_route_keep_names(r, ctx, match) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if ((ctx->chain->phases & NGX_HTTP_SLUICE_PHASES_THAT_LOG)
        && ngx_http_sluice_log_keep(ctx, view, &match->route) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ctx->chain->phases & NGX_HTTP_SLUICE_PHASES_IN_LUA
           ? ngx_http_sluice_route_keep_bodies(r, ctx, view, match) : NGX_OK;
}


/* For logs, and for plugins that finish requests. */

static ngx_int_t
ngx_http_sluice_route_keep_names(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match)
{
    ctx->names = NULL;

    if (match->route.record == NULL
        || !(ngx_http_sluice_names_are_logged
             || (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_FINISH)))
    {
        return NGX_OK;
    }

    return ngx_http_sluice_names_keep(r, ctx, &match->route,
                                      ctx->service
                                      ? &ctx->service->named : NULL);
}


/* The route, if plugins are bound to it. */

static uint32_t
ngx_http_sluice_route_of_chain(const sluice_core_view_t *view,
    const sluice_images_match_t *match)
{
    return match->route.record
           && sluice_core_has_children(view, SLUICE_CORE_PLUGIN, &match->route)
           ? match->slot : SLUICE_CORE_NOBODY;
}


/* The entities' own texts, for plugins in Lua. */

static ngx_int_t
ngx_http_sluice_route_keep_bodies(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    const sluice_images_match_t *match)
{
    sluice_core_found_t  service;

    ngx_str_null(&ctx->route_body);
    ngx_str_null(&ctx->service_body);

    if (ctx->route != SLUICE_CORE_NOBODY
        && ngx_http_sluice_route_copy(r, &ctx->route_body, &match->route)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->service_slot == SLUICE_CORE_NOBODY) {
        return NGX_OK;
    }

    service = sluice_core_by_slot(view, SLUICE_CORE_SERVICE,
                                  ctx->service_slot);

    return ngx_http_sluice_route_copy(r, &ctx->service_body, &service);
}


static ngx_int_t
ngx_http_sluice_route_copy(ngx_http_request_t *r, ngx_str_t *body,
    const sluice_core_found_t *found)
{
    sluice_core_text_t  text;

    text = sluice_core_body(found);

    body->data = ngx_pnalloc(r->pool, text.length + 1);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(body->data, text.data, text.length);
    body->len = text.length;

    return NGX_OK;
}


/* What keeps a request from being routed. */

static ngx_int_t
ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal)
{
    sluice_refusal_t  said;

    (void) sluice_refusal_of_code(rc, &said);

    if (said.status == NGX_HTTP_INTERNAL_SERVER_ERROR) {
        ngx_sluice_metrics_add(SLUICE_METRICS_UNROUTED, 1);
        ngx_http_sluice_route_log(r, match);
    }

    return ngx_http_sluice_refusal_set(r, refusal, &said);
}


static void
ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match)
{
    char                  reason[128];
    u_char                id[SLUICE_UUID_TEXT];
    ngx_str_t             name;
    sluice_core_text_t    text;
    sluice_core_entity_t  head;

    if (match->route.record == NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "too many hosts and paths of routes to look at for a "
                      "request, which is refused");
        return;
    }

    text = sluice_core_text(&match->route, SLUICE_CORE_ROUTE_NAME);
    name.data = (u_char *) text.data;
    name.len = text.length;

    if (text.data == NULL) {
        sluice_core_head(&match->route, &head);
        name.data = id;
        name.len = SLUICE_UUID_TEXT;
        sluice_uuid_write((char *) id, head.id);
    }

    sluice_core_reason(match->reason, reason, sizeof(reason));

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  match->reason == SLUICE_CORE_BY_ROUTES
                  ? "route \"%V\": one of too many to look at for a request, "
                    "which is refused: %s"
                  : "route \"%V\": a regular expression gave up on a request, "
                    "which is refused: %s", &name, reason);
}


const sluice_core_view_t *
ngx_http_sluice_route_look(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ctx->routed = 0;
    ngx_http_sluice_turn_end(ctx);

    /* of a request that was sent elsewhere ngx.ctx is another one */

    if (r->internal && ctx->own_identity) {
        ctx->running.identity = NGX_HTTP_SLUICE_IDENTITY_UNSURE;
    }

    if (sluice_images_refresh() != SLUICE_CORE_OK
        || ngx_http_sluice_route_pin(r, ctx) != NGX_OK)
    {
        return NULL;
    }

    return sluice_images_view();
}


static ngx_int_t
ngx_http_sluice_route_pin(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_http_sluice_compiled_t  *compiled;

    compiled = ngx_http_sluice_compiled();

    if (compiled == ctx->compiled && compiled) {
        return NGX_OK;
    }

    if (compiled == NULL
        || ngx_http_sluice_compiled_pin(compiled, r,
                                        ngx_http_sluice_route_detach)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->compiled = compiled;

    return NGX_OK;
}


/*
 * A phase that Lua has begun is Lua's to end: where it waits, for a body say,
 * nginx finds it again only in a location that has it.
 */

static ngx_uint_t
ngx_http_sluice_route_needs_lua(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    if (ngx_http_sluice_location_kind(r) == NGX_HTTP_SLUICE_LOCATION_LUA) {
        return 1;
    }

    return ctx->route != SLUICE_CORE_NOBODY
           && ngx_http_sluice_chain_needs_lua(ctx->chain);
}


void
ngx_http_sluice_route_enter(ngx_http_request_t *r,
    ngx_http_sluice_location_e kind)
{
    ngx_uint_t              level;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);
    level = ctx->chain ? ngx_http_sluice_chain_level(ctx->chain) : 0;

    ngx_http_sluice_location_enter(r, kind, level);
}


/* Nothing is published, or this worker cannot map what is. */

ngx_int_t
ngx_http_sluice_route_refuse_unread(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    sluice_refusal_t  said;

    (void) sluice_refusal_of_code(SLUICE_CORE_BAD, &said);

    return ngx_http_sluice_refusal_set(r, refusal, &said);
}
