
/*
 * What this worker has compiled of what is published: services, plugin
 * chains, configurations.  A thing is compiled when a request first needs it
 * and found by its slot from then on.
 *
 * All of an epoch (ngx_sluice_images.h) stands in one pool, but for the
 * tables that find it, which go with the pool and are counted with it.  The
 * next epoch begins with an empty one, and so does an epoch whose pool has
 * come to 8 MB: memory does not grow with the configuration, and nothing is
 * evicted one by one.  A pool that is not live any more goes with the last
 * request that holds it.  Requests that last (tunnels, downloads) do not keep
 * it: each time a pool is replaced, those that hold an old one are asked to
 * leave it.
 *
 * A request holds the live pool from its match on, and compiles into no other.
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


/*
 * Whether a request has all that it still needs in its own memory, and uses
 * the pools that it holds no more.
 */
typedef ngx_uint_t (*ngx_http_sluice_live_leave_pt)(ngx_http_request_t *r);


struct ngx_http_sluice_live_s {
    ngx_pool_t                    *pool;     /* values are in it, or die
                                                with it */
    size_t                         size;     /* bytes of what was counted:
                                                tables, */
    ngx_pool_t                    *last;     /*   blocks up to this one, */
    ngx_pool_large_t              *large;    /*   large pieces from this on */
    uint64_t                       epoch;
    ngx_queue_t                    holders;  /* requests */
    ngx_queue_t                    queue;    /* among the old ones */
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
 * Keeps it until the request is freed, or has left it.  leave is called from
 * within ngx_http_sluice_live(), as often as that makes a new one, for any
 * request but the one that it is called for.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_live_hold(ngx_http_sluice_live_t *live,
    ngx_http_request_t *r, ngx_http_sluice_live_leave_pt leave);

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
