
/*
 * Chains (ngx_http_sluice_chain.h) with the configurations that a request's
 * consumer has.
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_live.h"


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_of_consumer(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static uint32_t ngx_http_sluice_chain_same(int kind, uint32_t slot,
    uint32_t generation);
static ngx_int_t ngx_http_sluice_chain_put(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, u_char *ranks, sluice_core_found_t *found,
    ngx_http_sluice_chain_t *chain);
static ngx_http_sluice_conf_t *ngx_http_sluice_chain_conf_now(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found);


ngx_http_sluice_chain_t *
ngx_http_sluice_chain_now(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    if (!ctx->chain->by_consumer
        || ctx->consumer_slot == SLUICE_CORE_NOBODY)
    {
        return ctx->chain;
    }

    if (ctx->consumer_chain == NULL) {
        ctx->consumer_chain = ngx_http_sluice_chain_of_consumer(r, ctx);
    }

    return ctx->consumer_chain;
}


static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_of_consumer(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    u_char                    *ranks;
    size_t                     size;
    uint32_t                   i, n;
    const uint32_t            *slots;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;
    ngx_http_sluice_chain_t   *chain;

    view = sluice_images_view();
    if (view == NULL) {
        return NULL;
    }

    if (ngx_http_sluice_chain_same(SLUICE_CORE_CONSUMER, ctx->consumer_slot,
                                   ctx->consumer_generation)
        == SLUICE_CORE_NOBODY)
    {
        return ctx->chain;
    }

    n = sluice_core_children(view, SLUICE_CORE_PLUGIN, SLUICE_CORE_CONSUMER,
                             ctx->consumer_slot, &slots);
    if (n == 0) {
        return ctx->chain;
    }

    size = ctx->chain->nelts * sizeof(ngx_http_sluice_step_t);

    chain = ngx_palloc(r->pool, sizeof(ngx_http_sluice_chain_t) + size
                                + ctx->chain->nelts);
    if (chain == NULL) {
        return NULL;
    }

    *chain = *ctx->chain;
    chain->route = ngx_http_sluice_chain_same(SLUICE_CORE_ROUTE, ctx->route,
                                              ctx->route_generation);
    chain->service = ngx_http_sluice_chain_same(SLUICE_CORE_SERVICE,
                                                ctx->service,
                                                ctx->service_generation);
    chain->steps = (ngx_http_sluice_step_t *) &chain[1];
    ngx_memcpy(chain->steps, ctx->chain->steps, size);

    ranks = (u_char *) chain->steps + size;
    ngx_memzero(ranks, chain->nelts);

    for (i = 0; i < n; i++) {
        found = sluice_core_by_slot(view, SLUICE_CORE_PLUGIN, slots[i]);

        if (found.record
            && ngx_http_sluice_chain_put(r, ctx, ranks, &found, chain)
               != NGX_OK)
        {
            return NULL;
        }
    }

    return chain;
}


/*
 * A slot, or NOBODY where it is another's by now: what is published may have
 * changed since the match.
 */

static uint32_t
ngx_http_sluice_chain_same(int kind, uint32_t slot, uint32_t generation)
{
    sluice_core_found_t   found;
    sluice_core_entity_t  head;

    if (slot == SLUICE_CORE_NOBODY) {
        return slot;
    }

    found = sluice_core_by_slot(sluice_images_view(), kind, slot);

    if (found.record == NULL) {
        return SLUICE_CORE_NOBODY;
    }

    sluice_core_head(&found, &head);

    return head.generation == generation ? slot : SLUICE_CORE_NOBODY;
}


/* Puts a configuration of a consumer into its step, if it wins there. */

static ngx_int_t
ngx_http_sluice_chain_put(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    u_char *ranks, sluice_core_found_t *found, ngx_http_sluice_chain_t *chain)
{
    u_char                       rank;
    uint32_t                     route, service;
    ngx_uint_t                   i;
    ngx_http_sluice_step_t      *step;
    ngx_http_sluice_declared_t  *plugin;

    route = sluice_core_number(found, SLUICE_CORE_PLUGIN_ROUTE);
    service = sluice_core_number(found, SLUICE_CORE_PLUGIN_SERVICE);

    if ((route != SLUICE_CORE_NOBODY && route != chain->route)
        || (service != SLUICE_CORE_NOBODY && service != chain->service))
    {
        return NGX_OK;
    }

    plugin = ngx_http_sluice_chain_plugin(found);

    for (i = 0; i < chain->nelts; i++) {

        if (chain->steps[i].plugin == plugin) {
            break;
        }
    }

    if (i == chain->nelts) {
        return NGX_OK;
    }

    step = &chain->steps[i];

    rank = (u_char) (1 + (route != SLUICE_CORE_NOBODY) * 2
                     + (service != SLUICE_CORE_NOBODY));

    if (rank < ranks[i] || (rank == 1 && step->outranks)) {
        return NGX_OK;
    }

    ranks[i] = rank;

    step->conf = ngx_http_sluice_chain_conf_now(r, ctx, plugin, found);
    if (step->conf == NULL) {
        return NGX_ERROR;
    }

    if (step->conf->failure.len) {
        chain->failure = step->conf->failure;
    }

    return NGX_OK;
}


/*
 * Since the match something else may have been published, in which a slot is
 * another's: what live has of slots is of the epoch of the match.
 */

static ngx_http_sluice_conf_t *
ngx_http_sluice_chain_conf_now(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_declared_t *plugin,
    sluice_core_found_t *found)
{
    if (ctx->live->epoch == sluice_images_epoch()) {
        return ngx_http_sluice_chain_conf(ctx->live, plugin, found);
    }

    return ngx_http_sluice_chain_compile_conf(r->pool, plugin, found);
}
