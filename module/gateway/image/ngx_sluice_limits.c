
/*
 * Creates the counters of rate limits (ngx_sluice_limits.h).
 */


#include "ngx_sluice_limits.h"
#include "ngx_sluice_shared.h"

#include <sys/random.h>


static int ngx_sluice_limits_make(void *base, size_t size);
static int ngx_sluice_limits_attach(void *base, size_t size);


static ngx_sluice_shared_t  ngx_sluice_limits_shared = {
    .env = "SLUICE_LIMITS",
    .name = "sluice-limits"
};

static sluice_core_meter_t  ngx_sluice_limits;


ngx_int_t
ngx_sluice_limits_init(ngx_cycle_t *cycle, size_t size)
{
    ngx_sluice_shared_use_t  use = {
        .shared = &ngx_sluice_limits_shared,
        .size = size,
        .anew = "sluice_limits_size: another size, or another layout: all "
                "rate limits begin anew",
        .what = "the counters of rate limits",
        .init = ngx_sluice_limits_make,
        .attach = ngx_sluice_limits_attach
    };

    return size ? ngx_sluice_shared_use(cycle, &use) : NGX_OK;
}


/* Clients must not guess the key: it says whose counters share a place. */

static int
ngx_sluice_limits_make(void *base, size_t size)
{
    u_char  key[SLUICE_CORE_METER_KEY];

    return getrandom(key, sizeof(key), 0) == (ssize_t) sizeof(key)
           ? sluice_core_meter_init(base, size, key) : SLUICE_CORE_BAD;
}


static int
ngx_sluice_limits_attach(void *base, size_t size)
{
    return sluice_core_meter_attach(&ngx_sluice_limits, base, size);
}


const sluice_core_meter_t *
ngx_sluice_limits_meter(void)
{
    return ngx_sluice_limits_shared.base ? &ngx_sluice_limits : NULL;
}
