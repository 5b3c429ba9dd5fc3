
/*
 * The shared memory of images (ngx_sluice_images.h): what stands where, and
 * whether that of the master before us is of any use.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_sluice_redact.h"
#include "ngx_sluice_shared.h"
#include "ngx_sluice_tickets.h"


#define NGX_SLUICE_PAGE_MAGIC    0x4547415045434c53ull      /* "SLCEPAGE" */
#define NGX_SLUICE_PAGE_LAYOUT   9             /* grows with each change */

/* Upstreams that have a position; a page that no turn was taken in is free. */
#define NGX_SLUICE_PAGE_POSITIONS  16384


typedef struct {
    uint64_t           magic;
    uint32_t           layout;
    uint32_t           core;               /* layout of what is published */
    uint64_t           size;               /* of all of it, in bytes */
    _Atomic uint64_t   crl;                /* which lists are live; 0: none */
    uint64_t           zero[4];

    _Alignas(64)
    sluice_control_t   control;

    _Alignas(64)
    ngx_sluice_tickets_t  tickets;

    _Alignas(64)
    ngx_sluice_secrets_t  secrets;

    _Alignas(64)
    u_char             page[64];           /* sluice_core_page_size() */
} ngx_sluice_page_t;


static ngx_int_t ngx_sluice_page_adopt(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_page_create(ngx_cycle_t *cycle, uint32_t series);


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
     + NGX_SLUICE_PAGE_POSITIONS * sizeof(sluice_core_position_t))


/* Runs in the master, before it forks, at the start and at each reload. */

ngx_int_t
ngx_sluice_page_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf)
{
    if (ngx_sluice_page == NULL
        && ngx_sluice_page_adopt(cycle) != NGX_OK
        && ngx_sluice_page_create(cycle, (uint32_t) conf->metrics_series)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

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
    size_t    size;
    uint32_t  seats;

    seats = ngx_sluice_ring.ring.count;
    size = ngx_sluice_page_counts + ngx_sluice_metrics_size(seats, series);

    if (ngx_sluice_shared_create(cycle, &ngx_sluice_page_shared, size)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_sluice_page->magic = NGX_SLUICE_PAGE_MAGIC;
    ngx_sluice_page->layout = NGX_SLUICE_PAGE_LAYOUT;
    ngx_sluice_page->core = SLUICE_CORE_LAYOUT;
    ngx_sluice_page->size = size;

    ngx_sluice_page_metrics(NULL)->series = series;
    ngx_sluice_page_metrics(NULL)->count = seats;

    return NGX_OK;
}


/* Where is published what is live; NULL without "sluice_control on". */

sluice_core_page_t *
sluice_images_page(void)
{
    return ngx_sluice_page ? (sluice_core_page_t *) ngx_sluice_page->page
                           : NULL;
}


/*
 * Where all workers together take an upstream's turns.  NULL for a slot that
 * has no position, and without "sluice_control on".
 */

sluice_core_position_t *
ngx_sluice_page_position(uint32_t slot)
{
    if (ngx_sluice_page == NULL || slot >= NGX_SLUICE_PAGE_POSITIONS) {
        return NULL;
    }

    return (sluice_core_position_t *)
               ((u_char *) ngx_sluice_page + ngx_sluice_page_positions) + slot;
}


/*
 * What is counted, and the descriptor of its file; NULL without
 * "sluice_control on".
 */

ngx_sluice_metrics_t *
ngx_sluice_page_metrics(int *fd)
{
    if (ngx_sluice_page == NULL) {
        return NULL;
    }

    if (fd) {
        *fd = ngx_sluice_page_shared.fd;
    }

    return (ngx_sluice_metrics_t *)
               ((u_char *) ngx_sluice_page + ngx_sluice_page_counts);
}


/* NULL without "sluice_control on". */

ngx_sluice_tickets_t *
ngx_sluice_page_tickets(void)
{
    return ngx_sluice_page ? &ngx_sluice_page->tickets : NULL;
}


/* NULL without "sluice_control on". */

_Atomic uint64_t *
ngx_sluice_page_crl(void)
{
    return ngx_sluice_page ? &ngx_sluice_page->crl : NULL;
}


ngx_sluice_secrets_t *
ngx_sluice_page_secrets(void)
{
    return ngx_sluice_page ? &ngx_sluice_page->secrets : NULL;
}


/* NULL without "sluice_control on". */

sluice_control_t *
sluice_control_block(void)
{
    return ngx_sluice_page ? &ngx_sluice_page->control : NULL;
}
