
/*
 * The libraries' module as nginx sees it: directives of events, and what is
 * done when a process begins and ends.
 */


#include "ngx_sluice_bounds.h"
#include "ngx_sluice_events.h"
#include "ngx_sluice_timer.h"


static void *ngx_sluice_module_create_conf(ngx_cycle_t *cycle);
static char *ngx_sluice_module_init_conf(ngx_cycle_t *cycle, void *conf);
static ngx_int_t ngx_sluice_module_init(ngx_cycle_t *cycle);
static void ngx_sluice_module_exit_process(ngx_cycle_t *cycle);


static ngx_sluice_bounds_t  ngx_sluice_module_size = {
    ngx_sluice_bounds_check, SLUICE_RING_SIZE_MIN, SLUICE_RING_SIZE_MAX,
    "\"sluice_events_size\" must be between 64k and 1024m"
};
static ngx_sluice_bounds_t  ngx_sluice_module_slots = {
    ngx_sluice_bounds_check, 1, SLUICE_RING_SLOTS,
    "\"sluice_events_slots\" must be between 1 and %ui"
};
static ngx_sluice_bounds_t  ngx_sluice_module_stall = {
    ngx_sluice_bounds_check, 100, 3600 * 1000,
    "\"sluice_events_stall\" must be between 100ms and 1h"
};


static ngx_command_t  ngx_sluice_module_commands[] = {

    { ngx_string("sluice_events_size"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_sluice_ring_conf_t, size),
      &ngx_sluice_module_size },

    { ngx_string("sluice_events_slots"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_sluice_ring_conf_t, slots),
      &ngx_sluice_module_slots },

    { ngx_string("sluice_events_stall"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_sluice_ring_conf_t, stall),
      &ngx_sluice_module_stall },

      ngx_null_command
};


static ngx_core_module_t  ngx_sluice_module_ctx = {
    ngx_string("sluice"),
    ngx_sluice_module_create_conf,
    ngx_sluice_module_init_conf
};


ngx_module_t  ngx_sluice_module = {
    NGX_MODULE_V1,
    &ngx_sluice_module_ctx,                /* module context */
    ngx_sluice_module_commands,            /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_sluice_module_init,                /* init module */
    ngx_sluice_events_init_process,        /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_sluice_module_exit_process,        /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_sluice_module_create_conf(ngx_cycle_t *cycle)
{
    ngx_sluice_ring_conf_t  *conf;

    conf = ngx_pcalloc(cycle->pool, sizeof(ngx_sluice_ring_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->size = NGX_CONF_UNSET_SIZE;
    conf->slots = NGX_CONF_UNSET;
    conf->stall = NGX_CONF_UNSET_MSEC;

    return conf;
}


static char *
ngx_sluice_module_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_sluice_ring_conf_t  *rcf = conf;

    ngx_conf_init_size_value(rcf->size, 16 * 1024 * 1024);
    ngx_conf_init_value(rcf->slots, 0);
    ngx_conf_init_msec_value(rcf->stall, 10000);

    return ngx_sluice_ring_check(cycle, rcf) == NGX_OK ? NGX_CONF_OK
                                                       : NGX_CONF_ERROR;
}


/* Runs in the master, before it forks, at the start and at each reload. */

static ngx_int_t
ngx_sluice_module_init(ngx_cycle_t *cycle)
{
    ngx_sluice_ring_conf_t  *conf;

    if (ngx_test_config) {
        return NGX_OK;
    }

    conf = (ngx_sluice_ring_conf_t *)
               ngx_get_conf(cycle->conf_ctx, ngx_sluice_module);

    if (ngx_sluice_ring_init(cycle, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_sluice_ring_keep(cycle);

    return NGX_OK;
}


static void
ngx_sluice_module_exit_process(ngx_cycle_t *cycle)
{
    ngx_sluice_timer_exit_process();
    ngx_sluice_events_exit_process(cycle);
}
