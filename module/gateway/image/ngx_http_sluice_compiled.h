
/*
 * What this worker has compiled of what is published: services, plugin
 * chains, configurations.  A thing is compiled when a request first needs it
 * and found by its slot from then on.
 *
 * All of an epoch (ngx_sluice_images.h) stands in one pool, but for the
 * tables that find it, which go with the pool and are counted with it.  The
 * next epoch begins with an empty one, and so does an epoch whose pool has
 * come to 8 MB: memory does not grow with the configuration, and nothing is
 * evicted one by one.  A pool that is not current any more goes with the last
 * request that pins it.  Requests that last (tunnels, downloads) do not keep
 * it: each time a pool is replaced, those that pin an old one are asked to
 * detach from it.
 *
 * A request pins the current pool from its match on, and compiles into no
 * other.
 */


#ifndef NGX_HTTP_SLUICE_COMPILED_H_INCLUDED
#define NGX_HTTP_SLUICE_COMPILED_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/* Values of one kind, each under a slot. */

typedef enum {
    NGX_HTTP_SLUICE_COMPILED_SERVICES = 0,   /* services, by slot */
    NGX_HTTP_SLUICE_COMPILED_CHAINS,         /* by service */
    NGX_HTTP_SLUICE_COMPILED_ROUTE_CHAINS,   /* by route */
    NGX_HTTP_SLUICE_COMPILED_CONFS,          /* by plugin binding */
    NGX_HTTP_SLUICE_COMPILED_LOG_ROUTES,     /* as logs have them, by slot */
    NGX_HTTP_SLUICE_COMPILED_LOG_SERVICES,   /* the same */
    NGX_HTTP_SLUICE_COMPILED_TABLES
} ngx_http_sluice_compiled_table_e;


typedef struct {
    void        *value;                      /* NULL: unused */
    uint32_t     slot;
} ngx_http_sluice_compiled_entry_t;


typedef struct {
    ngx_http_sluice_compiled_entry_t  *entries;  /* NULL: nothing yet */
    ngx_uint_t                         bits;     /* of their number */
    ngx_uint_t                         used;
} ngx_http_sluice_compiled_table_t;


/*
 * Whether a request has all that it still needs in its own memory, and uses
 * the pools that it pins no more.
 */
typedef ngx_uint_t (*ngx_http_sluice_compiled_detach_pt)(
    ngx_http_request_t *r);


struct ngx_http_sluice_compiled_s {
    ngx_pool_t                       *pool;   /* values are in it, or die
                                                 with it */
    size_t                            size;   /* bytes of what was counted:
                                                 tables, */
    ngx_pool_t                       *last;   /*   blocks up to this one, */
    ngx_pool_large_t                 *large;  /*   large pieces from this on */
    uint64_t                          epoch;
    ngx_queue_t                       pins;   /* requests */
    ngx_queue_t                       queue;  /* among the old ones */
    ngx_http_sluice_compiled_table_t  tables[NGX_HTTP_SLUICE_COMPILED_TABLES];
    ngx_http_sluice_chain_t          *global; /* of global plugins alone; NULL:
                                                 not yet */

    unsigned                          full:1; /* the next request makes a new
                                                 one */
};


/*
 * That of what the last refresh has found, empty at first.  NULL: nothing is
 * published, this worker cannot map it, or there is no memory.
 */
ngx_http_sluice_compiled_t *ngx_http_sluice_compiled(void);

/*
 * Pins it until the request is freed, or has detached.  detach is called from
 * within ngx_http_sluice_compiled(), as often as that makes a new one, for any
 * request but the one that it is called for.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_compiled_pin(ngx_http_sluice_compiled_t *compiled,
    ngx_http_request_t *r, ngx_http_sluice_compiled_detach_pt detach);

/* What was put there; NULL: nothing. */
void *ngx_http_sluice_compiled_get(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, uint32_t slot);

/*
 * Puts a value, not NULL, in place of the one that is there: that one stays
 * good, since requests may use it.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_compiled_put(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, uint32_t slot, void *value);


#endif /* NGX_HTTP_SLUICE_COMPILED_H_INCLUDED */
