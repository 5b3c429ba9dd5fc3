
/*
 * What the nginx files of the module share.  The plain C beside them (ring*.c)
 * knows nothing of nginx; these files bind it to processes and event loops.
 */


#ifndef NGX_SLUICE_H_INCLUDED
#define NGX_SLUICE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ring.h"


typedef struct {
    size_t      events_size;
    ngx_msec_t  events_stall;
    ngx_msec_t  idle_grace;
} ngx_sluice_conf_t;


/*
 * The log of this nginx, made once by its first master and kept over reloads
 * and binary upgrades, hence outside any cycle.  Workers get it by fork.
 */

typedef struct {
    sluice_ring_t  ring;                       /* without a slot */
    int            fds[SLUICE_RING_SLOTS];     /* eventfds, one a slot */
    uint32_t       generation;                 /* that workers belong to */
    ngx_uint_t     ready;                      /* all of the above is there */
    ngx_uint_t     renewed;                    /* the old log was not usable */
} ngx_sluice_ring_t;


extern ngx_module_t       ngx_sluice_module;
extern ngx_sluice_ring_t  ngx_sluice_ring;


/* ngx_sluice_ring.c */

ngx_int_t ngx_sluice_ring_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf);
void ngx_sluice_ring_keep(ngx_cycle_t *cycle);

/* ngx_sluice_events.c */

ngx_int_t ngx_sluice_events_init_process(ngx_cycle_t *cycle);
void ngx_sluice_events_exit_process(ngx_cycle_t *cycle);

/* ngx_sluice_timer.c */

void ngx_sluice_timer_exit_process(void);

/* ngx_sluice_grace.c */

void ngx_sluice_grace_begin(ngx_cycle_t *cycle);


#endif /* NGX_SLUICE_H_INCLUDED */
