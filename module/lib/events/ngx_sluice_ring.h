
/*
 * The log of this nginx, made once by its first master and kept over reloads
 * and binary upgrades, hence outside any cycle.  Workers get it by fork.
 */


#ifndef NGX_SLUICE_RING_H_INCLUDED
#define NGX_SLUICE_RING_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "ring.h"


typedef struct {
    size_t      size;
    ngx_int_t   slots;                         /* 0: by workers */
    ngx_msec_t  stall;
} ngx_sluice_ring_conf_t;


typedef struct {
    sluice_ring_t  ring;                       /* without a slot */
    int            fds[SLUICE_RING_SLOTS];     /* eventfds, ring.count */
    int            alarm;                      /* timerfd, of all together */
    uint32_t       generation;                 /* that workers belong to */
    uint32_t       workers;                    /* of it */
    ngx_uint_t     ready;                      /* all of the above is there */
    ngx_uint_t     renewed;                    /* the old log was not usable */
} ngx_sluice_ring_t;


extern ngx_sluice_ring_t  ngx_sluice_ring;


ngx_int_t ngx_sluice_ring_check(ngx_cycle_t *cycle,
    ngx_sluice_ring_conf_t *conf);
ngx_int_t ngx_sluice_ring_init(ngx_cycle_t *cycle,
    ngx_sluice_ring_conf_t *conf);
void ngx_sluice_ring_keep(ngx_cycle_t *cycle);


#endif /* NGX_SLUICE_RING_H_INCLUDED */
