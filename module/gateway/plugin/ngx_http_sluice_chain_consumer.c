
/*
 * Chains (ngx_http_sluice_chain.h) with the configurations that a request's
 * consumer has, and the groups that he is in.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_compiled.h"


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_of_consumer(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static uint32_t ngx_http_sluice_chain_same(int kind, uint32_t slot,
    uint32_t generation);
static ngx_http_sluice_chain_t *ngx_http_sluice_chain_copy(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const ngx_http_sluice_chain_t *from, const sluice_scope_step_t *steps);
static ngx_http_sluice_conf_t *ngx_http_sluice_chain_conf_now(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found);


ngx_http_sluice_chain_t *
ngx_http_sluice_chain_now(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    if (ctx->chain->owners == 0 || ctx->consumer_slot == SLUICE_CORE_NOBODY) {
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
    ngx_uint_t                i;
    sluice_scope_t            scope;
    sluice_scope_step_t      *steps;
    ngx_http_sluice_chain_t   chain;

    if (sluice_images_view() == NULL) {
        return NULL;
    }

    if (ngx_http_sluice_chain_same(SLUICE_CORE_CONSUMER, ctx->consumer_slot,
                                   ctx->consumer_generation)
        == SLUICE_CORE_NOBODY)
    {
        return ctx->chain;
    }

    chain = *ctx->chain;
    chain.route = ngx_http_sluice_chain_same(SLUICE_CORE_ROUTE, ctx->route,
                                             ctx->route_generation);
    chain.service = ngx_http_sluice_chain_same(SLUICE_CORE_SERVICE,
                                               ctx->service_slot,
                                               ctx->service_generation);

    steps = ngx_palloc(r->pool, chain.nelts * sizeof(sluice_scope_step_t));
    if (steps == NULL) {
        return NULL;
    }

    for (i = 0; i < chain.nelts; i++) {
        steps[i].plugin = chain.steps[i].plugin->number;
        steps[i].rank = (uint32_t) chain.steps[i].rank;
    }

    ngx_http_sluice_chain_scope(&scope, &chain);

    if (sluice_scope_consumer(&scope, ctx->consumer_slot,
                              (uint32_t) chain.owners, steps,
                              (uint32_t) chain.nelts)
        == 0)
    {
        return ctx->chain;
    }

    return ngx_http_sluice_chain_copy(r, ctx, &chain, steps);
}


/* With the configurations of steps, where these have one. */

static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_copy(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const ngx_http_sluice_chain_t *from, const sluice_scope_step_t *steps)
{
    size_t                    size;
    ngx_uint_t                i;
    ngx_http_sluice_step_t   *step;
    ngx_http_sluice_chain_t  *chain;

    size = from->nelts * sizeof(ngx_http_sluice_step_t);

    chain = ngx_palloc(r->pool, sizeof(ngx_http_sluice_chain_t) + size);
    if (chain == NULL) {
        return NULL;
    }

    *chain = *from;
    chain->steps = (ngx_http_sluice_step_t *) &chain[1];
    ngx_memcpy(chain->steps, from->steps, size);

    for (i = 0; i < chain->nelts; i++) {
        step = &chain->steps[i];

        if (steps[i].found.record) {
            step->rank = steps[i].rank;
            step->conf = ngx_http_sluice_chain_conf_now(r, ctx, step->plugin,
                                                        &steps[i].found);
            if (step->conf == NULL) {
                return NULL;
            }
        }

        if (step->conf && step->conf->failure.len) {
            chain->failure = step->conf->failure;
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


/*
 * Since the match something else may have been published, in which a slot is
 * another's: what is compiled of slots is of the epoch of the match.
 */

static ngx_http_sluice_conf_t *
ngx_http_sluice_chain_conf_now(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_declared_t *plugin,
    const sluice_core_found_t *found)
{
    if (ctx->compiled->epoch == sluice_images_epoch()) {
        return ngx_http_sluice_chain_conf(ctx->compiled, plugin, found);
    }

    return ngx_http_sluice_chain_compile_conf(r->pool, plugin, found);
}
