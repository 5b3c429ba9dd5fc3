
/*
 * Chains (ngx_http_sluice_chain.h): which configurations of which plugins the
 * requests of a route run.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_live.h"


typedef struct {
    sluice_core_found_t  found;
    ngx_uint_t           rank;        /* of found; 0: none */
    ngx_uint_t           used;        /* some binding names the plugin */
} ngx_http_sluice_chain_best_t;


typedef struct {
    ngx_http_sluice_live_t        *live;
    ngx_http_sluice_chain_t       *chain;
    const sluice_core_view_t      *view;
    ngx_http_sluice_declared_t    *plugins;
    ngx_uint_t                     count;      /* of them */
    ngx_http_sluice_chain_best_t  *best;       /* by the plugin's number */
} ngx_http_sluice_chain_compile_t;


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_compile(
    ngx_http_sluice_live_t *live, uint32_t route, uint32_t service);
static ngx_int_t ngx_http_sluice_chain_gather(
    ngx_http_sluice_chain_compile_t *c, int kind, uint32_t slot);
static ngx_int_t ngx_http_sluice_chain_compare(
    ngx_http_sluice_chain_compile_t *c, uint32_t slot);
static ngx_int_t ngx_http_sluice_chain_add_look(
    ngx_http_sluice_chain_compile_t *c, ngx_http_sluice_declared_t *plugin,
    sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_chain_not_loaded(
    ngx_http_sluice_chain_compile_t *c, sluice_core_text_t *name);
static ngx_int_t ngx_http_sluice_chain_steps(
    ngx_http_sluice_chain_compile_t *c);


ngx_http_sluice_chain_t *
ngx_http_sluice_chain(ngx_http_sluice_live_t *live, uint32_t route,
    uint64_t revision, uint32_t service, ngx_uint_t has_plugins)
{
    uint32_t                       slot;
    ngx_http_sluice_chain_t       *chain;
    ngx_http_sluice_live_table_e   table;

    table = NGX_HTTP_SLUICE_LIVE_CHAINS;
    slot = has_plugins ? service : SLUICE_CORE_NOBODY;

    if (route != SLUICE_CORE_NOBODY) {
        table = NGX_HTTP_SLUICE_LIVE_ROUTE_CHAINS;
        slot = route;
    }

    chain = ngx_http_sluice_live_get(live, table, slot);

    /* compiled without its service, when there was no memory for that: then
       it lacks the service's plugins */

    if (chain
        && (table == NGX_HTTP_SLUICE_LIVE_CHAINS
            || (chain->revision == revision && chain->service == service)))
    {
        return chain;
    }

    if (table == NGX_HTTP_SLUICE_LIVE_CHAINS) {
        service = slot;
    }

    chain = ngx_http_sluice_chain_compile(live, route, service);
    if (chain == NULL) {
        return NULL;
    }

    chain->revision = revision;

    if (ngx_http_sluice_live_put(live, table, slot, chain) != NGX_OK) {
        return NULL;
    }

    return chain;
}


static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_compile(ngx_http_sluice_live_t *live, uint32_t route,
    uint32_t service)
{
    ngx_int_t                         rc;
    ngx_http_sluice_chain_t          *chain;
    ngx_http_sluice_chain_compile_t   c;

    chain = ngx_pcalloc(live->pool, sizeof(ngx_http_sluice_chain_t));
    if (chain == NULL) {
        return NULL;
    }

    chain->route = route;
    chain->service = service;
    chain->ready = 1;

    if (ngx_array_init(&chain->looks, live->pool, 1,
                       sizeof(ngx_http_sluice_step_t))
        != NGX_OK)
    {
        return NULL;
    }

    c.live = live;
    c.chain = chain;
    c.view = sluice_images_view();
    c.plugins = ngx_http_sluice_chain_plugins(&c.count);
    c.best = ngx_calloc((c.count + 1) * sizeof(ngx_http_sluice_chain_best_t),
                        ngx_cycle->log);
    if (c.best == NULL) {
        return NULL;
    }

    rc = ngx_http_sluice_chain_gather(&c, SLUICE_CORE_KINDS, 0);

    if (rc == NGX_OK && service != SLUICE_CORE_NOBODY) {
        rc = ngx_http_sluice_chain_gather(&c, SLUICE_CORE_SERVICE, service);
    }

    if (rc == NGX_OK && route != SLUICE_CORE_NOBODY) {
        rc = ngx_http_sluice_chain_gather(&c, SLUICE_CORE_ROUTE, route);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_chain_steps(&c);
    }

    ngx_free(c.best);

    return rc == NGX_OK ? chain : NULL;
}


/* Looks at the bindings of an owner; kind KINDS, slot 0: that have none. */

static ngx_int_t
ngx_http_sluice_chain_gather(ngx_http_sluice_chain_compile_t *c, int kind,
    uint32_t slot)
{
    uint32_t         i, n;
    const uint32_t  *slots;

    n = sluice_core_children(c->view, SLUICE_CORE_PLUGIN, kind, slot, &slots);

    for (i = 0; i < n; i++) {

        if (ngx_http_sluice_chain_compare(c, slots[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_compare(ngx_http_sluice_chain_compile_t *c,
    uint32_t slot)
{
    ngx_uint_t                     rank, owners;
    sluice_core_text_t             name;
    sluice_core_found_t            found;
    ngx_http_sluice_declared_t    *plugin;
    ngx_http_sluice_chain_best_t  *best;

    found = sluice_core_by_slot(c->view, SLUICE_CORE_PLUGIN, slot);

    if (found.record == NULL) {
        return NGX_OK;
    }

    plugin = ngx_http_sluice_chain_plugin(&found);

    if (plugin == NULL) {
        name = sluice_core_text(&found, SLUICE_CORE_PLUGIN_NAME);
        return ngx_http_sluice_chain_not_loaded(c, &name);
    }

    best = &c->best[plugin->number];

    owners = sluice_core_number(&found, SLUICE_CORE_PLUGIN_FLAGS);

    if (owners) {
        best->used = 1;
        c->chain->owners |= owners;
        return NGX_OK;
    }

    if (plugin->native == NULL
        && ngx_http_sluice_chain_add_look(c, plugin, &found) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rank = ngx_http_sluice_chain_rank(&found, c->chain);

    if (rank > best->rank) {
        best->found = found;
        best->rank = rank;
        best->used = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_add_look(ngx_http_sluice_chain_compile_t *c,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found)
{
    ngx_http_sluice_step_t  *look;

    look = ngx_array_push(&c->chain->looks);
    if (look == NULL) {
        return NGX_ERROR;
    }

    look->plugin = plugin;
    look->conf = ngx_http_sluice_chain_conf(c->live, plugin, found);
    if (look->conf == NULL) {
        return NGX_ERROR;
    }

    c->chain->ready &= look->conf->ready;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_not_loaded(ngx_http_sluice_chain_compile_t *c,
    sluice_core_text_t *name)
{
    u_char  *p;

    p = ngx_pnalloc(c->live->pool,
                    sizeof("plugin '' is not loaded") + name->length);
    if (p == NULL) {
        return NGX_ERROR;
    }

    c->chain->failure.data = p;
    p = ngx_sprintf(p, "plugin '%*s' is not loaded", (size_t) name->length,
                    name->data);
    c->chain->failure.len = p - c->chain->failure.data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_steps(ngx_http_sluice_chain_compile_t *c)
{
    ngx_uint_t                     i, n;
    ngx_http_sluice_step_t        *step;
    ngx_http_sluice_chain_t       *chain;
    ngx_http_sluice_chain_best_t  *best;

    chain = c->chain;

    for (i = 0, n = 0; i < c->count; i++) {
        n += c->best[i].used;
    }

    chain->steps = ngx_pcalloc(c->live->pool,
                               n * sizeof(ngx_http_sluice_step_t));
    if (chain->steps == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < c->count; i++) {
        best = &c->best[i];

        if (!best->used) {
            continue;
        }

        step = &chain->steps[chain->nelts++];
        step->plugin = &c->plugins[i];
        chain->phases |= step->plugin->phases;

        if (best->rank == 0) {
            continue;
        }

        step->rank = best->rank;
        step->conf = ngx_http_sluice_chain_conf(c->live, step->plugin,
                                                &best->found);
        if (step->conf == NULL) {
            return NGX_ERROR;
        }

        if (step->conf->failure.len) {
            chain->failure = step->conf->failure;
        }
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_sluice_chain_level(ngx_http_sluice_chain_t *chain)
{
    if (chain->phases & NGX_HTTP_SLUICE_PHASE_BODY_FILTER) {
        return 3;
    }

    if (chain->phases & NGX_HTTP_SLUICE_PHASE_HEADER_FILTER) {
        return 2;
    }

    return (chain->phases & NGX_HTTP_SLUICE_PHASE_LOG) ? 1 : 0;
}


ngx_uint_t
ngx_http_sluice_chain_needs_lua(ngx_http_sluice_chain_t *chain)
{
    return !chain->ready || (chain->phases & NGX_HTTP_SLUICE_PHASE_ACCESS);
}
