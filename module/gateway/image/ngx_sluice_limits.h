
/*
 * The counters of rate limits: one area of module/core/limits/meter.h for all
 * processes of this nginx (directive "sluice_limits_size").  It lives over
 * reloads and binary upgrades; another size makes a new one, in which all
 * counters begin at zero.
 */


#ifndef NGX_SLUICE_LIMITS_H_INCLUDED
#define NGX_SLUICE_LIMITS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "meter.h"


/* size: 0 stands for no counters.  NGX_ERROR: it cannot, which is logged. */
ngx_int_t ngx_sluice_limits_init(ngx_cycle_t *cycle, size_t size);

/* NULL without "sluice_limits_size". */
const sluice_core_meter_t *ngx_sluice_limits_meter(void);


#endif /* NGX_SLUICE_LIMITS_H_INCLUDED */
