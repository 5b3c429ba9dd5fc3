
/*
 * Chains (ngx_http_sluice_chain.h): which plugins there are, and which of
 * their configurations the requests of a route run.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_live.h"


typedef struct {
    sluice_core_found_t  found;       /* record NULL: none */
    ngx_uint_t           rank;
    ngx_uint_t           used;        /* some binding names the plugin */
} ngx_http_sluice_chain_best_t;


typedef struct {
    ngx_http_sluice_live_t        *live;
    ngx_http_sluice_chain_t       *chain;
    const sluice_core_view_t      *view;
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
static ngx_int_t ngx_http_sluice_chain_conf_native(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf);
static ngx_int_t ngx_http_sluice_chain_conf_failed(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, ngx_str_t *id, ngx_str_t *words,
    ngx_http_sluice_conf_t *conf);


static ngx_http_sluice_declared_t  *ngx_http_sluice_chain_declared;
static ngx_uint_t                   ngx_http_sluice_chain_declareds;


/*
 * Tells of a plugin, in init_worker: all of them, in the order in which they
 * run.  NGX_OK; NGX_DECLINED: it is native, and there is none of this name;
 * NGX_ERROR: no memory.
 */

int
sluice_plugins_declare(const char *name, size_t length, uint32_t phases)
{
    ngx_uint_t                   i, n;
    ngx_str_t                    text;
    ngx_http_sluice_plugin_t    *native;
    ngx_http_sluice_declared_t  *declared;

    n = ngx_http_sluice_chain_declareds;
    native = NULL;

    text.data = (u_char *) name;
    text.len = length;

    for (i = 0; phases & NGX_HTTP_SLUICE_PHASE_NATIVE; i++) {
        native = ngx_http_sluice_plugins[i];

        if (native == NULL) {
            return NGX_DECLINED;
        }

        if (native->name.len == length
            && ngx_memcmp(native->name.data, name, length) == 0)
        {
            break;
        }
    }

    /* a few dozen at most, once: each in an array of its own is no loss */

    declared = ngx_pcalloc(ngx_cycle->pool,
                           (n + 1) * sizeof(ngx_http_sluice_declared_t));
    if (declared == NULL) {
        return NGX_ERROR;
    }

    if (n) {
        ngx_memcpy(declared, ngx_http_sluice_chain_declared,
                   n * sizeof(ngx_http_sluice_declared_t));
    }

    declared[n].name.data = ngx_pstrdup(ngx_cycle->pool, &text);
    if (declared[n].name.data == NULL) {
        return NGX_ERROR;
    }

    declared[n].name.len = length;
    declared[n].native = native;
    declared[n].phases = phases;
    declared[n].number = (uint32_t) n;

    ngx_http_sluice_chain_declared = declared;
    ngx_http_sluice_chain_declareds = n + 1;

    return NGX_OK;
}


ngx_http_sluice_chain_t *
ngx_http_sluice_chain(ngx_http_sluice_live_t *live, uint32_t route,
    uint64_t revision, uint32_t service)
{
    uint32_t                       slot;
    const uint32_t                *slots;
    const sluice_core_view_t      *view;
    ngx_http_sluice_chain_t       *chain;
    ngx_http_sluice_live_table_e   table;

    view = sluice_images_view();
    if (view == NULL) {
        return NULL;
    }

    table = NGX_HTTP_SLUICE_LIVE_CHAINS;
    slot = service;

    if (route != SLUICE_CORE_NOBODY
        && sluice_core_children(view, SLUICE_CORE_PLUGIN, SLUICE_CORE_ROUTE,
                                route, &slots))
    {
        table = NGX_HTTP_SLUICE_LIVE_ROUTE_CHAINS;
        slot = route;
    }

    chain = ngx_http_sluice_live_get(live, table, slot);

    if (chain
        && (table == NGX_HTTP_SLUICE_LIVE_CHAINS
            || chain->revision == revision))
    {
        return chain;
    }

    if (table == NGX_HTTP_SLUICE_LIVE_CHAINS) {
        route = SLUICE_CORE_NOBODY;
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
    c.best = ngx_calloc((ngx_http_sluice_chain_declareds + 1)
                        * sizeof(ngx_http_sluice_chain_best_t),
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
    uint32_t                       route, service;
    ngx_uint_t                     rank;
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

    if (sluice_core_number(&found, SLUICE_CORE_PLUGIN_FLAGS)
        & NGX_HTTP_SLUICE_PLUGIN_CONSUMER_ONLY)
    {
        best->used = 1;
        c->chain->by_consumer = 1;
        return NGX_OK;
    }

    if (plugin->native == NULL
        && ngx_http_sluice_chain_add_look(c, plugin, &found) != NGX_OK)
    {
        return NGX_ERROR;
    }

    route = sluice_core_number(&found, SLUICE_CORE_PLUGIN_ROUTE);
    service = sluice_core_number(&found, SLUICE_CORE_PLUGIN_SERVICE);

    if ((route != SLUICE_CORE_NOBODY && route != c->chain->route)
        || (service != SLUICE_CORE_NOBODY && service != c->chain->service))
    {
        return NGX_OK;
    }

    rank = (route != SLUICE_CORE_NOBODY) * 2 + (service != SLUICE_CORE_NOBODY);

    if (best->found.record == NULL || rank >= best->rank) {
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


ngx_http_sluice_declared_t *
ngx_http_sluice_chain_plugin(sluice_core_found_t *found)
{
    ngx_uint_t                   i;
    sluice_core_text_t           name;
    ngx_http_sluice_declared_t  *declared;

    name = sluice_core_text(found, SLUICE_CORE_PLUGIN_NAME);
    declared = ngx_http_sluice_chain_declared;

    for (i = 0; i < ngx_http_sluice_chain_declareds; i++) {

        if (declared[i].name.len == name.length
            && ngx_memcmp(declared[i].name.data, name.data, name.length) == 0)
        {
            return &declared[i];
        }
    }

    return NULL;
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

    for (i = 0, n = 0; i < ngx_http_sluice_chain_declareds; i++) {
        n += c->best[i].used;
    }

    chain->steps = ngx_pcalloc(c->live->pool,
                               n * sizeof(ngx_http_sluice_step_t));
    if (chain->steps == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < ngx_http_sluice_chain_declareds; i++) {
        best = &c->best[i];

        if (!best->used) {
            continue;
        }

        step = &chain->steps[chain->nelts++];
        step->plugin = &ngx_http_sluice_chain_declared[i];
        chain->phases |= step->plugin->phases;

        if (best->found.record == NULL) {
            continue;
        }

        step->outranks = best->rank == 3;
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


ngx_http_sluice_conf_t *
ngx_http_sluice_chain_conf(ngx_http_sluice_live_t *live,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found)
{
    sluice_core_entity_t     head;
    ngx_http_sluice_conf_t  *conf;

    sluice_core_head(found, &head);

    conf = ngx_http_sluice_live_get(live, NGX_HTTP_SLUICE_LIVE_CONFS,
                                    head.slot);
    if (conf && conf->revision == head.revision) {
        return conf;
    }

    conf = ngx_pcalloc(live->pool, sizeof(ngx_http_sluice_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->revision = head.revision;
    conf->slot = head.slot;
    conf->generation = head.generation;

    if (plugin->native) {
        conf->ready = 1;

        if (ngx_http_sluice_chain_conf_native(live->pool, plugin, found, conf)
            != NGX_OK)
        {
            return NULL;
        }
    }

    if (ngx_http_sluice_live_put(live, NGX_HTTP_SLUICE_LIVE_CONFS, head.slot,
                                 conf)
        != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static ngx_int_t
ngx_http_sluice_chain_conf_native(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf)
{
    u_char                      id[NGX_HTTP_SLUICE_UUID];
    ngx_str_t                   words;
    sluice_core_text_t          packed;
    sluice_core_entity_t        head;
    ngx_http_sluice_binding_t   binding;

    sluice_core_head(found, &head);
    packed = sluice_core_text(found, SLUICE_CORE_PLUGIN_PACKED);

    ngx_http_sluice_identity_uuid(id, head.id);

    binding.id.data = id;
    binding.id.len = NGX_HTTP_SLUICE_UUID;
    binding.packed.data = (u_char *) packed.data;
    binding.packed.len = packed.length;
    binding.revision = head.revision;
    binding.slot = head.slot;
    binding.generation = head.generation;

    ngx_str_null(&words);

    conf->data = plugin->native->compile(pool, &binding, &words);

    if (conf->data == NULL) {
        return ngx_http_sluice_chain_conf_failed(pool, plugin, &binding.id,
                                                 &words, conf);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_conf_failed(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, ngx_str_t *id, ngx_str_t *words,
    ngx_http_sluice_conf_t *conf)
{
    u_char  *p;

    if (words->len == 0) {
        ngx_str_set(words, "no memory");
    }

    p = ngx_pnalloc(pool, sizeof("plugin '' failed to configure : ")
                          + plugin->name.len + id->len + words->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    conf->failure.data = p;
    p = ngx_sprintf(p, "plugin '%V' failed to configure %V: %V",
                    &plugin->name, id, words);
    conf->failure.len = p - conf->failure.data;

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
