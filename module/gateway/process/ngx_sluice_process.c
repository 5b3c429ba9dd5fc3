
/*
 * The gateway's module of processes as nginx sees it: directives, and what is
 * done when a process begins and ends.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_patterns.h"
#include "ngx_sluice_bounds.h"
#include "ngx_sluice_digest.h"
#include "ngx_sluice_events.h"
#include "ngx_sluice_limits.h"
#include "ngx_sluice_metrics.h"
#include "ngx_sluice_process.h"
#include "ngx_sluice_reader.h"
#include "ngx_sluice_series.h"
#include "ngx_sluice_spool.h"
#include "ngx_sluice_turn.h"


static void *ngx_sluice_process_create_conf(ngx_cycle_t *cycle);
static char *ngx_sluice_process_init_conf(ngx_cycle_t *cycle, void *conf);
static char *ngx_sluice_process_check_watchdog(ngx_conf_t *cf, void *post,
    void *data);
static ngx_int_t ngx_sluice_process_check_control(ngx_cycle_t *cycle);

static ngx_int_t ngx_sluice_process_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_process_init_process(ngx_cycle_t *cycle);
static void ngx_sluice_process_leave(ngx_cycle_t *cycle);
static void ngx_sluice_process_exit_process(ngx_cycle_t *cycle);


static ngx_conf_post_t  ngx_sluice_process_watchdog_post = {
    ngx_sluice_process_check_watchdog
};
static ngx_sluice_bounds_t  ngx_sluice_process_series = {
    ngx_sluice_bounds_check, 0, SLUICE_METRICS_SERIES,
    "\"sluice_metrics_series\" must be at most %ui"
};
static ngx_sluice_bounds_t  ngx_sluice_process_limits = {
    ngx_sluice_bounds_check, SLUICE_CORE_METER_MIN, SLUICE_CORE_METER_MAX,
    "\"sluice_limits_size\" must be between 2k and 32768m"
};
static ngx_sluice_bounds_t  ngx_sluice_process_spool = {
    ngx_sluice_bounds_check, SLUICE_SPOOL_MIN, SLUICE_SPOOL_MAX,
    "\"sluice_spool_size\" must be between 64k and 1024m"
};


static ngx_command_t  ngx_sluice_process_commands[] = {

    { ngx_string("sluice_idle_grace"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, idle_grace),
      NULL },

    { ngx_string("sluice_control"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, control),
      NULL },

    { ngx_string("sluice_control_watchdog"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, watchdog),
      &ngx_sluice_process_watchdog_post },

    { ngx_string("sluice_metrics_series"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, metrics_series),
      &ngx_sluice_process_series },

    { ngx_string("sluice_limits_size"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, limits_size),
      &ngx_sluice_process_limits },

    { ngx_string("sluice_spool_size"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_sluice_process_conf_t, spool_size),
      &ngx_sluice_process_spool },

      ngx_null_command
};


static ngx_core_module_t  ngx_sluice_process_module_ctx = {
    ngx_string("sluice_process"),
    ngx_sluice_process_create_conf,
    ngx_sluice_process_init_conf
};


ngx_module_t  ngx_sluice_process_module = {
    NGX_MODULE_V1,
    &ngx_sluice_process_module_ctx,                /* module context */
    ngx_sluice_process_commands,                   /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_sluice_process_init_module,                /* init module */
    ngx_sluice_process_init_process,               /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_sluice_process_exit_process,               /* exit process */
    ngx_sluice_notify_exit_master,         /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_sluice_process_create_conf(ngx_cycle_t *cycle)
{
    ngx_sluice_process_conf_t  *conf;

    conf = ngx_pcalloc(cycle->pool, sizeof(ngx_sluice_process_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->idle_grace = NGX_CONF_UNSET_MSEC;
    conf->control = NGX_CONF_UNSET;
    conf->watchdog = NGX_CONF_UNSET_MSEC;
    conf->metrics_series = NGX_CONF_UNSET;
    conf->limits_size = NGX_CONF_UNSET_SIZE;
    conf->spool_size = NGX_CONF_UNSET_SIZE;

    return conf;
}


static char *
ngx_sluice_process_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_sluice_process_conf_t  *scf = conf;

    ngx_conf_init_msec_value(scf->idle_grace, 0);
    ngx_conf_init_value(scf->control, 0);
    ngx_conf_init_msec_value(scf->watchdog, 30000);
    ngx_conf_init_value(scf->metrics_series, 0);
    ngx_conf_init_size_value(scf->limits_size, 0);
    ngx_conf_init_size_value(scf->spool_size, 0);

    if (scf->control && ngx_sluice_process_check_control(cycle) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_sluice_process_check_watchdog(ngx_conf_t *cf, void *post, void *data)
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


static ngx_int_t
ngx_sluice_process_check_control(ngx_cycle_t *cycle)
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
ngx_sluice_process_init_module(ngx_cycle_t *cycle)
{
    ngx_core_conf_t            *ccf;
    ngx_sluice_process_conf_t  *conf;

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

    conf = ngx_sluice_process_conf(cycle);

    if (ngx_sluice_limits_init(cycle, conf->limits_size) != NGX_OK
        || ngx_sluice_spool_init(cycle, conf->spool_size) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!conf->control) {
        return NGX_OK;
    }

    ngx_sluice_reuseport_init(cycle);

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ngx_sluice_turn_init(cycle, ccf->worker_processes) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_sluice_page_init(cycle, conf->metrics_series) != NGX_OK
        || ngx_sluice_series_init(cycle, conf->metrics_series) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_sluice_notify_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_sluice_stay_init((ngx_uint_t) ccf->worker_processes);

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_process_init_process(ngx_cycle_t *cycle)
{
    ngx_sluice_process_conf_t  *conf;

    conf = ngx_sluice_process_conf(cycle);

    ngx_sluice_events_leaving = ngx_sluice_process_leave;

    if (ngx_sluice_metrics_init_process(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_sluice_series_init_process();

    if (conf->control && ngx_process == NGX_PROCESS_WORKER
        && ngx_sluice_reader_init_process(cycle, ngx_worker == 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (conf->control && ngx_process == NGX_PROCESS_WORKER) {
        ngx_sluice_turn_init_process();

        if (ngx_worker != 0) {
            ngx_sluice_stay_init_process(cycle);
        }
    }

    return ngx_sluice_control_init_process(cycle);
}


static void
ngx_sluice_process_leave(ngx_cycle_t *cycle)
{
    ngx_sluice_grace_begin(cycle);
    ngx_sluice_reader_leave();
}


static void
ngx_sluice_process_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_sluice_targets_exit_process();
    ngx_sluice_reader_exit_process();
    ngx_sluice_turn_exit_process();
    ngx_sluice_control_exit_process();
    ngx_sluice_watch_exit_process();
    ngx_http_sluice_patterns_exit_process();
    ngx_sluice_digest_exit_process();
}
