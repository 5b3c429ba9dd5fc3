
/*
 * The shared memory of images (ngx_sluice_images.h) and of others: what stands
 * where, and whether that of the master before us is of any use.
 */


#include "ngx_http_sluice_crl.h"
#include "ngx_http_sluice_balancer.h"
#include "ngx_sluice_env.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_metrics.h"
#include "ngx_sluice_process.h"
#include "ngx_sluice_redact.h"
#include "ngx_sluice_ring.h"
#include "ngx_sluice_shared.h"
#include "ngx_sluice_tickets.h"


#define NGX_SLUICE_PAGE_MAGIC    0x4547415045434c53ull      /* "SLCEPAGE" */
#define NGX_SLUICE_PAGE_LAYOUT   11            /* grows with each change */


typedef struct {
    uint64_t           magic;
    uint32_t           layout;
    uint32_t           core;               /* layout of what is published */
    uint64_t           size;               /* of all of it, in bytes */
    _Atomic uint64_t   crl;                /* which lists are live; 0: none */
    ngx_sluice_stay_t  stay;               /* zeros of an older Sluice */
    uint64_t           zero;

    _Alignas(64)
    sluice_control_t   control;

    _Alignas(64)
    ngx_sluice_tickets_t  tickets;

    _Alignas(64)
    ngx_sluice_secrets_t  secrets;

    _Alignas(64)
    sluice_core_generations_t  generations;

    _Alignas(64)
    u_char             page[64];           /* sluice_core_page_size() */
} ngx_sluice_page_t;


static ngx_int_t ngx_sluice_page_adopt(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_page_create(ngx_cycle_t *cycle, uint32_t series);
static void ngx_sluice_page_share(void);


static ngx_sluice_shared_t  ngx_sluice_page_shared = {
    .env = "SLUICE_IMAGES",
    .name = "sluice-images"
};


#define ngx_sluice_page                                                       \
    ((ngx_sluice_page_t *) ngx_sluice_page_shared.base)

/* Behind what is published stand positions, then what is counted. */

#define ngx_sluice_page_positions                                             \
    ngx_align(offsetof(ngx_sluice_page_t, page) + sluice_core_page_size(), 64)

#define ngx_sluice_page_counts                                                \
    (ngx_sluice_page_positions                                                \
     + NGX_HTTP_SLUICE_BALANCER_POSITIONS * sizeof(sluice_balancer_position_t))


/* Runs in the master, before it forks, at the start and at each reload. */

ngx_int_t
ngx_sluice_page_init(ngx_cycle_t *cycle, ngx_int_t series)
{
    if (ngx_sluice_page == NULL
        && ngx_sluice_page_adopt(cycle) != NGX_OK
        && ngx_sluice_page_create(cycle, (uint32_t) series) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_sluice_page_share();
    ngx_sluice_env_keep(cycle, ngx_sluice_page_shared.entry);

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_page_adopt(ngx_cycle_t *cycle)
{
    if (ngx_sluice_shared_adopt(&ngx_sluice_page_shared) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_sluice_page_shared.size
        >= ngx_sluice_page_counts + sizeof(ngx_sluice_metrics_t)
        && ngx_sluice_page->magic == NGX_SLUICE_PAGE_MAGIC
        && ngx_sluice_page->layout == NGX_SLUICE_PAGE_LAYOUT
        && ngx_sluice_page->core == SLUICE_CORE_LAYOUT
        && ngx_sluice_page->size == ngx_sluice_page_shared.size)
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "sluice: the old nginx has images of another layout: the "
                  "new one makes its own, once it may write the store");

    ngx_sluice_shared_drop(&ngx_sluice_page_shared);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_sluice_page_create(ngx_cycle_t *cycle, uint32_t series)
{
    size_t                 size;
    uint32_t               shards;
    ngx_sluice_metrics_t  *metrics;

    shards = ngx_sluice_ring.ring.count;
    size = ngx_sluice_page_counts + ngx_sluice_metrics_size(shards, series);

    if (ngx_sluice_shared_create(cycle, &ngx_sluice_page_shared, size)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_sluice_page->magic = NGX_SLUICE_PAGE_MAGIC;
    ngx_sluice_page->layout = NGX_SLUICE_PAGE_LAYOUT;
    ngx_sluice_page->core = SLUICE_CORE_LAYOUT;
    ngx_sluice_page->size = size;

    metrics = (ngx_sluice_metrics_t *)
                  ((u_char *) ngx_sluice_page + ngx_sluice_page_counts);
    metrics->series = series;
    metrics->count = shards;

    return NGX_OK;
}


/* Hands each room its part; workers have it by their fork. */

static void
ngx_sluice_page_share(void)
{
    u_char  *base;

    base = ngx_sluice_page_shared.base;

    ngx_sluice_images_page = (sluice_core_page_t *) ngx_sluice_page->page;
    ngx_sluice_images_control = &ngx_sluice_page->control;
    ngx_sluice_images_generations = &ngx_sluice_page->generations;
    ngx_http_sluice_crl_live = &ngx_sluice_page->crl;
    ngx_sluice_stay = &ngx_sluice_page->stay;
    ngx_sluice_tickets = &ngx_sluice_page->tickets;
    ngx_sluice_secrets = &ngx_sluice_page->secrets;

    ngx_http_sluice_balancer_positions =
        (sluice_balancer_position_t *) (base + ngx_sluice_page_positions);

    ngx_sluice_metrics =
                     (ngx_sluice_metrics_t *) (base + ngx_sluice_page_counts);
    ngx_sluice_metrics_fd = ngx_sluice_page_shared.fd;
}
