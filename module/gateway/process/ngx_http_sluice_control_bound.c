
/*
 * The bound of the admin listener's connections: those that come over TCP hold
 * half of the control worker's at most, whatever they send and however slowly.
 * The others are there for the control socket.
 *
 * It counts at accept, since clients that never end their header come no
 * further.  Beyond the bound the oldest connection on which nobody has asked
 * yet, or again, gives way; where there is none, the new one is answered 503.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_sluice.h"


#define NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT   24    /* connections */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_LEAST  2     /* TCP */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_LOOK   32    /* connections */
#define NGX_HTTP_SLUICE_CONTROL_BOUND_DRAIN  4096  /* bytes */

#define NGX_HTTP_SLUICE_CONTROL_BOUND_BODY                                    \
    "{\"message\":\"too many connections to the admin listener\"}"


static void ngx_http_sluice_control_bound_handler(ngx_connection_t *c);
static ngx_uint_t ngx_http_sluice_control_bound_is_reached(void);
static ngx_uint_t ngx_http_sluice_control_bound_yield(void);
static void ngx_http_sluice_control_bound_refuse(ngx_connection_t *c);
static void ngx_http_sluice_control_bound_note(ngx_log_t *log);
static void ngx_http_sluice_control_bound_leave(void *data);


static ngx_connection_handler_pt  ngx_http_sluice_control_bound_next;
static ngx_uint_t                 ngx_http_sluice_control_bound_held;
static ngx_uint_t                 ngx_http_sluice_control_bound_refused;
static time_t                     ngx_http_sluice_control_bound_noted;

static ngx_str_t  ngx_http_sluice_control_bound_answer = ngx_string(
    "HTTP/1.1 503 Service Temporarily Unavailable" CRLF
    "Content-Type: application/json; charset=utf-8" CRLF
    "Content-Length: 56" CRLF
    "Retry-After: 1" CRLF
    "Connection: close" CRLF CRLF
    NGX_HTTP_SLUICE_CONTROL_BOUND_BODY);

_Static_assert(sizeof(NGX_HTTP_SLUICE_CONTROL_BOUND_BODY) - 1 == 56,
               "Content-Length");


/* Of a listener that this worker, the control worker, is to accept on. */

void
ngx_http_sluice_control_bound(ngx_listening_t *ls)
{
    if (ls->sockaddr->sa_family == AF_UNIX
        || (ngx_http_sluice_control_bound_next
            && ngx_http_sluice_control_bound_next != ls->handler))
    {
        return;
    }

    ngx_http_sluice_control_bound_next = ls->handler;
    ls->handler = ngx_http_sluice_control_bound_handler;
}


static void
ngx_http_sluice_control_bound_handler(ngx_connection_t *c)
{
    ngx_pool_cleanup_t  *cln;

    if (ngx_http_sluice_control_bound_is_reached()
        && !ngx_http_sluice_control_bound_yield())
    {
        ngx_http_sluice_control_bound_refuse(c);
        return;
    }

    cln = ngx_pool_cleanup_add(c->pool, 0);
    if (cln == NULL) {
        ngx_http_close_connection(c);
        return;
    }

    cln->handler = ngx_http_sluice_control_bound_leave;
    ngx_http_sluice_control_bound_held++;

    ngx_http_sluice_control_bound_next(c);
}


/*
 * Half; but each listener, channel and running timer of Lua has a connection,
 * too, which does not matter where there are hundreds.
 */

static ngx_uint_t
ngx_http_sluice_control_bound_is_reached(void)
{
    ngx_uint_t  n, bound;

    n = ngx_cycle->connection_n;
    bound = NGX_HTTP_SLUICE_CONTROL_BOUND_LEAST;

    if (n > NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT + bound) {
        bound = ngx_min(n / 2, n - NGX_HTTP_SLUICE_CONTROL_BOUND_KEPT);
    }

    return ngx_http_sluice_control_bound_held >= bound;
}


/*
 * As ngx_drain_connections() does where none is left at all; but not one whose
 * request has come meanwhile.
 */

static ngx_uint_t
ngx_http_sluice_control_bound_yield(void)
{
    u_char             byte;
    ngx_uint_t         i;
    ngx_queue_t       *q, *all;
    ngx_connection_t  *c;

    all = (ngx_queue_t *) &ngx_cycle->reusable_connections_queue;
    q = ngx_queue_last(all);

    for (i = 0; i < NGX_HTTP_SLUICE_CONTROL_BOUND_LOOK; i++) {

        if (q == ngx_queue_sentinel(all)) {
            return 0;
        }

        c = ngx_queue_data(q, ngx_connection_t, queue);

        if (c->listening
            && c->listening->handler == ngx_http_sluice_control_bound_handler
            && recv(c->fd, &byte, 1, MSG_PEEK|MSG_DONTWAIT) <= 0)
        {
            c->close = 1;
            c->read->handler(c->read);

            return !ngx_http_sluice_control_bound_is_reached();
        }

        q = ngx_queue_prev(q);
    }

    return 0;
}


/*
 * What has come of its request is read, so that the answer is not lost in a
 * reset; nobody waits for the rest.
 */

static void
ngx_http_sluice_control_bound_refuse(ngx_connection_t *c)
{
    u_char      buffer[NGX_HTTP_SLUICE_CONTROL_BOUND_DRAIN];
    ngx_str_t  *answer;

    answer = &ngx_http_sluice_control_bound_answer;

    (void) send(c->fd, answer->data, answer->len, MSG_NOSIGNAL|MSG_DONTWAIT);
    (void) recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    ngx_http_sluice_control_bound_note(c->log);

    ngx_http_close_connection(c);
}


/* A line a second at most. */

static void
ngx_http_sluice_control_bound_note(ngx_log_t *log)
{
    ngx_http_sluice_control_bound_refused++;

    if (ngx_http_sluice_control_bound_noted == ngx_time()) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "sluice: %ui connections refused: the admin listener has "
                  "half of \"worker_connections\" open",
                  ngx_http_sluice_control_bound_refused);

    ngx_http_sluice_control_bound_noted = ngx_time();
    ngx_http_sluice_control_bound_refused = 0;
}


static void
ngx_http_sluice_control_bound_leave(void *data)
{
    ngx_http_sluice_control_bound_held--;
}
