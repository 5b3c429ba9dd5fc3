
/*
 * What a request is matched with, and what is kept of that.
 *
 * No pointer into the image outlives a match: what the request needs later is
 * in its context, or in what this worker has compiled
 * (ngx_http_sluice_live.h).
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_live.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_turn.h"
#include "ngx_sluice_abi.h"


static ngx_int_t ngx_http_sluice_route_keep(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match);
static uint32_t ngx_http_sluice_route_of_chain(
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_keep_bodies(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_copy(ngx_http_request_t *r,
    ngx_str_t *body, const sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal);
static void ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match);
static ngx_int_t ngx_http_sluice_route_hold(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static ngx_uint_t ngx_http_sluice_route_needs_lua(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


ngx_int_t
ngx_http_sluice_route(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_refusal_t *refusal)
{
    int                    rc;
    sluice_images_match_t  match;

    ctx->routed = 0;
    ngx_http_sluice_turn_end(ctx);

    rc = sluice_images_match(r, ctx->path.data, ctx->path.len, &match);

    if (rc == SLUICE_CORE_AGAIN && ++ctx->turns < SLUICE_CORE_TURNS) {
        return NGX_AGAIN;
    }

    ctx->turns = 0;

    if (rc != SLUICE_CORE_OK
        && (rc != SLUICE_CORE_NONE || match.epoch == 0))
    {
        return ngx_http_sluice_route_refuse(r, rc, &match, refusal);
    }

    if (ngx_http_sluice_route_hold(r, ctx) != NGX_OK
        || ngx_http_sluice_route_keep(r, ctx, &match) != NGX_OK)
    {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    ctx->routed = 1;

    ngx_http_sluice_route_enter(r, ngx_http_sluice_route_needs_lua(r, ctx)
                                   ? NGX_HTTP_SLUICE_LOCATION_LUA
                                   : NGX_HTTP_SLUICE_LOCATION_NATIVE);

    return NGX_OK;
}


/* Keeps what the match has found; no route: then only the path is known. */

static ngx_int_t
ngx_http_sluice_route_keep(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_images_match_t *match)
{
    ctx->route = match->route.record ? match->slot : SLUICE_CORE_NOBODY;
    ctx->route_generation = match->generation;
    ctx->route_revision = match->revision;
    ctx->route_flags = match->route.record
                       ? sluice_core_number(&match->route,
                                            SLUICE_CORE_ROUTE_FLAGS)
                       : 0;
    ctx->prefix = match->prefix;

    ctx->service = SLUICE_CORE_NOBODY;
    ctx->destination = NULL;

    if (match->route.record && match->service != SLUICE_CORE_NOBODY) {
        ctx->destination = ngx_http_sluice_destination_of(ctx->live,
                                                          match->service);
    }

    if (ctx->destination) {
        ctx->service = match->service;
        ctx->service_generation = ctx->destination->generation;

        /* the access phase reads it: of many services it is in no cache */

        __builtin_prefetch(&ctx->destination->rotation->peers);
        __builtin_prefetch(&ctx->destination->rotation->own);
    }

    ctx->names = NULL;

    if (ngx_http_sluice_names_are_logged && match->route.record
        && ngx_http_sluice_names_keep(r, ctx, &match->route) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->step = 0;
    ctx->consumer_chain = NULL;
    ctx->chain = ngx_http_sluice_chain(ctx->live,
                                       ngx_http_sluice_route_of_chain(match),
                                       ctx->route_revision, ctx->service,
                                       ctx->destination
                                       && ctx->destination->plugins);

    if (ctx->chain == NULL) {
        return NGX_ERROR;
    }

    return ctx->chain->phases & ~NGX_HTTP_SLUICE_PHASE_NATIVE
           ? ngx_http_sluice_route_keep_bodies(r, ctx, match) : NGX_OK;
}


/* The route, if plugins are bound to it. */

static uint32_t
ngx_http_sluice_route_of_chain(const sluice_images_match_t *match)
{
    return match->route.record
           && sluice_core_has_children(sluice_images_view(),
                                       SLUICE_CORE_PLUGIN, &match->route)
           ? match->slot : SLUICE_CORE_NOBODY;
}


/* The entities' own texts, for plugins in Lua. */

static ngx_int_t
ngx_http_sluice_route_keep_bodies(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match)
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

    if (ctx->service == SLUICE_CORE_NOBODY) {
        return NGX_OK;
    }

    service = sluice_core_by_slot(sluice_images_view(), SLUICE_CORE_SERVICE,
                                  ctx->service);

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


/* What keeps a request from being routed; no other route is a safe guess. */

static ngx_int_t
ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal)
{
    switch (rc) {

    case SLUICE_CORE_LIMIT:
    case SLUICE_CORE_AGAIN:
    case SLUICE_CORE_PATTERN:
    case SLUICE_CORE_MEMORY:
        ngx_sluice_metrics_add(SLUICE_METRICS_UNROUTED, 1);
        ngx_http_sluice_route_log(r, match);
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);

    case SLUICE_CORE_LARGE:
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_BAD_REQUEST, NULL);

    default:
        return ngx_http_sluice_route_refuse_unread(refusal);
    }
}


static void
ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match)
{
    char                  reason[128];
    u_char                id[NGX_HTTP_SLUICE_UUID];
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
        name.len = NGX_HTTP_SLUICE_UUID;
        ngx_http_sluice_identity_uuid(id, head.id);
    }

    sluice_core_reason(match->reason, reason, sizeof(reason));

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  match->reason == SLUICE_CORE_BY_ROUTES
                  ? "route \"%V\": one of too many to look at for a request, "
                    "which is refused: %s"
                  : "route \"%V\": a regular expression gave up on a request, "
                    "which is refused: %s", &name, reason);
}


/* Finds what is published, and the chain of requests that are not routed. */

ngx_int_t
ngx_http_sluice_route_look(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    if (sluice_images_refresh() != SLUICE_CORE_OK
        || ngx_http_sluice_route_hold(r, ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->chain = ngx_http_sluice_chain(ctx->live, SLUICE_CORE_NOBODY, 0,
                                       SLUICE_CORE_NOBODY, 0);

    return ctx->chain ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_sluice_route_hold(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_http_sluice_live_t  *live;

    live = ngx_http_sluice_live();

    if (live == ctx->live && live) {
        return NGX_OK;
    }

    if (live == NULL
        || ngx_http_sluice_live_hold(live, r, ngx_http_sluice_route_leave)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->live = live;

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


/* Nothing is published, or this worker cannot map what is: it does not serve
   what was there before. */

ngx_int_t
ngx_http_sluice_route_refuse_unread(ngx_http_sluice_refusal_t *refusal)
{
    return ngx_http_sluice_refusal(refusal, NGX_HTTP_SERVICE_UNAVAILABLE,
                                   "the configuration cannot be read");
}
