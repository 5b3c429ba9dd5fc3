
/*
 * The plugins of the registry, and their configurations in chains
 * (ngx_http_sluice_chain.h).
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_compiled.h"
#include "uuid.h"


static ngx_int_t ngx_http_sluice_chain_begin(
    ngx_http_sluice_declared_t *plugin);
static ngx_uint_t ngx_http_sluice_chain_phases(
    const ngx_http_sluice_declared_t *plugin,
    const sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_chain_conf_native(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf);
static ngx_int_t ngx_http_sluice_chain_conf_failed(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, ngx_str_t *id, ngx_str_t *words,
    ngx_http_sluice_conf_t *conf);


static ngx_http_sluice_declared_t  *ngx_http_sluice_chain_declared;
static sluice_core_text_t          *ngx_http_sluice_chain_names;
static ngx_uint_t                   ngx_http_sluice_chain_count;


/*
 * Tells of a plugin, in init_worker: all of them, in the order in which they
 * run.  NGX_OK; NGX_DECLINED: it is native, and there is none of this name;
 * NGX_ERROR: no memory, or what it has for workers that begin failed.
 */

int
sluice_chain_declare(const char *name, size_t length, uint32_t phases)
{
    ngx_uint_t                   i, n;
    ngx_str_t                    text;
    ngx_http_sluice_plugin_t    *native;
    sluice_core_text_t          *names;
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
    names = ngx_palloc(ngx_cycle->pool, (n + 1) * sizeof(sluice_core_text_t));

    if (declared == NULL || names == NULL) {
        return NGX_ERROR;
    }

    if (n) {
        ngx_memcpy(declared, ngx_http_sluice_chain_declared,
                   n * sizeof(ngx_http_sluice_declared_t));
        ngx_memcpy(names, ngx_http_sluice_chain_names,
                   n * sizeof(sluice_core_text_t));
    }

    declared[n].name.data = ngx_pstrdup(ngx_cycle->pool, &text);
    if (declared[n].name.data == NULL) {
        return NGX_ERROR;
    }

    declared[n].name.len = length;
    declared[n].native = native;
    declared[n].phases = phases;
    declared[n].number = (uint32_t) n;

    names[n].data = (const char *) declared[n].name.data;
    names[n].length = (uint32_t) length;

    /* one that cannot begin is not declared: its configurations answer 500 */

    if (native && ngx_http_sluice_chain_begin(&declared[n]) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_sluice_chain_declared = declared;
    ngx_http_sluice_chain_names = names;
    ngx_http_sluice_chain_count = n + 1;

    return NGX_OK;
}


/* Of a native plugin: its number, its phases, and its part in this worker. */

static ngx_int_t
ngx_http_sluice_chain_begin(ngx_http_sluice_declared_t *plugin)
{
    ngx_http_sluice_plugin_t  *native;

    native = plugin->native;
    native->number = plugin->number;

    if (native->rewrite) {
        plugin->phases |= NGX_HTTP_SLUICE_PHASE_NATIVE_REWRITE;
    }

    if (native->certificate) {
        plugin->phases |= NGX_HTTP_SLUICE_PHASE_NATIVE_CERTIFICATE;
    }

    if (native->head || (native->decision && native->decision->head)) {
        plugin->phases |= NGX_HTTP_SLUICE_PHASE_NATIVE_HEAD;
    }

    if (native->finish) {
        plugin->phases |= NGX_HTTP_SLUICE_PHASE_NATIVE_FINISH;
    }

    if (native->logs) {
        plugin->phases |= NGX_HTTP_SLUICE_PHASE_NATIVE_LOG;
    }

    return native->init_worker
           ? native->init_worker((ngx_cycle_t *) ngx_cycle) : NGX_OK;
}


ngx_http_sluice_declared_t *
ngx_http_sluice_chain_plugins(ngx_uint_t *count)
{
    *count = ngx_http_sluice_chain_count;

    return ngx_http_sluice_chain_declared;
}


void
ngx_http_sluice_chain_scope(sluice_scope_t *scope,
    ngx_http_sluice_chain_t *chain)
{
    scope->view = sluice_images_view();
    scope->plugins = ngx_http_sluice_chain_names;
    scope->count = (uint32_t) ngx_http_sluice_chain_count;
    scope->route = chain->route;
    scope->service = chain->service;
}


ngx_http_sluice_conf_t *
ngx_http_sluice_chain_conf(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found)
{
    sluice_core_entity_t     head;
    ngx_http_sluice_conf_t  *conf;

    sluice_core_head(found, &head);

    conf = ngx_http_sluice_compiled_get(compiled,
                                        NGX_HTTP_SLUICE_COMPILED_CONFS,
                                        head.slot);
    if (conf && conf->revision == head.revision) {
        return conf;
    }

    conf = ngx_http_sluice_chain_compile_conf(compiled->pool, plugin, found);

    if (conf == NULL
        || ngx_http_sluice_compiled_put(compiled,
                                        NGX_HTTP_SLUICE_COMPILED_CONFS,
                                        head.slot, conf)
           != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


ngx_http_sluice_conf_t *
ngx_http_sluice_chain_compile_conf(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found)
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
    conf->phases = ngx_http_sluice_chain_phases(plugin, found);
    conf->prepared = sluice_core_list(found, SLUICE_CORE_PLUGIN_PATTERNS) == 0;

    if (plugin->native) {
        conf->ready = !(conf->phases & NGX_HTTP_SLUICE_PHASE_LOG);

        if (ngx_http_sluice_chain_conf_native(pool, plugin, found, conf)
            != NGX_OK)
        {
            return NULL;
        }
    }

    return conf;
}


/* Of those in Lua a native plugin's configuration may have the log phase. */

static ngx_uint_t
ngx_http_sluice_chain_phases(const ngx_http_sluice_declared_t *plugin,
    const sluice_core_found_t *found)
{
    ngx_uint_t  lua;

    lua = sluice_core_number(found, SLUICE_CORE_PLUGIN_FLAGS)
          / SLUICE_PLUGIN_LUA;

    if (plugin->native) {
        return plugin->phases | (lua & NGX_HTTP_SLUICE_PHASE_LOG);
    }

    return lua ? plugin->phases & lua : plugin->phases;
}


static ngx_int_t
ngx_http_sluice_chain_conf_native(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found,
    ngx_http_sluice_conf_t *conf)
{
    u_char                      id[SLUICE_UUID_TEXT];
    ngx_str_t                   words;
    sluice_core_text_t          packed;
    sluice_core_entity_t        head;
    ngx_http_sluice_plugin_t   *native;
    ngx_http_sluice_binding_t   binding;

    sluice_core_head(found, &head);
    packed = sluice_core_text(found, SLUICE_CORE_PLUGIN_PACKED);

    sluice_uuid_write((char *) id, head.id);

    binding.id.data = id;
    binding.id.len = SLUICE_UUID_TEXT;
    binding.packed.data = (u_char *) packed.data;
    binding.packed.len = packed.length;
    binding.revision = head.revision;
    binding.slot = head.slot;
    binding.generation = head.generation;

    ngx_str_null(&words);

    native = plugin->native;

    conf->data = native->compile
                 ? native->compile(pool, &binding, &words)
                 : ngx_http_sluice_decide_compile(native->decision,
                                                  native->decision->size, pool,
                                                  &binding, &words);

    if (conf->data) {
        ngx_http_sluice_targets_announce(native, conf);
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
    conf->ready = 0;

    return NGX_OK;
}
