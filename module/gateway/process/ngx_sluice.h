
/*
 * What the nginx files of the module share.  The plain C beside them (ring*.c)
 * knows nothing of nginx; these files bind it to processes and event loops.
 */


#ifndef NGX_SLUICE_H_INCLUDED
#define NGX_SLUICE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "balance.h"
#include "core.h"
#include "ring.h"
#include "ngx_sluice_metrics.h"


typedef struct {
    size_t      events_size;
    ngx_int_t   events_slots;                  /* 0: by workers */
    ngx_msec_t  events_stall;
    ngx_msec_t  idle_grace;
    ngx_flag_t  control;
    ngx_msec_t  watchdog;
    ngx_int_t   metrics_series;
    size_t      limits_size;                   /* 0: none */
} ngx_sluice_conf_t;


/*
 * The log of this nginx, made once by its first master and kept over reloads
 * and binary upgrades, hence outside any cycle.  Workers get it by fork.
 */

typedef struct {
    sluice_ring_t  ring;                       /* without a slot */
    int            fds[SLUICE_RING_SLOTS];     /* eventfds, ring.count */
    int            alarm;                      /* timerfd, of all together */
    uint32_t       generation;                 /* that workers belong to */
    uint32_t       workers;                    /* of it */
    ngx_uint_t     ready;                      /* all of the above is there */
    ngx_uint_t     renewed;                    /* the old log was not usable */
} ngx_sluice_ring_t;


extern ngx_module_t       ngx_sluice_module;
extern ngx_sluice_ring_t  ngx_sluice_ring;


/* ngx_sluice_env.c */

ngx_int_t ngx_sluice_env_set(ngx_cycle_t *cycle, u_char *entry);
void ngx_sluice_env_keep(ngx_cycle_t *cycle, u_char *entry);

/* ngx_sluice_ring.c */

ngx_int_t ngx_sluice_ring_check(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf);
ngx_int_t ngx_sluice_ring_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf);
void ngx_sluice_ring_keep(ngx_cycle_t *cycle);

/* ngx_sluice_page.c */

ngx_int_t ngx_sluice_page_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf);
ngx_sluice_metrics_t *ngx_sluice_page_metrics(int *fd);
sluice_core_position_t *ngx_sluice_page_position(uint32_t slot);
_Atomic uint64_t *ngx_sluice_page_crl(void);

/* ngx_sluice_notify.c */

ngx_int_t ngx_sluice_notify_init(ngx_cycle_t *cycle);
void ngx_sluice_notify_init_process(ngx_cycle_t *cycle);
void ngx_sluice_notify_accepts(void);
void ngx_sluice_notify_exit_master(ngx_cycle_t *cycle);

/* ngx_sluice_limits.c */

ngx_int_t ngx_sluice_limits_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf);

/* ngx_sluice_images.c */

int ngx_sluice_images_refresh(void);
ngx_uint_t ngx_sluice_images_after_crash(void);
int ngx_sluice_images_seen(const sluice_core_view_t **view);

/* ngx_http_sluice_match.c */

void ngx_http_sluice_match_exit_process(void);

/* ngx_http_sluice_crl.c */

ngx_uint_t ngx_http_sluice_crl_ends(ngx_connection_t *c);

/* ngx_sluice_listen.c */

ngx_int_t ngx_sluice_listen_stop(ngx_listening_t *ls, ngx_connection_t **c);

/* ngx_sluice_reuseport.c */

void ngx_sluice_reuseport_init(ngx_cycle_t *cycle);

/* ngx_sluice_control.c */

ngx_int_t ngx_sluice_control_init_process(ngx_cycle_t *cycle);
void ngx_sluice_control_exit_process(void);

/* ngx_sluice_watchdog.c */

void ngx_sluice_watchdog_start(ngx_cycle_t *cycle);

/* ngx_sluice_watch.c */

void ngx_sluice_watch_exit_process(void);

/* ngx_http_sluice_control.c */

ngx_int_t ngx_http_sluice_control_check(ngx_cycle_t *cycle);
ngx_uint_t ngx_http_sluice_control_owns(ngx_listening_t *ls);

/* ngx_http_sluice_control_bound.c */

void ngx_http_sluice_control_bound(ngx_listening_t *ls);

/* ngx_sluice_events.c */

ngx_int_t ngx_sluice_events_init_process(ngx_cycle_t *cycle);
void ngx_sluice_events_exit_process(ngx_cycle_t *cycle);

/* ngx_sluice_timer.c */

void ngx_sluice_timer_exit_process(void);

/* ngx_sluice_grace.c */

void ngx_sluice_grace_begin(ngx_cycle_t *cycle);


#endif /* NGX_SLUICE_H_INCLUDED */
