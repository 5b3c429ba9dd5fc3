
/*
 * Chains (ngx_http_sluice_chain.h): which configurations of which plugins the
 * requests of a route run.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_compiled.h"


typedef struct {
    ngx_http_sluice_compiled_t  *compiled;
    ngx_http_sluice_chain_t     *chain;
    ngx_http_sluice_declared_t  *plugins;
    sluice_scope_step_t         *steps;      /* room for one of each */
    sluice_scope_chosen_t        chosen;
} ngx_http_sluice_chain_compile_t;


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_compile(
    ngx_http_sluice_compiled_t *compiled, uint32_t route, uint32_t service);
static ngx_int_t ngx_http_sluice_chain_choose(
    ngx_http_sluice_chain_compile_t *c);
static int ngx_http_sluice_chain_look(void *data, uint32_t plugin,
    const sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_chain_not_loaded(
    ngx_http_sluice_chain_compile_t *c, sluice_core_text_t *name);
static ngx_int_t ngx_http_sluice_chain_steps(
    ngx_http_sluice_chain_compile_t *c);
static ngx_uint_t ngx_http_sluice_chain_owned(
    const ngx_http_sluice_step_t *step);


ngx_http_sluice_chain_t *
ngx_http_sluice_chain(ngx_http_sluice_compiled_t *compiled, uint32_t route,
    uint64_t revision, uint32_t service, ngx_uint_t has_plugins)
{
    uint32_t                           slot;
    ngx_http_sluice_chain_t           *chain;
    ngx_http_sluice_compiled_table_e   table;

    table = NGX_HTTP_SLUICE_COMPILED_CHAINS;
    slot = service;

    if (route != SLUICE_CORE_NOBODY) {
        table = NGX_HTTP_SLUICE_COMPILED_ROUTE_CHAINS;
        slot = route;

    } else if (!has_plugins) {
        return ngx_http_sluice_chain_global(compiled);
    }

    chain = ngx_http_sluice_compiled_get(compiled, table, slot);

    /* compiled without its service, when there was no memory for that: then
       it lacks the service's plugins */

    if (chain
        && (table == NGX_HTTP_SLUICE_COMPILED_CHAINS
            || (chain->revision == revision && chain->service == service)))
    {
        return chain;
    }

    chain = ngx_http_sluice_chain_compile(compiled, route, service);
    if (chain == NULL) {
        return NULL;
    }

    chain->revision = revision;

    if (ngx_http_sluice_compiled_put(compiled, table, slot, chain) != NGX_OK) {
        return NULL;
    }

    return chain;
}


ngx_http_sluice_chain_t *
ngx_http_sluice_chain_global(ngx_http_sluice_compiled_t *compiled)
{
    if (compiled->global == NULL) {
        compiled->global = ngx_http_sluice_chain_compile(compiled,
                                                         SLUICE_CORE_NOBODY,
                                                         SLUICE_CORE_NOBODY);
    }

    return compiled->global;
}


static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_compile(ngx_http_sluice_compiled_t *compiled,
    uint32_t route, uint32_t service)
{
    ngx_int_t                         rc;
    ngx_uint_t                        count;
    ngx_http_sluice_chain_t          *chain;
    ngx_http_sluice_chain_compile_t   c;

    chain = ngx_pcalloc(compiled->pool, sizeof(ngx_http_sluice_chain_t));
    if (chain == NULL) {
        return NULL;
    }

    chain->route = route;
    chain->service = service;
    chain->ready = 1;

    if (ngx_array_init(&chain->looks, compiled->pool, 1,
                       sizeof(ngx_http_sluice_step_t))
        != NGX_OK)
    {
        return NULL;
    }

    c.compiled = compiled;
    c.chain = chain;
    c.plugins = ngx_http_sluice_chain_plugins(&count);
    c.steps = ngx_alloc((count + 1) * sizeof(sluice_scope_step_t),
                        ngx_cycle->log);
    if (c.steps == NULL) {
        return NULL;
    }

    rc = ngx_http_sluice_chain_choose(&c);

    ngx_free(c.steps);

    return rc == NGX_OK ? chain : NULL;
}


static ngx_int_t
ngx_http_sluice_chain_choose(ngx_http_sluice_chain_compile_t *c)
{
    sluice_scope_t  scope;

    ngx_http_sluice_chain_scope(&scope, c->chain);

    if (sluice_scope_choose(&scope, c->steps, &c->chosen,
                            ngx_http_sluice_chain_look, c)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    c->chain->owners = c->chosen.owners;

    if (c->chosen.missing.data
        && ngx_http_sluice_chain_not_loaded(c, &c->chosen.missing) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_chain_steps(c);
}


/*
 * Notes what Lua has to look at; the configurations that lose, too.  Of native
 * plugins those that have a phase in Lua, which holds them from then on.
 */

static int
ngx_http_sluice_chain_look(void *data, uint32_t plugin,
    const sluice_core_found_t *found)
{
    ngx_http_sluice_chain_compile_t  *c = data;

    ngx_http_sluice_step_t  *look;

    if (c->plugins[plugin].native
        && sluice_core_number(found, SLUICE_CORE_PLUGIN_FLAGS)
           < SLUICE_PLUGIN_LUA)
    {
        return NGX_OK;
    }

    look = ngx_array_push(&c->chain->looks);
    if (look == NULL) {
        return NGX_ERROR;
    }

    look->plugin = &c->plugins[plugin];
    look->conf = ngx_http_sluice_chain_conf(c->compiled, look->plugin, found);
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

    p = ngx_pnalloc(c->compiled->pool,
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
    uint32_t                  i;
    sluice_scope_step_t      *from;
    ngx_http_sluice_step_t   *step, *look;
    ngx_http_sluice_chain_t  *chain;

    chain = c->chain;

    chain->steps = ngx_pcalloc(c->compiled->pool,
                               c->chosen.count
                               * sizeof(ngx_http_sluice_step_t));
    if (chain->steps == NULL) {
        return NGX_ERROR;
    }

    chain->nelts = c->chosen.count;

    for (i = 0; i < c->chosen.count; i++) {
        from = &c->steps[i];
        step = &chain->steps[i];

        step->plugin = &c->plugins[from->plugin];
        step->rank = from->rank;
        step->owners = from->owners;
        chain->phases |= ngx_http_sluice_chain_owned(step);

        if (from->rank == 0) {
            continue;
        }

        step->conf = ngx_http_sluice_chain_conf(c->compiled, step->plugin,
                                                &from->found);
        if (step->conf == NULL) {
            return NGX_ERROR;
        }

        chain->phases |= step->conf->phases;

        if (step->conf->failure.len == 0) {
            continue;
        }

        chain->failure = step->conf->failure;

        /* Lua reports it, once */

        if (!step->conf->ready) {
            look = ngx_array_push(&chain->looks);
            if (look == NULL) {
                return NGX_ERROR;
            }

            *look = *step;
            chain->ready = 0;
        }
    }

    return NGX_OK;
}


/* What a configuration may need that the consumer or a group may have. */

static ngx_uint_t
ngx_http_sluice_chain_owned(const ngx_http_sluice_step_t *step)
{
    if (step->owners == 0) {
        return 0;
    }

    return step->plugin->native && (step->owners & SLUICE_PLUGIN_OF_LUA)
           ? step->plugin->phases | NGX_HTTP_SLUICE_PHASE_LOG
           : step->plugin->phases;
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
