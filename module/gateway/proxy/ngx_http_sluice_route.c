
/*
 * Routing, without Lua:
 *
 *     server {
 *         sluice_check_requests on;
 *         sluice_route on;
 *     }
 *
 * In the server rewrite phase, behind the checks of that directive, a request
 * is matched with what is published and put into the location that has the
 * phases which its plugins need; nginx's own search for a location by the URI
 * is skipped.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_turn.h"
#include "path.h"


static ngx_int_t ngx_http_sluice_route_internal(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_skip_search(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);
static const sluice_core_view_t *ngx_http_sluice_route_look_unrouted(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_route_prepare(ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view);
static ngx_uint_t ngx_http_sluice_route_is_too_large(ngx_http_request_t *r,
    sluice_refusal_t *said);
static ngx_int_t ngx_http_sluice_route_read_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


ngx_int_t
ngx_http_sluice_route_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_http_sluice_ctx_t         *ctx;
    ngx_http_sluice_refusal_t      refusal;
    ngx_http_sluice_route_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, route);

    if (!conf->enabled || r != r->main) {
        return NGX_DECLINED;
    }

    if (r->internal) {
        return ngx_http_sluice_route_internal(r);
    }

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_sluice_route_begin(r, ctx, &refusal);

    if (rc == NGX_AGAIN) {
        return ngx_http_sluice_turn(r, ctx);
    }

    if (rc != NGX_OK) {
        ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_NATIVE);
        return ngx_http_sluice_refusal_send(r, &refusal);
    }

    return ngx_http_sluice_route_skip_search(r);
}


/*
 * To the page of an error, of a request that was refused before it was routed:
 * so that the late phases of global plugins see it.  Where else nginx goes
 * internally it finds the way itself.
 *
 * It can take no turns here.  So what nginx refuses before the server rewrite
 * phase, or a check does before routing begins, is what may compile patterns
 * of global plugins while they run.
 */

static ngx_int_t
ngx_http_sluice_route_internal(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL || ctx->routed) {
        return NGX_DECLINED;
    }

    (void) ngx_http_sluice_route_look_unrouted(r, ctx);
    ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_ERROR);

    return ngx_http_sluice_route_skip_search(r);
}


/* The phase that comes next is not that which searches for the location. */

static ngx_int_t
ngx_http_sluice_route_skip_search(ngx_http_request_t *r)
{
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    r->phase_handler = cmcf->phase_engine.location_rewrite_index - 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_route_begin(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_refusal_t *refusal)
{
    sluice_refusal_t           said;
    const sluice_core_view_t  *view;

    if (ngx_http_sluice_route_waits(ctx)) {
        return NGX_AGAIN;
    }

    if (ctx->turns == 0 && ngx_http_sluice_route_read_path(r, ctx) != NGX_OK) {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    view = ngx_http_sluice_route_look_unrouted(r, ctx);

    if (view && ngx_http_sluice_route_prepare(ctx, view) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (ngx_http_sluice_route_is_too_large(r, &said)) {
        return ngx_http_sluice_refusal_set(r, refusal, &said);
    }

    if (view == NULL) {
        return ngx_http_sluice_route_refuse_unread(r, refusal);
    }

    /* once, however many turns there were before it, and the match takes */

    if (!ctx->rewritten) {
        ctx->rewritten = 1;

        if ((ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_REWRITE)
            && ngx_http_sluice_early_rewrite(r, ctx, refusal) != NGX_OK)
        {
            return NGX_DECLINED;
        }
    }

    if (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_REWRITE) {
        ctx->turns = 0;
        ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_LUA);
        return NGX_OK;
    }

    return ngx_http_sluice_route_match(r, ctx, view, refusal);
}


/* Until it is routed, it has the chain of requests without a route. */

static const sluice_core_view_t *
ngx_http_sluice_route_look_unrouted(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    const sluice_core_view_t  *view;

    view = ngx_http_sluice_route_look(r, ctx);

    if (view) {
        ctx->chain = ngx_http_sluice_chain_global(ctx->compiled);
    }

    return ctx->chain ? view : NULL;
}


/*
 * Global plugins see the head of what is refused here, too, and cannot wait
 * then.
 */

static ngx_int_t
ngx_http_sluice_route_prepare(ngx_http_sluice_ctx_t *ctx,
    const sluice_core_view_t *view)
{
    return !ctx->chain->prepared
           && ngx_http_sluice_chain_prepare(ctx->chain, view) == NGX_AGAIN
           && ++ctx->turns < SLUICE_CORE_TURNS
           ? NGX_AGAIN : NGX_OK;
}


/* What nginx checks when it has found a location: all have the same limit. */

static ngx_uint_t
ngx_http_sluice_route_is_too_large(ngx_http_request_t *r,
    sluice_refusal_t *said)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->discard_body
        || !sluice_refusal_of_size(r->headers_in.content_length_n,
                                   clcf->client_max_body_size, said))
    {
        return 0;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "client intended to send too large body: %O bytes",
                  r->headers_in.content_length_n);

    ngx_http_sluice_answer_discard_body(r);

    return 1;
}


static ngx_int_t
ngx_http_sluice_route_read_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    char                *buffer;
    size_t               size;
    sluice_core_text_t   target, raw, query, path;

    target.data = (const char *) r->unparsed_uri.data;
    target.length = (uint32_t) r->unparsed_uri.len;

    sluice_path_split(&target, &raw, &query);

    if (sluice_path_normalize(&raw, NULL, 0, &path) != SLUICE_CORE_OK) {
        size = sluice_path_normalize_bound(&raw);

        buffer = ngx_pnalloc(r->pool, size);
        if (buffer == NULL) {
            return NGX_ERROR;
        }

        (void) sluice_path_normalize(&raw, buffer, size, &path);
    }

    ctx->raw.data = (u_char *) raw.data;
    ctx->raw.len = raw.length;
    ctx->query.data = (u_char *) query.data;
    ctx->query.len = query.length;
    ctx->path.data = (u_char *) path.data;
    ctx->path.len = path.length;

    return NGX_OK;
}
