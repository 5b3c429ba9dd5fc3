
/*
 * Creates the spool (ngx_sluice_spool.h).
 */


#include "ngx_sluice_shared.h"
#include "ngx_sluice_spool.h"


static int ngx_sluice_spool_attach(void *base, size_t size);


static ngx_sluice_shared_t  ngx_sluice_spool_shared = {
    .env = "SLUICE_SPOOL",
    .name = "sluice-spool"
};

static sluice_spool_t  ngx_sluice_spool_view;


ngx_int_t
ngx_sluice_spool_init(ngx_cycle_t *cycle, size_t size)
{
    ngx_sluice_shared_use_t  use = {
        .shared = &ngx_sluice_spool_shared,
        .size = size,
        .anew = "sluice_spool_size: another size, or another layout: log "
                "entries that old workers still write are lost",
        .what = "the spool of log entries",
        .init = sluice_spool_init,
        .attach = ngx_sluice_spool_attach
    };

    return size ? ngx_sluice_shared_use(cycle, &use) : NGX_OK;
}


static int
ngx_sluice_spool_attach(void *base, size_t size)
{
    return sluice_spool_attach(&ngx_sluice_spool_view, base, size);
}


sluice_spool_t *
ngx_sluice_spool(void)
{
    return ngx_sluice_spool_shared.base ? &ngx_sluice_spool_view : NULL;
}


/* NGX_OK; NGX_DECLINED: there is none. */

int
sluice_spool_figures(sluice_spool_stats_t *stats)
{
    sluice_spool_t  *spool;

    spool = ngx_sluice_spool();

    if (spool == NULL) {
        return NGX_DECLINED;
    }

    sluice_spool_stats(spool, stats);

    return NGX_OK;
}


/* Entries that Lua has taken, and dropped. */

void
sluice_spool_note_lost(uint32_t count)
{
    if (ngx_sluice_spool()) {
        sluice_spool_lose(ngx_sluice_spool(), count);
    }
}
