
/*
 * Chains (ngx_http_sluice_chain.h) with the configurations that a request's
 * consumer has, and the groups that he is in.
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_live.h"


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_of_consumer(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static uint32_t ngx_http_sluice_chain_same(int kind, uint32_t slot,
    uint32_t generation);
static ngx_int_t ngx_http_sluice_chain_groups(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_chain_t **chain);
static ngx_int_t ngx_http_sluice_chain_owner(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, int kind, uint32_t slot,
    ngx_http_sluice_chain_t **chain);
static ngx_http_sluice_chain_t *ngx_http_sluice_chain_own(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_chain_put(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, sluice_core_found_t *found,
    ngx_http_sluice_chain_t *chain);
static ngx_uint_t ngx_http_sluice_chain_precedes(sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf);
static sluice_core_text_t ngx_http_sluice_chain_group_name(
    sluice_core_found_t *found);
static ngx_http_sluice_conf_t *ngx_http_sluice_chain_conf_now(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found);


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
    ngx_http_sluice_conf_t   *conf;
    ngx_http_sluice_chain_t  *chain;

    if (sluice_images_view() == NULL) {
        return NULL;
    }

    if (ngx_http_sluice_chain_same(SLUICE_CORE_CONSUMER, ctx->consumer_slot,
                                   ctx->consumer_generation)
        == SLUICE_CORE_NOBODY)
    {
        return ctx->chain;
    }

    chain = ctx->chain;

    if ((ctx->chain->owners & NGX_HTTP_SLUICE_PLUGIN_OF_CONSUMERS)
        && ngx_http_sluice_chain_owner(r, ctx, SLUICE_CORE_CONSUMER,
                                       ctx->consumer_slot, &chain)
           != NGX_OK)
    {
        return NULL;
    }

    if ((ctx->chain->owners & NGX_HTTP_SLUICE_PLUGIN_OF_GROUPS)
        && ngx_http_sluice_chain_groups(r, ctx, &chain) != NGX_OK)
    {
        return NULL;
    }

    for (i = 0; chain != ctx->chain && i < chain->nelts; i++) {
        conf = chain->steps[i].conf;

        if (conf && conf->failure.len) {
            chain->failure = conf->failure;
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


/* Puts in what the consumer's groups have. */

static ngx_int_t
ngx_http_sluice_chain_groups(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_chain_t **chain)
{
    uint32_t                   i, n, group;
    const uint32_t            *slots;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    view = sluice_images_view();

    n = sluice_core_children(view, SLUICE_CORE_MEMBERSHIP,
                             SLUICE_CORE_CONSUMER, ctx->consumer_slot, &slots);

    for (i = 0; i < n; i++) {
        found = sluice_core_by_slot(view, SLUICE_CORE_MEMBERSHIP, slots[i]);

        if (found.record == NULL) {
            continue;
        }

        group = sluice_core_number(&found, SLUICE_CORE_MEMBERSHIP_GROUP);

        if (ngx_http_sluice_chain_owner(r, ctx, SLUICE_CORE_GROUP, group,
                                        chain)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Puts in what a consumer or a group has; the first makes chain a copy. */

static ngx_int_t
ngx_http_sluice_chain_owner(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    int kind, uint32_t slot, ngx_http_sluice_chain_t **chain)
{
    uint32_t                   i, n;
    const uint32_t            *slots;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    view = sluice_images_view();
    n = sluice_core_children(view, SLUICE_CORE_PLUGIN, kind, slot, &slots);

    if (n && *chain == ctx->chain) {
        *chain = ngx_http_sluice_chain_own(r, ctx);
        if (*chain == NULL) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < n; i++) {
        found = sluice_core_by_slot(view, SLUICE_CORE_PLUGIN, slots[i]);

        if (found.record
            && ngx_http_sluice_chain_put(r, ctx, &found, *chain) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_own(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    size_t                    size;
    ngx_http_sluice_chain_t  *chain;

    size = ctx->chain->nelts * sizeof(ngx_http_sluice_step_t);

    chain = ngx_palloc(r->pool, sizeof(ngx_http_sluice_chain_t) + size);
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

    return chain;
}


/* Puts a configuration into its step, if it wins there. */

static ngx_int_t
ngx_http_sluice_chain_put(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    sluice_core_found_t *found, ngx_http_sluice_chain_t *chain)
{
    ngx_uint_t                   i, rank;
    ngx_http_sluice_step_t      *step;
    ngx_http_sluice_declared_t  *plugin;

    rank = ngx_http_sluice_chain_rank(found, chain);

    if (rank == 0) {
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

    if (rank < step->rank
        || (rank == step->rank
            && !ngx_http_sluice_chain_precedes(found, step->conf)))
    {
        return NGX_OK;
    }

    step->rank = rank;

    step->conf = ngx_http_sluice_chain_conf_now(r, ctx, plugin, found);

    return step->conf ? NGX_OK : NGX_ERROR;
}


/* Only groups' have one rank: whether this group's name is the first. */

static ngx_uint_t
ngx_http_sluice_chain_precedes(sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf)
{
    int                  order;
    sluice_core_text_t   name, other_name;
    sluice_core_found_t  other;

    other = sluice_core_by_slot(sluice_images_view(), SLUICE_CORE_PLUGIN,
                                conf->slot);

    if (other.record == NULL) {
        return 1;
    }

    name = ngx_http_sluice_chain_group_name(found);
    other_name = ngx_http_sluice_chain_group_name(&other);

    order = ngx_memcmp(name.data, other_name.data,
                       ngx_min(name.length, other_name.length));

    return order < 0 || (order == 0 && name.length < other_name.length);
}


static sluice_core_text_t
ngx_http_sluice_chain_group_name(sluice_core_found_t *found)
{
    uint32_t             slot;
    sluice_core_text_t   name;
    sluice_core_found_t  group;

    slot = sluice_core_number(found, SLUICE_CORE_PLUGIN_GROUP);
    group = sluice_core_by_slot(sluice_images_view(), SLUICE_CORE_GROUP, slot);

    if (group.record == NULL) {
        name.data = "";
        name.length = 0;
        return name;
    }

    return sluice_core_text(&group, SLUICE_CORE_GROUP_NAME);
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
