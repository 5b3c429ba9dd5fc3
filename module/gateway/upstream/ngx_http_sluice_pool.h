
/*
 * Idle connections to upstreams, found by whom they are to.
 *
 * A pool is one worker's.  A look-up costs the same whatever the number of
 * connections: a table of chains by the hash of the key, which has a chain for
 * each connection that there is room for.  Clients that choose names
 * (preserve_host) can make them meet in one chain; a look-up in it then costs
 * what each costs in nginx's own pool, which is a list.
 */


#ifndef NGX_HTTP_SLUICE_POOL_H_INCLUDED
#define NGX_HTTP_SLUICE_POOL_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_sluice_upstream_tls.h"


/*
 * Who is spoken to by TLS, and as whom.  CAs, client certificate, protocols
 * and the rest of proxy_ssl_* are the context's: two of the same contents are
 * two identities.  A connection holds its context, so that no other can come
 * to have that address while the connection is kept.  What is the service's
 * own is known by its digest.
 */

typedef struct {
    SSL_CTX                      *ctx;          /* NULL: no TLS */
    u_char                        service[NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST];
    ngx_str_t                     name;         /* empty: not looked at */
    unsigned                      server_name:1;   /* is sent (SNI) */
    unsigned                      verify:1;        /* is verified */
} ngx_http_sluice_pool_tls_t;


/* To whom a connection is.  As in nginx, proxy_bind is not looked at. */

typedef struct {
    uint64_t                      hash;
    struct sockaddr              *sockaddr;
    socklen_t                     socklen;
    ngx_http_sluice_pool_tls_t    tls;
} ngx_http_sluice_pool_key_t;


typedef struct {
    ngx_uint_t                    size;         /* connections, at most */
    ngx_uint_t                    requests;     /* of one connection */
    ngx_msec_t                    time;         /* in which it takes them */
    ngx_msec_t                    timeout;      /* that it may be idle */

    ngx_uint_t                    count;
    ngx_queue_t                   recent;       /* entries, the latest first */
    ngx_queue_t                  *chains;       /* entries, the latest first */
    ngx_uint_t                    mask;
} ngx_http_sluice_pool_t;


/* In its connection's memory, from when that is first kept. */

typedef struct {
    ngx_queue_t                   recent;
    ngx_queue_t                   chain;
    ngx_http_sluice_pool_t       *pool;
    ngx_connection_t             *connection;
    ngx_http_sluice_pool_key_t    key;
} ngx_http_sluice_pool_entry_t;


/* Of a request to an upstream: what its current try does. */

typedef struct {
    ngx_http_sluice_pool_t        *pool;        /* NULL: nothing is kept */
    ngx_http_sluice_pool_key_t     key;
    ngx_http_sluice_pool_entry_t  *entry;       /* NULL: a new connection */
    ngx_uint_t                     pooled;      /* this try may use the pool:
                                                   key and entry are set */
} ngx_http_sluice_pool_use_t;


/* ngx_http_sluice_pool.c */

/* A pool of nobody's: without connections, with the limits that nginx has. */

void ngx_http_sluice_pool_init(ngx_http_sluice_pool_t *pool);

/* Any of keepalive=, requests=, timeout=, time=.  NGX_ERROR: none of them. */

ngx_int_t ngx_http_sluice_pool_set(ngx_http_sluice_pool_t *pool,
    ngx_str_t *value);

void ngx_http_sluice_pool_begin(ngx_http_sluice_pool_use_t *use,
    ngx_http_sluice_pool_t *pool);

/*
 * For a try whose address is known.  NGX_OK: a connection is to be made;
 * NGX_DONE: pc has one; NGX_ERROR: no memory.
 */

ngx_int_t ngx_http_sluice_pool_get(ngx_http_sluice_pool_use_t *use,
    ngx_http_request_t *r, ngx_peer_connection_t *pc);

/* Takes the connection of a try that is pooled, if it can be used again. */

void ngx_http_sluice_pool_free(ngx_http_sluice_pool_use_t *use,
    ngx_http_request_t *r, ngx_peer_connection_t *pc, ngx_uint_t state);

/* ngx_http_sluice_pool_table.c */

/* NGX_ERROR: no memory. */

ngx_int_t ngx_http_sluice_pool_create(ngx_http_sluice_pool_t *pool,
    ngx_pool_t *memory);

/* The latest of this key, which is then the caller's; NULL: there is none. */

ngx_http_sluice_pool_entry_t *ngx_http_sluice_pool_take(
    ngx_http_sluice_pool_t *pool, ngx_http_sluice_pool_key_t *key);

/*
 * Makes an entry for a connection that has not been kept before; NULL: no
 * memory.  The key is copied.
 */

ngx_http_sluice_pool_entry_t *ngx_http_sluice_pool_make_entry(
    ngx_http_sluice_pool_t *pool, ngx_http_sluice_pool_key_t *key,
    ngx_connection_t *c);

/*
 * Keeps a connection on which nothing is under way; the one that was idle for
 * longest goes if there is no room.  It is closed at its timeout, at whatever
 * comes from the upstream, and when the worker leaves.
 */

void ngx_http_sluice_pool_keep(ngx_http_sluice_pool_entry_t *entry);

/* ngx_http_sluice_pool_tls.c */

/*
 * What nginx would make of a new connection now.  NGX_DECLINED: it cannot be
 * told (a client certificate named by a variable).
 */

ngx_int_t ngx_http_sluice_pool_tls_read(ngx_http_request_t *r,
    ngx_http_sluice_pool_tls_t *tls);

/*
 * Whether a new connection came to be what was asked for: between that and the
 * handshake the worker did other things, and variables may have changed.
 */

ngx_uint_t ngx_http_sluice_pool_tls_is_made(ngx_http_upstream_t *u,
    ngx_connection_t *c, ngx_http_sluice_pool_tls_t *tls);

/* Whether all that came was read, and the upstream has not said goodbye. */

ngx_uint_t ngx_http_sluice_pool_tls_is_quiet(ngx_connection_t *c);


#endif /* NGX_HTTP_SLUICE_POOL_H_INCLUDED */
