
/*
 * The plugins of the registry, and their configurations in chains
 * (ngx_http_sluice_chain.h).
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_live.h"


static ngx_int_t ngx_http_sluice_chain_conf_native(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf);
static ngx_int_t ngx_http_sluice_chain_conf_failed(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, ngx_str_t *id, ngx_str_t *words,
    ngx_http_sluice_conf_t *conf);


static ngx_http_sluice_declared_t  *ngx_http_sluice_chain_declared;
static ngx_uint_t                   ngx_http_sluice_chain_count;


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

    n = ngx_http_sluice_chain_count;
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
    ngx_http_sluice_chain_count = n + 1;

    return NGX_OK;
}


ngx_http_sluice_declared_t *
ngx_http_sluice_chain_plugins(ngx_uint_t *count)
{
    *count = ngx_http_sluice_chain_count;

    return ngx_http_sluice_chain_declared;
}


ngx_http_sluice_declared_t *
ngx_http_sluice_chain_plugin(sluice_core_found_t *found)
{
    ngx_uint_t                   i;
    sluice_core_text_t           name;
    ngx_http_sluice_declared_t  *declared;

    name = sluice_core_text(found, SLUICE_CORE_PLUGIN_NAME);
    declared = ngx_http_sluice_chain_declared;

    for (i = 0; i < ngx_http_sluice_chain_count; i++) {

        if (declared[i].name.len == name.length
            && ngx_memcmp(declared[i].name.data, name.data, name.length) == 0)
        {
            return &declared[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_sluice_chain_rank(sluice_core_found_t *found,
    ngx_http_sluice_chain_t *chain)
{
    uint32_t    route, service;
    ngx_uint_t  owner;

    /* by its owner, whether it has a route, whether it has a service */

    static const u_char  ranks[3][2][2] = {
        { { 1, 2 }, { 3, 6 } },
        { { 4, 7 }, { 8, 11 } },         /* a group's */
        { { 5, 9 }, { 10, 12 } }         /* a consumer's */
    };

    route = sluice_core_number(found, SLUICE_CORE_PLUGIN_ROUTE);
    service = sluice_core_number(found, SLUICE_CORE_PLUGIN_SERVICE);

    if ((route != SLUICE_CORE_NOBODY && route != chain->route)
        || (service != SLUICE_CORE_NOBODY && service != chain->service))
    {
        return 0;
    }

    owner = 0;

    if (sluice_core_number(found, SLUICE_CORE_PLUGIN_CONSUMER)
        != SLUICE_CORE_NOBODY)
    {
        owner = 2;

    } else if (sluice_core_number(found, SLUICE_CORE_PLUGIN_GROUP)
               != SLUICE_CORE_NOBODY)
    {
        owner = 1;
    }

    return ranks[owner][route != SLUICE_CORE_NOBODY]
                [service != SLUICE_CORE_NOBODY];
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

    conf = ngx_http_sluice_chain_compile_conf(live->pool, plugin, found);

    if (conf == NULL
        || ngx_http_sluice_live_put(live, NGX_HTTP_SLUICE_LIVE_CONFS,
                                    head.slot, conf)
           != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


ngx_http_sluice_conf_t *
ngx_http_sluice_chain_compile_conf(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found)
{
    sluice_core_entity_t     head;
    ngx_http_sluice_conf_t  *conf;

    conf = ngx_pcalloc(pool, sizeof(ngx_http_sluice_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    sluice_core_head(found, &head);

    conf->revision = head.revision;
    conf->slot = head.slot;
    conf->generation = head.generation;

    if (plugin->native) {
        conf->ready = 1;

        if (ngx_http_sluice_chain_conf_native(pool, plugin, found, conf)
            != NGX_OK)
        {
            return NULL;
        }
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

    if (conf->data) {
        return NGX_OK;
    }

    /* what lacks memory may have it at the next request */

    return words.len ? ngx_http_sluice_chain_conf_failed(pool, plugin,
                                                         &binding.id, &words,
                                                         conf)
                     : NGX_ERROR;
}


static ngx_int_t
ngx_http_sluice_chain_conf_failed(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, ngx_str_t *id, ngx_str_t *words,
    ngx_http_sluice_conf_t *conf)
{
    u_char  *p;

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
