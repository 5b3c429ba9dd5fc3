
/*
 * The peers of an upstream, or of a host that is none, and whose turn it is.
 *
 * A rotation outlives epochs: it is kept as long as the upstream, its targets
 * and the addresses of their names are the same.  Those that no destination
 * uses go, the one first that was not asked for longest, when all of this
 * worker's together are larger than 32 MB.
 *
 * Turns of an upstream are taken by all workers together, from a position in
 * shared memory (ngx_sluice_page_position()).  An upstream whose slot has none
 * and a host take them in each worker, from a random start.
 *
 * Peers with the same address count as one when they are tried: a target by
 * its name and one by its address, say.
 */


#ifndef NGX_HTTP_SLUICE_ROTATION_H_INCLUDED
#define NGX_HTTP_SLUICE_ROTATION_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "balance.h"


typedef struct {
    struct sockaddr           *sockaddr;
    ngx_str_t                  name;         /* the address, as nginx has it */
    ngx_str_t                  host;         /* of the Host header */
    socklen_t                  socklen;
    uint32_t                   same;         /* the next of this address, in
                                                a ring */
} ngx_http_sluice_peer_t;


typedef struct {
    ngx_str_node_t             node;         /* what it is of */
    ngx_queue_t                queue;        /* the latest first */
    ngx_pool_t                *pool;
    size_t                     size;
    ngx_uint_t                 holders;      /* destinations */

    uint64_t                  *made_of;      /* slots and revisions */
    ngx_uint_t                 made_of_count;

    ngx_http_sluice_peer_t    *peers;
    ngx_uint_t                 count;        /* 0: nobody takes a turn */
    ngx_str_t                  host;         /* of all; empty: they differ */

    sluice_core_rotation_t    *turns;
    sluice_core_position_t    *position;
    sluice_core_position_t     own;          /* position, if not shared */
    uint32_t                   generation;   /* of the upstream */

    unsigned                   host_varies:1;
    unsigned                   upstream:1;   /* it is of one */
    unsigned                   replaced:1;   /* it is found no more */
} ngx_http_sluice_rotation_t;


/*
 * That of a service's host and port, of what the last refresh has found; the
 * caller's until a pool is destroyed.  NULL: no memory.
 */
ngx_http_sluice_rotation_t *ngx_http_sluice_rotation(ngx_str_t *host,
    in_port_t port, ngx_uint_t https, ngx_pool_t *pool);

/* Words of 64 bits that have a bit for each peer. */
#define ngx_http_sluice_rotation_words(rotation)                              \
    sluice_core_rotation_words((rotation)->turns)

/*
 * Takes a turn: the number of a peer.  tried is NULL, or words of bits: one
 * that was tried comes again only if all were, and the bit of whom it is now
 * is set, with those of its address.  NGX_ERROR: there is none.
 */
ngx_int_t ngx_http_sluice_rotation_pick(ngx_http_sluice_rotation_t *rotation,
    uint64_t *tried);

/* Sets the bits of a peer's address. */
void ngx_http_sluice_rotation_mark(ngx_http_sluice_rotation_t *rotation,
    ngx_uint_t peer, uint64_t *tried);


#endif /* NGX_HTTP_SLUICE_ROTATION_H_INCLUDED */
