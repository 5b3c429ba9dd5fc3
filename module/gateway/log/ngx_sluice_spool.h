
/*
 * The spool (module/core/spool/spool.h) in nginx: one for all processes of
 * this nginx (directive "sluice_spool_size").  It lives over reloads and
 * binary upgrades, with what stands in it.
 */


#ifndef NGX_SLUICE_SPOOL_H_INCLUDED
#define NGX_SLUICE_SPOOL_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "spool.h"


/*
 * In the master; size 0: there is none.  NGX_ERROR: it cannot, which is
 * logged.
 */
ngx_int_t ngx_sluice_spool_init(ngx_cycle_t *cycle, size_t size);

/* NULL: there is none. */
sluice_spool_t *ngx_sluice_spool(void);


/* FFI */

int sluice_spool_figures(sluice_spool_stats_t *stats);
void sluice_spool_note_lost(uint32_t count);

/* FFI end */


#endif /* NGX_SLUICE_SPOOL_H_INCLUDED */
