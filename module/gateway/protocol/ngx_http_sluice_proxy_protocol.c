
/*
 * Headers of the PROXY protocol (ngx_http_sluice_proxy_protocol.h): read
 * before anything else of a connection, within the time of a request header.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_proxy_protocol.h"
#include "ngx_sluice_metrics.h"
#include "proxy_protocol.h"


/* Of a connection until its header is read, in the place of nginx's data. */

typedef struct {
    ngx_http_connection_t   *hc;
    ngx_event_handler_pt     next;
    u_char                  *data;
    size_t                   length;
    size_t                   most;             /* room in data */
} ngx_http_sluice_proxy_protocol_ctx_t;


static ngx_uint_t ngx_http_sluice_proxy_protocol_has(ngx_listening_t *ls);
static void ngx_http_sluice_proxy_protocol_connection(ngx_connection_t *c);
static void ngx_http_sluice_proxy_protocol_handler(ngx_event_t *rev);
static int ngx_http_sluice_proxy_protocol_some(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx,
    sluice_proxy_protocol_t *found);
static ngx_int_t ngx_http_sluice_proxy_protocol_keep(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx, size_t most, size_t n);
static ngx_int_t ngx_http_sluice_proxy_protocol_take(ngx_connection_t *c,
    const sluice_proxy_protocol_t *found);
static ngx_int_t ngx_http_sluice_proxy_protocol_copy(ngx_connection_t *c,
    ngx_str_t *to, const char *from);
static void ngx_http_sluice_proxy_protocol_refuse(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx, int rc);


/* In the place of a length, behind the words of proxy_protocol.h. */

#define NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED   -4    /* or its time is over */
#define NGX_HTTP_SLUICE_PROXY_PROTOCOL_FAILED  -5

/* -1 is the first that is counted, -2 the second */

_Static_assert((int) SLUICE_METRICS_PROXY_PROTOCOL_CUT
               - (int) SLUICE_METRICS_PROXY_PROTOCOL_MISSING
               == -1 - NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED,
               "counted in the order of the words");


void
ngx_http_sluice_proxy_protocol_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t        i;
    ngx_listening_t  *ls;

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].handler == ngx_http_init_connection
            && ngx_http_sluice_proxy_protocol_has(&ls[i]))
        {
            ngx_http_sluice_error_log_begin =
                                     ngx_http_sluice_proxy_protocol_connection;
            return;
        }
    }
}


static ngx_uint_t
ngx_http_sluice_proxy_protocol_has(ngx_listening_t *ls)
{
    ngx_uint_t            i;
    ngx_http_port_t      *port;
    ngx_http_in_addr_t   *addr;
    ngx_http_in6_addr_t  *addr6;

    port = ls->servers;
    addr = port->addrs;
    addr6 = port->addrs;

    for (i = 0; i < port->naddrs; i++) {

        if (ls->sockaddr->sa_family == AF_INET6
            ? addr6[i].conf.proxy_protocol
            : addr[i].conf.proxy_protocol)
        {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_sluice_proxy_protocol_connection(ngx_connection_t *c)
{
    ngx_event_t                           *rev;
    ngx_http_connection_t                 *hc;
    ngx_http_sluice_proxy_protocol_ctx_t  *ctx;

    /* with "deferred" nginx would read at once; the kernel tells again */

    rev = c->read;
    rev->ready = 0;

    ngx_http_init_connection(c);

    if (c->fd == (ngx_socket_t) -1) {
        return;
    }

    hc = c->data;

    if (!hc->proxy_protocol) {
        return;
    }

    ctx = ngx_pcalloc(c->pool, sizeof(ngx_http_sluice_proxy_protocol_ctx_t));
    if (ctx == NULL) {
        ngx_http_close_connection(c);
        return;
    }

    ctx->hc = hc;
    ctx->next = rev->handler;

    c->data = ctx;
    rev->handler = ngx_http_sluice_proxy_protocol_handler;
}


static void
ngx_http_sluice_proxy_protocol_handler(ngx_event_t *rev)
{
    int                                    rc;
    ngx_connection_t                      *c;
    sluice_proxy_protocol_t                found;
    ngx_http_sluice_proxy_protocol_ctx_t  *ctx;

    c = rev->data;
    ctx = c->data;

    if (c->close) {
        ngx_http_close_connection(c);
        return;
    }

    rc = rev->timedout ? NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED
                       : ngx_http_sluice_proxy_protocol_some(c, ctx, &found);

    if (rc == SLUICE_PROXY_PROTOCOL_MORE) {
        rev->ready = 0;

        if (ngx_handle_read_event(rev, 0) != NGX_OK) {
            ngx_http_close_connection(c);
        }

        return;
    }

    if (rc < 0) {
        ngx_http_sluice_proxy_protocol_refuse(c, ctx, rc);
        return;
    }

    if (ngx_http_sluice_proxy_protocol_take(c, &found) != NGX_OK) {
        ngx_http_close_connection(c);
        return;
    }

    ctx->hc->proxy_protocol = 0;
    c->data = ctx->hc;
    c->log->action = ctx->hc->ssl ? "SSL handshaking" : "waiting for request";

    rev->handler = ctx->next;
    rev->handler(rev);
}


/*
 * What has come of a header is taken out of the socket, so that an end behind
 * it is seen; of what follows it nothing is.
 */

static int
ngx_http_sluice_proxy_protocol_some(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx, sluice_proxy_protocol_t *found)
{
    int      rc;
    u_char   data[SLUICE_PROXY_PROTOCOL_MOST];
    ssize_t  n;

    for ( ;; ) {

        if (ctx->length) {
            ngx_memcpy(data, ctx->data, ctx->length);
        }

        n = recv(c->fd, data + ctx->length, sizeof(data) - ctx->length,
                 MSG_PEEK);

        if (n == 0) {
            return NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED;
        }

        if (n == -1 && ngx_socket_errno == NGX_EAGAIN) {
            return SLUICE_PROXY_PROTOCOL_MORE;
        }

        if (n == -1) {
            ngx_connection_error(c, ngx_socket_errno, "recv() failed");
            return NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED;
        }

        rc = sluice_proxy_protocol_read(found, data,
                                        ctx->length + (size_t) n);

        if (rc > 0) {
            n = rc - (ssize_t) ctx->length;
            return recv(c->fd, data, (size_t) n, 0) == n
                   ? rc : NGX_HTTP_SLUICE_PROXY_PROTOCOL_FAILED;
        }

        if (rc != SLUICE_PROXY_PROTOCOL_MORE) {
            return rc;
        }

        if (ngx_http_sluice_proxy_protocol_keep(c, ctx, found->most,
                                                (size_t) n)
            != NGX_OK)
        {
            return NGX_HTTP_SLUICE_PROXY_PROTOCOL_FAILED;
        }
    }
}


static ngx_int_t
ngx_http_sluice_proxy_protocol_keep(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx, size_t most, size_t n)
{
    u_char  *data;

    if (ctx->most < most) {
        data = ngx_pnalloc(c->pool, most);
        if (data == NULL) {
            return NGX_ERROR;
        }

        if (ctx->length) {
            ngx_memcpy(data, ctx->data, ctx->length);
        }

        ctx->data = data;
        ctx->most = most;
    }

    if (recv(c->fd, ctx->data + ctx->length, n, 0) != (ssize_t) n) {
        return NGX_ERROR;
    }

    ctx->length += n;

    return NGX_OK;
}


/* As nginx has it, for $proxy_protocol_addr and "real_ip_header". */

static ngx_int_t
ngx_http_sluice_proxy_protocol_take(ngx_connection_t *c,
    const sluice_proxy_protocol_t *found)
{
    ngx_proxy_protocol_t  *pp;

    if (!found->has_addresses) {
        return NGX_OK;
    }

    pp = ngx_pcalloc(c->pool, sizeof(ngx_proxy_protocol_t));

    if (pp == NULL
        || ngx_http_sluice_proxy_protocol_copy(c, &pp->src_addr, found->client)
           != NGX_OK
        || ngx_http_sluice_proxy_protocol_copy(c, &pp->dst_addr,
                                               found->server)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    pp->src_port = found->client_port;
    pp->dst_port = found->server_port;

    c->proxy_protocol = pp;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_proxy_protocol_copy(ngx_connection_t *c, ngx_str_t *to,
    const char *from)
{
    to->len = ngx_strlen(from);
    to->data = ngx_pnalloc(c->pool, to->len);

    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from, to->len);

    return NGX_OK;
}


/*
 * Of what came nothing is logged: it may be a request that holds a token.  Who
 * has sent nothing is not counted, such as a balancer that looks whether
 * somebody listens.
 */

static void
ngx_http_sluice_proxy_protocol_refuse(ngx_connection_t *c,
    ngx_http_sluice_proxy_protocol_ctx_t *ctx, int rc)
{
    ngx_uint_t          i;
    static const char  *said[] = { "missing", "malformed", "too large",
                                   "cut off" };

    if (rc != NGX_HTTP_SLUICE_PROXY_PROTOCOL_FAILED
        && (rc != NGX_HTTP_SLUICE_PROXY_PROTOCOL_ENDED || ctx->length))
    {
        i = (ngx_uint_t) (SLUICE_PROXY_PROTOCOL_MISSING - rc);

        ngx_sluice_metrics_add(SLUICE_METRICS_PROXY_PROTOCOL_MISSING + i, 1);

        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "sluice: the header of the PROXY protocol is %s",
                      said[i]);
    }

    ngx_http_close_connection(c);
}
