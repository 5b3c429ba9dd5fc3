
/*
 * Creates the area of series (ngx_sluice_series.h).
 */


#include "ngx_sluice_series.h"
#include "ngx_sluice_shared.h"

#include <sys/random.h>


#define NGX_SLUICE_SERIES_STRIPES  16
#define NGX_SLUICE_SERIES_TEXT     256       /* bytes of a line's labels */


static int ngx_sluice_series_make(void *base, size_t size);
static int ngx_sluice_series_attach(void *base, size_t size);


static ngx_sluice_shared_t  ngx_sluice_series_memory = {
    .env = "SLUICE_SERIES",
    .name = "sluice-series"
};

static sluice_series_shape_t  ngx_sluice_series_shape = {
    .numbers = {
        [SLUICE_SERIES_REQUESTS] = 1,
        [SLUICE_SERIES_BYTES] = 2,
        [SLUICE_SERIES_TIMES] = 49
    },
    .stripes = NGX_SLUICE_SERIES_STRIPES,
    .text = NGX_SLUICE_SERIES_TEXT
};

static sluice_series_t  ngx_sluice_series_area;


ngx_int_t
ngx_sluice_series_init(ngx_cycle_t *cycle, ngx_int_t series)
{
    uint32_t                *lines;
    ngx_sluice_shared_use_t  use = {
        .shared = &ngx_sluice_series_memory,
        .any_size = 1,
        .anew = "sluice: the old nginx has series of another layout: the new "
                "one begins anew",
        .what = "the series of metrics",
        .init = ngx_sluice_series_make,
        .attach = ngx_sluice_series_attach
    };

    lines = ngx_sluice_series_shape.lines;
    lines[SLUICE_SERIES_REQUESTS] = NGX_SLUICE_SERIES_FOLD * series;
    lines[SLUICE_SERIES_BYTES] = NGX_SLUICE_SERIES_FOLD * series;
    lines[SLUICE_SERIES_TIMES] = series;

    use.size = (size_t) sluice_series_size(&ngx_sluice_series_shape);

    return ngx_sluice_shared_use(cycle, &use);
}


static int
ngx_sluice_series_make(void *base, size_t size)
{
    u_char  key[16];

    return getrandom(key, sizeof(key), 0) == (ssize_t) sizeof(key)
           ? sluice_series_init(base, size, &ngx_sluice_series_shape, key)
           : SLUICE_CORE_BAD;
}


static int
ngx_sluice_series_attach(void *base, size_t size)
{
    return sluice_series_attach(&ngx_sluice_series_area, base, size);
}


void
ngx_sluice_series_init_process(void)
{
    if (ngx_sluice_series_memory.base) {
        sluice_series_use(&ngx_sluice_series_area, (uint32_t) ngx_worker);
    }
}


sluice_series_t *
ngx_sluice_series(void)
{
    return ngx_sluice_series_memory.base ? &ngx_sluice_series_area : NULL;
}


const sluice_series_t *
sluice_series_shared(void)
{
    return ngx_sluice_series();
}
