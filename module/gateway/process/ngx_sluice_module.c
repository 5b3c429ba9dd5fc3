
/*
 * The module as nginx sees it: directives and the life of processes.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_digest.h"
#include "ngx_sluice_limits.h"


static void *ngx_sluice_create_conf(ngx_cycle_t *cycle);
static char *ngx_sluice_init_conf(ngx_cycle_t *cycle, void *conf);
static char *ngx_sluice_check_size(ngx_conf_t *cf, void *post, void *data);
static char *ngx_sluice_check_slots(ngx_conf_t *cf, void *post, void *data);
static char *ngx_sluice_check_stall(ngx_conf_t *cf, void *post, void *data);
static char *ngx_sluice_check_watchdog(ngx_conf_t *cf, void *post, void *data);
static char *ngx_sluice_check_series(ngx_conf_t *cf, void *post, void *data);
static char *ngx_sluice_check_limits(ngx_conf_t *cf, void *post, void *data);
static ngx_int_t ngx_sluice_check_control(ngx_cycle_t *cycle);

static ngx_int_t ngx_sluice_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_init_process(ngx_cycle_t *cycle);
static void ngx_sluice_exit_process(ngx_cycle_t *cycle);


static ngx_conf_post_t  ngx_sluice_size_post = { ngx_sluice_check_size };
static ngx_conf_post_t  ngx_sluice_slots_post = { ngx_sluice_check_slots };
static ngx_conf_post_t  ngx_sluice_stall_post = { ngx_sluice_check_stall };
static ngx_conf_post_t  ngx_sluice_watchdog_post = {
    ngx_sluice_check_watchdog
};
static ngx_conf_post_t  ngx_sluice_series_post = { ngx_sluice_check_series };
static ngx_conf_post_t  ngx_sluice_limits_post = { ngx_sluice_check_limits };


static ngx_command_t  ngx_sluice_commands[] = {

    { ngx_string("sluice_events_size"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_sluice_conf_t, events_size),
      &ngx_sluice_size_post },

    { ngx_string("sluice_events_slots"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_sluice_conf_t, events_slots),
      &ngx_sluice_slots_post },

    { ngx_string("sluice_events_stall"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_conf_t, events_stall),
      &ngx_sluice_stall_post },

    { ngx_string("sluice_idle_grace"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_conf_t, idle_grace),
      NULL },

    { ngx_string("sluice_control"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      0,
      offsetof(ngx_sluice_conf_t, control),
      NULL },

    { ngx_string("sluice_control_watchdog"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_conf_t, watchdog),
      &ngx_sluice_watchdog_post },

    { ngx_string("sluice_metrics_series"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_sluice_conf_t, metrics_series),
      &ngx_sluice_series_post },

    { ngx_string("sluice_limits_size"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_sluice_conf_t, limits_size),
      &ngx_sluice_limits_post },

      ngx_null_command
};


static ngx_core_module_t  ngx_sluice_module_ctx = {
    ngx_string("sluice"),
    ngx_sluice_create_conf,
    ngx_sluice_init_conf
};


ngx_module_t  ngx_sluice_module = {
    NGX_MODULE_V1,
    &ngx_sluice_module_ctx,                /* module context */
    ngx_sluice_commands,                   /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_sluice_init_module,                /* init module */
    ngx_sluice_init_process,               /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_sluice_exit_process,               /* exit process */
    ngx_sluice_notify_exit_master,         /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_sluice_create_conf(ngx_cycle_t *cycle)
{
    ngx_sluice_conf_t  *conf;

    conf = ngx_pcalloc(cycle->pool, sizeof(ngx_sluice_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->events_size = NGX_CONF_UNSET_SIZE;
    conf->events_slots = NGX_CONF_UNSET;
    conf->events_stall = NGX_CONF_UNSET_MSEC;
    conf->idle_grace = NGX_CONF_UNSET_MSEC;
    conf->control = NGX_CONF_UNSET;
    conf->watchdog = NGX_CONF_UNSET_MSEC;
    conf->metrics_series = NGX_CONF_UNSET;
    conf->limits_size = NGX_CONF_UNSET_SIZE;

    return conf;
}


static char *
ngx_sluice_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_sluice_conf_t  *scf = conf;

    ngx_conf_init_size_value(scf->events_size, 16 * 1024 * 1024);
    ngx_conf_init_value(scf->events_slots, 0);
    ngx_conf_init_msec_value(scf->events_stall, 10000);
    ngx_conf_init_msec_value(scf->idle_grace, 0);
    ngx_conf_init_value(scf->control, 0);
    ngx_conf_init_msec_value(scf->watchdog, 30000);
    ngx_conf_init_value(scf->metrics_series, 0);
    ngx_conf_init_size_value(scf->limits_size, 0);

    if (scf->control && ngx_sluice_check_control(cycle) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_sluice_ring_check(cycle, scf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_size(ngx_conf_t *cf, void *post, void *data)
{
    size_t  *size = data;

    if (*size < SLUICE_RING_SIZE_MIN || *size > SLUICE_RING_SIZE_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_events_size\" must be between 64k and "
                           "1024m");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_slots(ngx_conf_t *cf, void *post, void *data)
{
    ngx_int_t  *slots = data;

    if (*slots < 1 || *slots > SLUICE_RING_SLOTS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_events_slots\" must be between 1 and %d",
                           SLUICE_RING_SLOTS);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_stall(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t  *stall = data;

    if (*stall < 100 || *stall > 3600 * 1000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_events_stall\" must be between 100ms and "
                           "1h");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_watchdog(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t  *watchdog = data;

    if (*watchdog != 0 && *watchdog < 2000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_control_watchdog\" must be 0, for none, "
                           "or at least 2s");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_series(ngx_conf_t *cf, void *post, void *data)
{
    ngx_int_t  *series = data;

    if (*series > SLUICE_METRICS_SERIES) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_metrics_series\" must be at most %d",
                           SLUICE_METRICS_SERIES);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_check_limits(ngx_conf_t *cf, void *post, void *data)
{
    size_t  *size = data;

    if (*size < SLUICE_CORE_METER_MIN || *size > SLUICE_CORE_METER_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"sluice_limits_size\" must be between 2k and "
                           "32768m");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_sluice_check_control(ngx_cycle_t *cycle)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (!ccf->master || ccf->worker_processes < 2) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"sluice_control on\" needs \"master_process on\" and "
                      "two \"worker_processes\": worker 0 serves no traffic");
        return NGX_ERROR;
    }

    return ngx_http_sluice_control_check(cycle);
}


/* Runs in the master, before it forks, at the start and at each reload. */

static ngx_int_t
ngx_sluice_init_module(ngx_cycle_t *cycle)
{
    ngx_sluice_conf_t  *conf;

    if (ngx_test_config) {
        return NGX_OK;
    }

    /*
     * By its parent nginx tells that the master before it still runs, and
     * then takes no new binary.  In the foreground, where there was none, that
     * is the supervisor, which runs for ever.
     */

    if (!ngx_inherited) {
        ngx_parent = -1;
    }

    conf = (ngx_sluice_conf_t *)
               ngx_get_conf(cycle->conf_ctx, ngx_sluice_module);

    if (ngx_sluice_ring_init(cycle, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_sluice_ring_keep(cycle);

    if (ngx_sluice_limits_init(cycle, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!conf->control) {
        return NGX_OK;
    }

    ngx_sluice_reuseport_init(cycle);

    if (ngx_sluice_page_init(cycle, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_sluice_notify_init(cycle);
}


static ngx_int_t
ngx_sluice_init_process(ngx_cycle_t *cycle)
{
    if (ngx_sluice_metrics_init_process(cycle) != NGX_OK
        || ngx_sluice_control_init_process(cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_sluice_events_init_process(cycle);
}


static void
ngx_sluice_exit_process(ngx_cycle_t *cycle)
{
    ngx_sluice_control_exit_process();
    ngx_sluice_watch_exit_process();
    ngx_http_sluice_match_exit_process();
    ngx_sluice_digest_exit_process();
    ngx_sluice_timer_exit_process();
    ngx_sluice_events_exit_process(cycle);
}
