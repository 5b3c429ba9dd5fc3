
/*
 * The processes of a gateway: what the files of this folder have together.
 */


#ifndef NGX_SLUICE_PROCESS_H_INCLUDED
#define NGX_SLUICE_PROCESS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


typedef struct {
    ngx_msec_t  idle_grace;
    ngx_flag_t  control;
    ngx_msec_t  watchdog;
    ngx_int_t   metrics_series;
    size_t      limits_size;                   /* 0: none */
    size_t      spool_size;                    /* the same */
} ngx_sluice_process_conf_t;


/* In shared memory (ngx_sluice_page.c), of the newest configuration. */

typedef struct {
    _Atomic uint64_t  accepting;               /* traffic workers: bits */
    _Atomic uint32_t  begun;                   /* its number */
    uint32_t          master;                  /* a pid */
    uint32_t          workers;                 /* that are to accept */
    uint32_t          zero;
} ngx_sluice_stay_t;


extern ngx_module_t  ngx_sluice_process_module;

extern ngx_sluice_stay_t  *ngx_sluice_stay;


/* The configuration of a cycle. */

#define ngx_sluice_process_conf(cycle)                                        \
    ((ngx_sluice_process_conf_t *)                                            \
         ngx_get_conf((cycle)->conf_ctx, ngx_sluice_process_module))


/* ngx_sluice_page.c; series: routes, and services, that metrics have */

ngx_int_t ngx_sluice_page_init(ngx_cycle_t *cycle, ngx_int_t series);

/* ngx_sluice_notify.c */

ngx_int_t ngx_sluice_notify_init(ngx_cycle_t *cycle);
void ngx_sluice_notify_init_process(ngx_cycle_t *cycle);
void ngx_sluice_notify_accepts(void);
void ngx_sluice_notify_exit_master(ngx_cycle_t *cycle);

/* ngx_sluice_stay.c */

void ngx_sluice_stay_init(ngx_uint_t workers);
void ngx_sluice_stay_init_process(ngx_cycle_t *cycle);
void ngx_sluice_stay_accepts(void);

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
ngx_uint_t ngx_http_sluice_control_listener(ngx_listening_t *ls);
ngx_uint_t ngx_http_sluice_control_owns(ngx_listening_t *ls);

/* ngx_http_sluice_control_bound.c */

ngx_int_t ngx_http_sluice_control_bound(ngx_cycle_t *cycle,
    ngx_listening_t *ls, ngx_uint_t kind);

/* ngx_sluice_grace.c */

void ngx_sluice_grace_begin(ngx_cycle_t *cycle);


/* FFI */

/* ngx_sluice_control.c */

int sluice_control_accept(void);
int sluice_control_deaths(uint32_t ms);

/* ngx_sluice_watchdog.c */

void sluice_watchdog_begin(void);
uint32_t sluice_watchdog_ms(void);

/* ngx_sluice_watch.c */

int sluice_watch_control(const char *folder, void *semaphore,
    int (*post)(void *semaphore, int n));

/* FFI end */


#endif /* NGX_SLUICE_PROCESS_H_INCLUDED */
