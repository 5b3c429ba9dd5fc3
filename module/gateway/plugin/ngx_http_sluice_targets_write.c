
/*
 * Puts entries of log plugins into the spool (ngx_http_sluice_chain.h).
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_sluice_handover.h"
#include "ngx_sluice_spool.h"


void
ngx_http_sluice_targets_write(const ngx_http_sluice_plugin_t *plugin,
    const ngx_http_sluice_conf_t *conf, const sluice_core_text_t *text)
{
    ngx_str_t                     *target;
    sluice_spool_t                *spool;
    sluice_spool_entry_t           entry;
    ngx_sluice_handover_target_t   place;

    spool = ngx_sluice_spool();

    if (spool == NULL) {
        return;
    }

    entry.data[SLUICE_SPOOL_PLUGIN] = plugin->name.data;
    entry.length[SLUICE_SPOOL_PLUGIN] = (uint32_t) plugin->name.len;
    entry.data[SLUICE_SPOOL_TEXT] = text->data;
    entry.length[SLUICE_SPOOL_TEXT] = text->length;

    if (plugin->deliver) {
        target = conf->data;

        entry.data[SLUICE_SPOOL_TARGET] = target->data;
        entry.length[SLUICE_SPOOL_TARGET] = (uint32_t) target->len;

    } else {
        place.revision = conf->revision;
        place.slot = conf->slot;
        place.generation = conf->generation;

        entry.data[SLUICE_SPOOL_TARGET] = &place;
        entry.length[SLUICE_SPOOL_TARGET] = sizeof(place);
    }

    (void) sluice_spool_write(spool, &entry);
}


void
ngx_http_sluice_targets_announce(const ngx_http_sluice_plugin_t *plugin,
    const ngx_http_sluice_conf_t *conf)
{
    sluice_core_text_t  none;

    if (plugin->logs && plugin->deliver == NULL) {
        none.data = NULL;
        none.length = 0;

        ngx_http_sluice_targets_write(plugin, conf, &none);
    }
}
