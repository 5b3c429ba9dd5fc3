
/*
 * Birth of the counters of rate limits (ngx_sluice_limits.h).
 */


#include "ngx_sluice.h"
#include "ngx_sluice_limits.h"
#include "ngx_sluice_shared.h"

#include <sys/random.h>


static ngx_int_t ngx_sluice_limits_create(ngx_cycle_t *cycle, size_t size);
static ngx_int_t ngx_sluice_limits_attach(void);


static ngx_sluice_shared_t  ngx_sluice_limits_shared = {
    .env = "SLUICE_LIMITS",
    .name = "sluice-limits"
};

static sluice_core_meter_t  ngx_sluice_limits;


/* Runs in the master, before it forks, at the start and at each reload. */

ngx_int_t
ngx_sluice_limits_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf)
{
    ngx_sluice_shared_t  *shared;

    shared = &ngx_sluice_limits_shared;

    if (conf->limits_size == 0) {
        return NGX_OK;
    }

    if (shared->base == NULL) {
        (void) ngx_sluice_shared_adopt(shared);
    }

    if (shared->base
        && (shared->size != conf->limits_size
            || ngx_sluice_limits_attach() != NGX_OK))
    {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "sluice_limits_size: another size, or another layout: "
                      "all rate limits begin anew");

        ngx_sluice_shared_drop(shared);
    }

    if (shared->base == NULL
        && ngx_sluice_limits_create(cycle, conf->limits_size) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_sluice_env_keep(cycle, shared->entry);

    return NGX_OK;
}


/* Clients must not guess the key: it says whose counters share a place. */

static ngx_int_t
ngx_sluice_limits_create(ngx_cycle_t *cycle, size_t size)
{
    u_char                key[SLUICE_CORE_METER_KEY];
    ngx_sluice_shared_t  *shared;

    shared = &ngx_sluice_limits_shared;

    if (ngx_sluice_shared_create(cycle, shared, size) != NGX_OK) {
        return NGX_ERROR;
    }

    if (getrandom(key, sizeof(key), 0) != (ssize_t) sizeof(key)
        || sluice_core_meter_init(shared->base, size, key) != SLUICE_CORE_OK
        || ngx_sluice_limits_attach() != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: cannot make the counters of rate limits");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_limits_attach(void)
{
    return sluice_core_meter_attach(&ngx_sluice_limits,
                                    ngx_sluice_limits_shared.base,
                                    ngx_sluice_limits_shared.size)
           == SLUICE_CORE_OK ? NGX_OK : NGX_ERROR;
}


const sluice_core_meter_t *
ngx_sluice_limits_meter(void)
{
    return ngx_sluice_limits_shared.base ? &ngx_sluice_limits : NULL;
}
