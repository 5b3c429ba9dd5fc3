
/*
 * The peers of an upstream, or of a host that is none, and which is picked.
 *
 * A balancer outlives epochs: it is kept as long as the upstream, its targets
 * and the addresses of their names are the same.  Where all that a worker has
 * are larger than 32 MB, those that no service uses go, the longest unused
 * one first.
 *
 * All workers pick the peers of an upstream together, from a position in
 * shared memory (ngx_http_sluice_balancer_positions).  Those of an upstream
 * whose slot has none, and of a host, are each worker's own, from a random
 * start.
 *
 * Peers of one address count as one when they are tried: a target by its name
 * and one by its address, say.
 */


#ifndef NGX_HTTP_SLUICE_BALANCER_H_INCLUDED
#define NGX_HTTP_SLUICE_BALANCER_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "balancer.h"
#include "core.h"


typedef struct {
    struct sockaddr           *sockaddr;
    ngx_str_t                  name;         /* the address, as nginx has it */
    ngx_str_t                  host;         /* of the Host header */
    socklen_t                  socklen;
    uint32_t                   same;         /* the next of this address, in
                                                a ring */
} ngx_http_sluice_peer_t;


typedef struct {
    ngx_str_node_t               node;       /* its key: what it is of */
    size_t                       size;       /* bytes, about */

    /* what a request reads, in one line of a cache */

    ngx_http_sluice_peer_t      *peers;
    ngx_uint_t                   count;      /* 0: nobody to pick */
    sluice_balancer_t           *picks;
    sluice_balancer_position_t  *position;
    uint32_t                     generation; /* of the upstream */
    unsigned                     upstream:1; /* it is of one */
    sluice_balancer_position_t   own;        /* position, if not shared */

    ngx_queue_t                  idle;       /* among those without pins */
    ngx_pool_t                  *pool;
    ngx_uint_t                   pins;       /* services */
    ngx_uint_t                   replaced;   /* it is found no more */

    uint64_t                    *made_of;    /* slots and revisions */
    ngx_uint_t                   made_of_count;

    /* names without addresses, where there is nobody to pick */

    ngx_str_t                   *unknown;
    ngx_uint_t                   unknown_count;
    ngx_msec_t                   wanted;     /* when they were asked for */
    unsigned                     was_wanted:1;
} ngx_http_sluice_balancer_t;


/* What one is made of, as the image has it: good until the event loop. */

typedef struct {
    ngx_str_t                  host;         /* without brackets */
    sluice_core_found_t        name;         /* has its addresses; record NULL:
                                                it is one, or has none */
    uint32_t                   weight;
    in_port_t                  port;
} ngx_http_sluice_balancer_target_t;

typedef struct {
    ngx_pool_t                *pool;         /* for as long */
    ngx_str_t                  host;
    in_port_t                  port;
    ngx_uint_t                 https;

    ngx_str_t                  key;
    ngx_array_t                made_of;      /* of uint64_t */
    ngx_array_t                targets;      /* _target_t */

    sluice_core_found_t        upstream;     /* record NULL: host is none */
    uint32_t                   slot;         /* of the upstream */
    uint32_t                   generation;
} ngx_http_sluice_balancer_source_t;


/* ngx_http_sluice_balancer_read.c */

/* From pool, host, port and https to the rest.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_balancer_read(
    ngx_http_sluice_balancer_source_t *source);

/* From pool and port to targets, one for each address; the same. */
ngx_int_t ngx_http_sluice_balancer_read_addresses(
    ngx_http_sluice_balancer_source_t *source, const ngx_array_t *addresses);

/* ngx_http_sluice_balancer_build.c */

/*
 * By slot of an upstream, in shared memory; NULL without "sluice_control on"
 * (ngx_sluice_page.c).
 */

#define NGX_HTTP_SLUICE_BALANCER_POSITIONS  16384

extern sluice_balancer_position_t  *ngx_http_sluice_balancer_positions;

/* NULL: no memory. */
ngx_http_sluice_balancer_t *ngx_http_sluice_balancer_build(
    ngx_http_sluice_balancer_source_t *source);

/* ngx_http_sluice_balancer.c */

/*
 * That of a service's host and port, of what the last refresh has found; the
 * caller's until a pool is destroyed.  NULL: no memory.
 */
ngx_http_sluice_balancer_t *ngx_http_sluice_balancer(ngx_str_t *host,
    in_port_t port, ngx_uint_t https, ngx_pool_t *pool);

/*
 * One of given addresses (of ngx_str_t, IPv6 in brackets), which no other
 * request has: it is destroyed with the pool.  NULL: no memory.
 */
ngx_http_sluice_balancer_t *ngx_http_sluice_balancer_of(
    const ngx_array_t *addresses, in_port_t port, ngx_uint_t https,
    ngx_pool_t *pool);

/* Whether those that are in use are larger than they may be. */
ngx_uint_t ngx_http_sluice_balancer_is_full(void);

/* Words of 64 bits that have a bit for each peer. */
#define ngx_http_sluice_balancer_words(balancer)                              \
    sluice_balancer_words((balancer)->picks)

/*
 * Picks a peer: its number.  tried is NULL, or words of bits: none of those.
 * NGX_ERROR: there is no peer, or all were tried.
 */
ngx_int_t ngx_http_sluice_balancer_pick(ngx_http_sluice_balancer_t *balancer,
    uint64_t *tried);

/*
 * The peer of a try after the first, and notes it: who was tried comes again
 * only when all were, and not twice in a row.  last is that of the try before.
 * NGX_ERROR: there is no peer.
 */
ngx_int_t ngx_http_sluice_balancer_next(ngx_http_sluice_balancer_t *balancer,
    ngx_uint_t last, uint64_t *tried);

/* Sets the bits of a peer, and of others of its address. */
void ngx_http_sluice_balancer_mark(ngx_http_sluice_balancer_t *balancer,
    ngx_uint_t peer, uint64_t *tried);


/* ngx_http_sluice_balancer_want.c */

/*
 * Of one without peers: has the control worker ask for its names now, once a
 * second at most.
 */
void ngx_http_sluice_balancer_want(ngx_http_sluice_balancer_t *balancer);


#endif /* NGX_HTTP_SLUICE_BALANCER_H_INCLUDED */
