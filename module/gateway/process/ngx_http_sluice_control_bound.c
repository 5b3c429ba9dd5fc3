
/*
 * The bounds of the control worker's connections: those that come over TCP to
 * the admin listener hold half of its connections at most, those to the status
 * listener an eighth, or less where connections are few, whatever they send
 * and however slowly.  The others are there for the control socket.
 *
 * It counts at accept, since clients that never end their header, or their
 * handshake, come no further.  Beyond the bound the oldest connection on which
 * nobody has asked yet, or again, gives way, then the oldest whose handshake
 * is not done; where there is none, the new one is answered 503, or closed
 * where TLS is spoken.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_sluice_control.h"
#include "ngx_sluice_process.h"


#define NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT   24    /* connections */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_LEAST  2     /* TCP */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_LOOK   32    /* connections */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_DRAIN  4096  /* bytes */

#define NGX_HTTP_SLUICE_CONTROL_BOUND_BODY(name)                              \
    "{\"message\":\"too many connections to the " name " listener\"}"

#define NGX_HTTP_SLUICE_CONTROL_BOUND_ANSWER(name, length)                    \
    ngx_string("HTTP/1.1 503 Service Temporarily Unavailable" CRLF            \
               "Content-Type: application/json; charset=utf-8" CRLF           \
               "Content-Length: " length CRLF                                 \
               "Retry-After: 1" CRLF                                          \
               "Connection: close" CRLF CRLF                                  \
               NGX_HTTP_SLUICE_CONTROL_BOUND_BODY(name))


/* Of all listeners of a kind. */

typedef struct {
    const char   *name;
    ngx_uint_t    share;               /* one in so many connections */
    ngx_str_t     answer;
    ngx_uint_t    held;
    ngx_uint_t    refused;
    time_t        noted;
    ngx_queue_t   shaking;             /* oldest first; may be done by now */
} ngx_http_sluice_control_bound_kind_t;


typedef struct ngx_http_sluice_control_bound_s
    ngx_http_sluice_control_bound_t;

struct ngx_http_sluice_control_bound_s {
    ngx_listening_t                       *listening;
    ngx_connection_handler_pt              next;
    ngx_http_sluice_control_bound_kind_t  *kind;
    ngx_uint_t                             ssl;
    ngx_http_sluice_control_bound_t       *other;
};


/* Of a connection that is counted, in its pool. */

typedef struct {
    ngx_queue_t                            queue;
    ngx_connection_t                      *connection;
    ngx_http_sluice_control_bound_kind_t  *kind;
} ngx_http_sluice_control_bound_held_t;


static ngx_uint_t ngx_http_sluice_control_bound_ssl(ngx_listening_t *ls);
static ngx_http_sluice_control_bound_t *ngx_http_sluice_control_bound_of(
    ngx_connection_t *c);
static void ngx_http_sluice_control_bound_handler(ngx_connection_t *c);
static ngx_uint_t ngx_http_sluice_control_bound_most(
    ngx_http_sluice_control_bound_kind_t *kind);
static ngx_uint_t ngx_http_sluice_control_bound_is_reached(
    ngx_http_sluice_control_bound_kind_t *kind);
static ngx_uint_t ngx_http_sluice_control_bound_yield_idle(
    ngx_http_sluice_control_bound_kind_t *kind);
static ngx_uint_t ngx_http_sluice_control_bound_yield_shaking(
    ngx_http_sluice_control_bound_kind_t *kind);
static void ngx_http_sluice_control_bound_refuse(ngx_connection_t *c,
    ngx_http_sluice_control_bound_t *bound);
static void ngx_http_sluice_control_bound_note(
    ngx_http_sluice_control_bound_kind_t *kind, ngx_log_t *log);
static void ngx_http_sluice_control_bound_leave(void *data);


_Static_assert(sizeof(NGX_HTTP_SLUICE_CONTROL_BOUND_BODY("admin")) - 1 == 56,
               "Content-Length");
_Static_assert(sizeof(NGX_HTTP_SLUICE_CONTROL_BOUND_BODY("status")) - 1 == 57,
               "Content-Length");


static ngx_http_sluice_control_bound_kind_t
    ngx_http_sluice_control_bound_kinds[NGX_HTTP_SLUICE_CONTROL_KINDS] =
{
    [NGX_HTTP_SLUICE_CONTROL_ADMIN] = {
        .name = "admin",
        .share = 2,
        .answer = NGX_HTTP_SLUICE_CONTROL_BOUND_ANSWER("admin", "56"),
    },
    [NGX_HTTP_SLUICE_CONTROL_STATUS] = {
        .name = "status",
        .share = 8,
        .answer = NGX_HTTP_SLUICE_CONTROL_BOUND_ANSWER("status", "57"),
    },
};


static ngx_http_sluice_control_bound_t  *ngx_http_sluice_control_bounds;


/* Of a listener that this worker, the control worker, is to accept on. */

ngx_int_t
ngx_http_sluice_control_bound(ngx_cycle_t *cycle, ngx_listening_t *ls,
    ngx_uint_t kind)
{
    ngx_http_sluice_control_bound_t  *bound;

    if (ls->sockaddr->sa_family == AF_UNIX) {
        return NGX_OK;
    }

    bound = ngx_pcalloc(cycle->pool, sizeof(ngx_http_sluice_control_bound_t));
    if (bound == NULL) {
        return NGX_ERROR;
    }

    bound->listening = ls;
    bound->next = ls->handler;
    bound->kind = &ngx_http_sluice_control_bound_kinds[kind];
    bound->ssl = ngx_http_sluice_control_bound_ssl(ls);

    if (bound->kind->shaking.next == NULL) {
        ngx_queue_init(&bound->kind->shaking);
    }

    bound->other = ngx_http_sluice_control_bounds;
    ngx_http_sluice_control_bounds = bound;

    ls->handler = ngx_http_sluice_control_bound_handler;

    return NGX_OK;
}


/* Whether TLS is spoken on any address of it. */

static ngx_uint_t
ngx_http_sluice_control_bound_ssl(ngx_listening_t *ls)
{
    ngx_uint_t            i, ssl;
    ngx_http_port_t      *port;
    ngx_http_in_addr_t   *addr;
    ngx_http_in6_addr_t  *addr6;

    port = ls->servers;
    addr = port->addrs;
    addr6 = port->addrs;
    ssl = 0;

    for (i = 0; i < port->naddrs; i++) {
        ssl |= ls->sockaddr->sa_family == AF_INET6 ? addr6[i].conf.ssl
                                                   : addr[i].conf.ssl;
    }

    return ssl;
}


/* NULL: not one of ours. */

static ngx_http_sluice_control_bound_t *
ngx_http_sluice_control_bound_of(ngx_connection_t *c)
{
    ngx_http_sluice_control_bound_t  *bound;

    bound = ngx_http_sluice_control_bounds;

    while (bound && bound->listening != c->listening) {
        bound = bound->other;
    }

    return bound;
}


static void
ngx_http_sluice_control_bound_handler(ngx_connection_t *c)
{
    ngx_pool_cleanup_t                    *cln;
    ngx_http_sluice_control_bound_t       *bound;
    ngx_http_sluice_control_bound_kind_t  *kind;
    ngx_http_sluice_control_bound_held_t  *held;

    bound = ngx_http_sluice_control_bound_of(c);
    kind = bound->kind;

    if (ngx_http_sluice_control_bound_is_reached(kind)
        && !ngx_http_sluice_control_bound_yield_idle(kind)
        && !ngx_http_sluice_control_bound_yield_shaking(kind))
    {
        ngx_http_sluice_control_bound_refuse(c, bound);
        return;
    }

    cln = ngx_pool_cleanup_add(c->pool,
                               sizeof(ngx_http_sluice_control_bound_held_t));
    if (cln == NULL) {
        ngx_http_close_connection(c);
        return;
    }

    held = cln->data;
    held->connection = c;
    held->kind = kind;

    if (bound->ssl) {
        ngx_queue_insert_tail(&kind->shaking, &held->queue);

    } else {
        ngx_queue_init(&held->queue);
    }

    cln->handler = ngx_http_sluice_control_bound_leave;
    kind->held++;

    bound->next(c);
}


/*
 * A share; but each listener, channel and running timer of Lua has a
 * connection, too, which does not matter where there are hundreds.
 */

static ngx_uint_t
ngx_http_sluice_control_bound_most(ngx_http_sluice_control_bound_kind_t *kind)
{
    ngx_uint_t  n, bound;

    n = ngx_cycle->connection_n;
    bound = NGX_HTTP_SLUICE_CONTROL_BOUND_LEAST;

    if (n > NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT + bound) {
        n = ngx_min(n / kind->share,
                    (n - NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT) * 2
                    / kind->share);
        bound = ngx_max(n, bound);
    }

    return bound;
}


static ngx_uint_t
ngx_http_sluice_control_bound_is_reached(
    ngx_http_sluice_control_bound_kind_t *kind)
{
    return kind->held >= ngx_http_sluice_control_bound_most(kind);
}


/*
 * As ngx_drain_connections() does where none is left at all; but not one whose
 * request has come meanwhile.
 */

static ngx_uint_t
ngx_http_sluice_control_bound_yield_idle(
    ngx_http_sluice_control_bound_kind_t *kind)
{
    u_char                            byte;
    ngx_uint_t                        i;
    ngx_queue_t                      *q, *all;
    ngx_connection_t                 *c;
    ngx_http_sluice_control_bound_t  *bound;

    all = (ngx_queue_t *) &ngx_cycle->reusable_connections_queue;
    q = ngx_queue_last(all);

    for (i = 0; i < NGX_HTTP_SLUICE_CONTROL_BOUND_LOOK; i++) {

        if (q == ngx_queue_sentinel(all)) {
            return 0;
        }

        c = ngx_queue_data(q, ngx_connection_t, queue);
        bound = ngx_http_sluice_control_bound_of(c);

        if (bound && bound->kind == kind
            && recv(c->fd, &byte, 1, MSG_PEEK|MSG_DONTWAIT) <= 0)
        {
            c->close = 1;
            c->read->handler(c->read);

            return !ngx_http_sluice_control_bound_is_reached(kind);
        }

        q = ngx_queue_prev(q);
    }

    return 0;
}


/*
 * nginx closes it as one whose time is over.  One that has sent nothing yet
 * was looked at above.
 */

static ngx_uint_t
ngx_http_sluice_control_bound_yield_shaking(
    ngx_http_sluice_control_bound_kind_t *kind)
{
    ngx_uint_t                             i;
    ngx_queue_t                           *q, *next;
    ngx_connection_t                      *c;
    ngx_http_sluice_control_bound_held_t  *held;

    q = ngx_queue_head(&kind->shaking);

    for (i = 0; i < NGX_HTTP_SLUICE_CONTROL_BOUND_LOOK; q = next) {

        if (q == ngx_queue_sentinel(&kind->shaking)) {
            return 0;
        }

        next = ngx_queue_next(q);
        held = ngx_queue_data(q, ngx_http_sluice_control_bound_held_t, queue);
        c = held->connection;

        if (c->ssl && c->ssl->handshaked) {
            ngx_queue_remove(q);
            ngx_queue_init(q);
            continue;
        }

        if (c->ssl && c->ssl->handler) {
            c->read->timedout = 1;
            c->read->handler(c->read);

            return !ngx_http_sluice_control_bound_is_reached(kind);
        }

        i++;
    }

    return 0;
}


/*
 * What has come of its request is read, so that the answer is not lost in a
 * reset; nobody waits for the rest.
 */

static void
ngx_http_sluice_control_bound_refuse(ngx_connection_t *c,
    ngx_http_sluice_control_bound_t *bound)
{
    u_char      buffer[NGX_HTTP_SLUICE_CONTROL_BOUND_DRAIN];
    ngx_str_t  *answer;

    answer = &bound->kind->answer;

    if (!bound->ssl) {
        (void) send(c->fd, answer->data, answer->len,
                    MSG_NOSIGNAL|MSG_DONTWAIT);
        (void) recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    }

    ngx_http_sluice_control_bound_note(bound->kind, c->log);

    ngx_http_close_connection(c);
}


/* A line a second at most. */

static void
ngx_http_sluice_control_bound_note(ngx_http_sluice_control_bound_kind_t *kind,
    ngx_log_t *log)
{
    kind->refused++;

    if (kind->noted == ngx_time()) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "sluice: %ui connections refused: the %s listener has "
                  "%ui open, its most of %ui \"worker_connections\"",
                  kind->refused, kind->name,
                  ngx_http_sluice_control_bound_most(kind),
                  ngx_cycle->connection_n);

    kind->noted = ngx_time();
    kind->refused = 0;
}


static void
ngx_http_sluice_control_bound_leave(void *data)
{
    ngx_http_sluice_control_bound_held_t  *held = data;

    ngx_queue_remove(&held->queue);
    held->kind->held--;
}
