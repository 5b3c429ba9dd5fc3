
/*
 * What this worker has compiled of what is published: services, plugin
 * chains, configurations.  A thing is compiled when a request first needs it
 * and found by its slot from then on.
 *
 * All of an epoch (ngx_sluice_images.h) stands in one pool.  The next epoch
 * begins with an empty one, and so does an epoch whose pool has come to 8 MB:
 * memory does not grow with the configuration, and nothing is evicted one by
 * one.  A pool that is not live any more goes with the last request that
 * holds it.
 *
 * A request takes the live one once, right after its match, and uses no other.
 * What it lets compile later, after a return to the event loop, is of what is
 * published by then: whoever does that compares generation and revision with
 * what the match has said.
 */


#ifndef NGX_HTTP_SLUICE_LIVE_H_INCLUDED
#define NGX_HTTP_SLUICE_LIVE_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/* Values of one kind, each under a slot; SLUICE_CORE_NOBODY is one, too. */

typedef enum {
    NGX_HTTP_SLUICE_LIVE_SERVICES = 0,       /* destinations, by service */
    NGX_HTTP_SLUICE_LIVE_CHAINS,             /* by service */
    NGX_HTTP_SLUICE_LIVE_ROUTE_CHAINS,       /* by route */
    NGX_HTTP_SLUICE_LIVE_CONFS,              /* by plugin binding */
    NGX_HTTP_SLUICE_LIVE_TABLES
} ngx_http_sluice_live_table_e;


typedef struct {
    void        *value;                      /* NULL: unused */
    uint32_t     slot;
} ngx_http_sluice_live_entry_t;


typedef struct {
    ngx_http_sluice_live_entry_t  *entries;  /* NULL: nothing yet */
    ngx_uint_t                     bits;     /* of their number */
    ngx_uint_t                     used;
} ngx_http_sluice_live_table_t;


struct ngx_http_sluice_live_s {
    ngx_pool_t                    *pool;     /* values are in it, or die
                                                with it */
    size_t                         size;     /* bytes of what was counted: */
    ngx_pool_t                    *last;     /*   blocks up to this one, */
    ngx_pool_large_t              *large;    /*   large pieces from this on */
    uint64_t                       epoch;
    ngx_uint_t                     holders;  /* requests */
    ngx_http_sluice_live_table_t   tables[NGX_HTTP_SLUICE_LIVE_TABLES];

    unsigned                       full:1;   /* the next request makes a new
                                                one */
};


/*
 * That of what the last refresh has found, empty at first.  NULL: nothing is
 * published, this worker cannot map it, or there is no memory.
 */
ngx_http_sluice_live_t *ngx_http_sluice_live(void);

/*
 * Keeps it until a pool is destroyed, which is a request's: once a request.
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_live_hold(ngx_http_sluice_live_t *live,
    ngx_pool_t *pool);

/* What was put there; NULL: nothing. */
void *ngx_http_sluice_live_get(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_e table, uint32_t slot);

/*
 * Puts a value, not NULL, in place of the one that is there: that one stays
 * good, since requests may use it.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_live_put(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_e table, uint32_t slot, void *value);


#endif /* NGX_HTTP_SLUICE_LIVE_H_INCLUDED */
