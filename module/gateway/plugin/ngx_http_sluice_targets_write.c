
/*
 * Puts entries of log plugins into the spool (ngx_http_sluice_chain.h).
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_sluice_handover.h"
#include "ngx_sluice_spool.h"


/* What waits for the lock of the spool: so many bytes, tried so often. */

#define NGX_HTTP_SLUICE_TARGETS_HELD   (256 * 1024)
#define NGX_HTTP_SLUICE_TARGETS_RETRY  10           /* ms */

/* By a worker that leaves so often, before it is given up. */

#define NGX_HTTP_SLUICE_TARGETS_LAST   100


static void ngx_http_sluice_targets_flush_later(void);
static void ngx_http_sluice_targets_flush(ngx_event_t *ev);


static u_char       ngx_http_sluice_targets_held[NGX_HTTP_SLUICE_TARGETS_HELD];
static ngx_event_t  ngx_http_sluice_targets_event;


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

    if (spool->held == NULL) {
        sluice_spool_hold(spool, ngx_http_sluice_targets_held,
                          NGX_HTTP_SLUICE_TARGETS_HELD);
    }

    (void) sluice_spool_write(spool, &entry);

    if (spool->held_used) {
        ngx_http_sluice_targets_flush_later();
    }
}


static void
ngx_http_sluice_targets_flush_later(void)
{
    static ngx_connection_t  dummy;

    ngx_event_t  *ev;

    ev = &ngx_http_sluice_targets_event;

    if (ev->timer_set) {
        return;
    }

    dummy.fd = (ngx_socket_t) -1;

    ev->handler = ngx_http_sluice_targets_flush;
    ev->log = ngx_cycle->log;
    ev->data = &dummy;

    ngx_add_timer(ev, NGX_HTTP_SLUICE_TARGETS_RETRY);
}


/* nginx waits for this timer: behind its last one this worker is gone. */

static void
ngx_http_sluice_targets_flush(ngx_event_t *ev)
{
    static ngx_uint_t  last;

    (void) ev;

    if (sluice_spool_flush(ngx_sluice_spool(), 0) == SLUICE_OK) {
        return;
    }

    if (ngx_exiting && ++last == NGX_HTTP_SLUICE_TARGETS_LAST) {
        sluice_spool_give_up(ngx_sluice_spool());
        return;
    }

    ngx_http_sluice_targets_flush_later();
}


void
ngx_http_sluice_targets_exit_process(void)
{
    sluice_spool_t  *spool;

    spool = ngx_sluice_spool();

    if (spool && sluice_spool_flush(spool, 0) != SLUICE_OK) {
        sluice_spool_give_up(spool);
    }
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
