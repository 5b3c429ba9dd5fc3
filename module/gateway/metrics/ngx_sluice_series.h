
/*
 * Series of labels that plugins count in: one area of
 * module/core/series/series.h for all processes of this nginx.  It lives over
 * reloads and binary upgrades, with the bounds that it began with.
 */


#ifndef NGX_SLUICE_SERIES_H_INCLUDED
#define NGX_SLUICE_SERIES_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "series.h"


/* FFI */

/* Kinds of lines, by what has one, and how many numbers it has. */

typedef enum {
    SLUICE_SERIES_REQUESTS = 0,    /* 1: a route's, by consumer and status */
    SLUICE_SERIES_BYTES,           /* 2: a route's, by consumer */
    SLUICE_SERIES_TIMES            /* 49: a route's */
} sluice_series_kind_e;


/* NULL without "sluice_control on". */
const sluice_series_t *sluice_series_shared(void);

/* FFI end */


/* Lines of the first two kinds for each of the last. */
#define NGX_SLUICE_SERIES_FOLD  8


/*
 * Runs in the master, before it forks, at the start and at each reload.
 * series: lines of the last kind.  NGX_ERROR: it cannot, which is logged.
 */
ngx_int_t ngx_sluice_series_init(ngx_cycle_t *cycle, ngx_int_t series);

/* Of a worker that begins. */
void ngx_sluice_series_init_process(void);

/* NULL without "sluice_control on". */
sluice_series_t *ngx_sluice_series(void);


#endif /* NGX_SLUICE_SERIES_H_INCLUDED */
