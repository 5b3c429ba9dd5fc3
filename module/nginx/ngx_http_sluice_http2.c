
/*
 * What clients send by HTTP/2 beside requests: counted and bounded.
 *
 * nginx bounds the streams that are open and those of one turn of its event
 * loop, not what a client resets over time (CVE-2023-44487), and it counts
 * neither.  It has no hook for frames.  So connections of HTTP/2 are read by
 * a function of ours, which sees each frame's head on its way to nginx.
 *
 * Who sends more than the limits within a minute gets GOAWAY, as at a reload:
 * what is in work is answered, nothing new is taken.  Who then goes on, to
 * twice the limit, is cut off.
 *
 * A stream that nginx refuses is one whose HEADERS have come, and which is
 * not among the connection's requests when all of it has been read.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_phase.h"
#include "ngx_sluice_metrics.h"

#include <openssl/ssl.h>


#define NGX_HTTP_SLUICE_HTTP2_PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NGX_HTTP_SLUICE_HTTP2_WINDOW   60      /* seconds */


typedef enum {
    NGX_HTTP_SLUICE_HTTP2_RESETS = 0,
    NGX_HTTP_SLUICE_HTTP2_STREAMS,             /* refused ones */
    NGX_HTTP_SLUICE_HTTP2_FRAMES,              /* that control */
    NGX_HTTP_SLUICE_HTTP2_KINDS
} ngx_http_sluice_http2_kind_e;


/* All servers have the same; "set" where one has any. */

typedef struct {
    ngx_uint_t  most[NGX_HTTP_SLUICE_HTTP2_KINDS];
    ngx_flag_t  set;
} ngx_http_sluice_http2_conf_t;


/* Of a connection, in its pool. */

typedef struct {
    ngx_connection_t          *connection;
    ngx_recv_pt                recv;           /* nginx's */
    ngx_http_v2_connection_t  *h2c;

    time_t                     since;          /* of what is counted */
    ngx_uint_t                 counts[NGX_HTTP_SLUICE_HTTP2_KINDS];
    ngx_uint_t                 streams;        /* that were asked for */
    ngx_uint_t                 refused;        /* of these */
    ngx_uint_t                 closing;

    size_t                     preface;        /* bytes of it that came */
    size_t                     seen;           /* bytes of the head */
    size_t                     left;           /* bytes of the payload */
    u_char                     head[NGX_HTTP_V2_FRAME_HEADER_SIZE];
} ngx_http_sluice_http2_meter_t;


static void *ngx_http_sluice_http2_create_conf(ngx_conf_t *cf);
static char *ngx_http_sluice_http2_limits(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_sluice_http2_init(ngx_conf_t *cf);
static void ngx_http_sluice_http2_info(const SSL *ssl, int where, int value);
static void ngx_http_sluice_http2_handshaked(ngx_connection_t *c);
static ngx_int_t ngx_http_sluice_http2_init_process(ngx_cycle_t *cycle);
static ngx_uint_t ngx_http_sluice_http2_is_plain(ngx_listening_t *ls);
static ngx_uint_t ngx_http_sluice_http2_speaks(ngx_http_addr_conf_t *conf);
static void ngx_http_sluice_http2_accept(ngx_connection_t *c);
static ngx_int_t ngx_http_sluice_http2_watch(ngx_connection_t *c);
static void ngx_http_sluice_http2_end(void *data);
static ssize_t ngx_http_sluice_http2_recv(ngx_connection_t *c, u_char *buf,
    size_t size);
static void ngx_http_sluice_http2_begin(ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_refused(
    ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_read(ngx_http_sluice_http2_meter_t *meter,
    u_char *p, u_char *last);
static void ngx_http_sluice_http2_frame(ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_add(ngx_http_sluice_http2_meter_t *meter,
    ngx_uint_t kind, ngx_uint_t n);
static ngx_int_t ngx_http_sluice_http2_log(ngx_http_request_t *r);


extern ngx_module_t  ngx_http_sluice_http2_module;
extern ngx_module_t  ngx_http_ssl_module;
extern ngx_module_t  ngx_http_v2_module;


/* nginx's, which all of its contexts have. */

static void  (*ngx_http_sluice_http2_nginx_info)(const SSL *ssl, int where,
    int value);
static void  (*ngx_http_sluice_http2_nginx_handshaked)(ngx_connection_t *c);


static ngx_command_t  ngx_http_sluice_http2_commands[] = {

    { ngx_string("sluice_http2_limits"),       /* resets, streams, frames */
      NGX_HTTP_SRV_CONF|NGX_CONF_TAKE3,
      ngx_http_sluice_http2_limits,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_http2_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_http2_init,            /* postconfiguration */

    ngx_http_sluice_http2_create_conf,     /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_http2_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_http2_module_ctx,     /* module context */
    ngx_http_sluice_http2_commands,        /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_sluice_http2_init_process,    /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_sluice_http2_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_http2_conf_t));
}


static char *
ngx_http_sluice_http2_limits(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sluice_http2_conf_t  *mcf = conf;

    ngx_int_t   n;
    ngx_str_t  *value;
    ngx_uint_t  i;

    value = cf->args->elts;

    for (i = 0; i < NGX_HTTP_SLUICE_HTTP2_KINDS; i++) {
        n = ngx_atoi(value[i + 1].data, value[i + 1].len);

        if (n < 0 || n > NGX_MAX_INT32_VALUE) {
            return "has an invalid number";
        }

        mcf->most[i] = (ngx_uint_t) n;
    }

    mcf->set = 1;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sluice_http2_init(ngx_conf_t *cf)
{
    SSL_CTX                       *ctx;
    ngx_uint_t                     i;
    ngx_http_ssl_srv_conf_t       *sscf;
    ngx_http_core_srv_conf_t     **servers;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_sluice_http2_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_http2_module);

    if (!mcf->set) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    servers = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        sscf = servers[i]->ctx->srv_conf[ngx_http_ssl_module.ctx_index];
        ctx = sscf->ssl.ctx;

        if (ctx == NULL) {
            continue;
        }

        ngx_http_sluice_http2_nginx_info = SSL_CTX_get_info_callback(ctx);
        SSL_CTX_set_info_callback(ctx, ngx_http_sluice_http2_info);
    }

    return ngx_http_sluice_phase_add(cf, NGX_HTTP_LOG_PHASE,
                                     ngx_http_sluice_http2_log);
}


/*
 * At the end of a handshake nginx has said what it will call then; not where
 * all of it was there at once, which TLS has no handshake for.
 */

static void
ngx_http_sluice_http2_info(const SSL *ssl, int where, int value)
{
    unsigned int          size;
    ngx_connection_t     *c;
    const unsigned char  *protocol;

    if (ngx_http_sluice_http2_nginx_info) {
        ngx_http_sluice_http2_nginx_info(ssl, where, value);
    }

    if (!(where & SSL_CB_HANDSHAKE_DONE)) {
        return;
    }

    c = ngx_ssl_get_connection((SSL *) ssl);
    SSL_get0_alpn_selected(ssl, &protocol, &size);

    if (size == 2 && ngx_memcmp(protocol, "h2", 2) == 0
        && c->ssl->handler != NULL && !c->ssl->handshaked
        && c->ssl->handler != ngx_http_sluice_http2_handshaked)
    {
        ngx_http_sluice_http2_nginx_handshaked = c->ssl->handler;
        c->ssl->handler = ngx_http_sluice_http2_handshaked;
    }
}


static void
ngx_http_sluice_http2_handshaked(ngx_connection_t *c)
{
    if (c->ssl->handshaked && ngx_http_sluice_http2_watch(c) != NGX_OK) {
        c->ssl->handshaked = 0;                /* nginx closes it */
    }

    ngx_http_sluice_http2_nginx_handshaked(c);
}


/* Addresses without TLS. */

static ngx_int_t
ngx_http_sluice_http2_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                     i;
    ngx_listening_t               *ls;
    ngx_http_sluice_http2_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_sluice_http2_module);

    if (mcf == NULL || !mcf->set) {
        return NGX_OK;
    }

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].handler == ngx_http_sluice_error_log_connection
            && ngx_http_sluice_http2_is_plain(&ls[i]))
        {
            ls[i].handler = ngx_http_sluice_http2_accept;
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_http2_is_plain(ngx_listening_t *ls)
{
    ngx_uint_t            i, found;
    ngx_http_port_t      *port;
    ngx_http_in_addr_t   *addr;
    ngx_http_in6_addr_t  *addr6;

    port = ls->servers;
    addr = port->addrs;
    addr6 = port->addrs;
    found = 0;

    for (i = 0; i < port->naddrs; i++) {
        found |= ngx_http_sluice_http2_speaks(
                     ls->sockaddr->sa_family == AF_INET6 ? &addr6[i].conf
                                                         : &addr[i].conf);
    }

    return found;
}


static ngx_uint_t
ngx_http_sluice_http2_speaks(ngx_http_addr_conf_t *conf)
{
#if (nginx_version >= 1025001)

    ngx_http_v2_srv_conf_t  *h2scf;

    h2scf = conf->default_server->ctx->srv_conf[ngx_http_v2_module.ctx_index];

    return !conf->ssl && (conf->http2 || h2scf->enable);

#else

    return !conf->ssl && conf->http2;

#endif
}


static void
ngx_http_sluice_http2_accept(ngx_connection_t *c)
{
    /* without memory nginx closes it */

    (void) ngx_http_sluice_http2_watch(c);

    ngx_http_sluice_error_log_connection(c);
}


static ngx_int_t
ngx_http_sluice_http2_watch(ngx_connection_t *c)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_sluice_http2_meter_t  *meter;

    cln = ngx_pool_cleanup_add(c->pool, sizeof(ngx_http_sluice_http2_meter_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    meter = cln->data;
    ngx_memzero(meter, sizeof(ngx_http_sluice_http2_meter_t));

    meter->connection = c;
    meter->recv = c->recv;
    meter->since = ngx_time();

    cln->handler = ngx_http_sluice_http2_end;
    c->recv = ngx_http_sluice_http2_recv;

    return NGX_OK;
}


static void
ngx_http_sluice_http2_end(void *data)
{
    ngx_http_sluice_http2_refused(data);
}


static ssize_t
ngx_http_sluice_http2_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
    ssize_t                         n;
    ngx_uint_t                      i;
    ngx_pool_cleanup_t             *cln;
    ngx_http_sluice_http2_conf_t   *mcf;
    ngx_http_sluice_http2_meter_t  *meter;

    cln = c->pool->cleanup;

    while (cln->handler != ngx_http_sluice_http2_end) {
        cln = cln->next;
    }

    meter = cln->data;
    ngx_http_sluice_http2_begin(meter);

    n = meter->recv(c, buf, size);

    if (n > 0) {
        ngx_http_sluice_http2_read(meter, buf, buf + n);
    }

    if (!meter->closing) {
        return n;
    }

    mcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                              ngx_http_sluice_http2_module);

    for (i = 0; i < NGX_HTTP_SLUICE_HTTP2_KINDS; i++) {

        if (meter->counts[i] > 2 * mcf->most[i]) {
            return NGX_ERROR;
        }
    }

    return n;
}


/* nginx has used all that was read before. */

static void
ngx_http_sluice_http2_begin(ngx_http_sluice_http2_meter_t *meter)
{
#if (nginx_version >= 1025001)

    /* until it knows better, a plain connection is one of HTTP/1.1 */

    if (meter->connection->ssl || meter->left || meter->seen
        || meter->streams)
#endif
    {
        meter->h2c = meter->connection->data;
    }

    ngx_http_sluice_http2_refused(meter);

    if (ngx_time() - meter->since >= NGX_HTTP_SLUICE_HTTP2_WINDOW
        && !meter->closing)
    {
        meter->since = ngx_time();
        ngx_memzero(meter->counts, sizeof(meter->counts));
    }
}


static void
ngx_http_sluice_http2_refused(ngx_http_sluice_http2_meter_t *meter)
{
    ngx_uint_t                 known;
    ngx_http_core_loc_conf_t  *clcf;

    known = meter->connection->requests + meter->refused;

    if (meter->streams <= known || meter->h2c == NULL) {
        return;
    }

    clcf = ngx_http_get_module_loc_conf(meter->h2c->http_connection->conf_ctx,
                                        ngx_http_core_module);

    if (meter->closing
        || meter->connection->requests >= clcf->keepalive_requests)
    {
        /* nobody has refused them: they crossed a GOAWAY */

        meter->streams = known;
        return;
    }

    ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_REFUSED,
                           meter->streams - known);
    ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_STREAMS,
                              meter->streams - known);

    meter->refused += meter->streams - known;
}


static void
ngx_http_sluice_http2_read(ngx_http_sluice_http2_meter_t *meter, u_char *p,
    u_char *last)
{
    size_t  n;

    while (meter->preface < sizeof(NGX_HTTP_SLUICE_HTTP2_PREFACE) - 1) {

        if (p == last) {
            return;
        }

        if (*p++ != (u_char) NGX_HTTP_SLUICE_HTTP2_PREFACE[meter->preface++]) {
            meter->connection->recv = meter->recv;
            return;
        }
    }

    while (p < last) {

        if (meter->seen < sizeof(meter->head)) {
            meter->head[meter->seen++] = *p++;

            if (meter->seen < sizeof(meter->head)) {
                continue;
            }

            meter->left = (size_t) meter->head[0] << 16
                          | (size_t) meter->head[1] << 8 | meter->head[2];
        }

        n = ngx_min(meter->left, (size_t) (last - p));
        meter->left -= n;
        p += n;

        if (meter->left == 0) {
            meter->seen = 0;
            ngx_http_sluice_http2_frame(meter);
        }
    }
}


static void
ngx_http_sluice_http2_frame(ngx_http_sluice_http2_meter_t *meter)
{
    switch (meter->head[3]) {

    case NGX_HTTP_V2_HEADERS_FRAME:
        meter->streams++;
        return;

    case NGX_HTTP_V2_RST_STREAM_FRAME:
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_RESETS, 1);
        ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_RESETS, 1);
        return;

    case NGX_HTTP_V2_DATA_FRAME:

        if (meter->head[0] || meter->head[1] || meter->head[2]
            || meter->head[4] & NGX_HTTP_V2_END_STREAM_FLAG)
        {
            return;
        }

        break;

    case NGX_HTTP_V2_PRIORITY_FRAME:
    case NGX_HTTP_V2_SETTINGS_FRAME:
    case NGX_HTTP_V2_PING_FRAME:
    case NGX_HTTP_V2_CONTINUATION_FRAME:
        break;

    default:
        return;
    }

    ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_FRAMES, 1);
}


static void
ngx_http_sluice_http2_add(ngx_http_sluice_http2_meter_t *meter,
    ngx_uint_t kind, ngx_uint_t n)
{
    ngx_connection_t              *c;
    ngx_http_sluice_http2_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                              ngx_http_sluice_http2_module);

    meter->counts[kind] += n;

    if (meter->closing || meter->counts[kind] <= mcf->most[kind]) {
        return;
    }

    meter->closing = 1;
    ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_CLOSED_RESETS + kind, 1);

    c = meter->connection;

    if (c->fd != (ngx_socket_t) -1) {
        c->close = 1;
        ngx_post_event(c->read, &ngx_posted_events);
    }
}


/* What ended while its header was read, and not by the client. */

static ngx_int_t
ngx_http_sluice_http2_log(ngx_http_request_t *r)
{
    ngx_connection_t          *c;
    ngx_http_v2_connection_t  *h2c;

    if (r->stream == NULL) {
        return NGX_OK;
    }

    h2c = r->stream->connection;
    c = h2c->connection;

    if (r->stream->pool == h2c->state.pool && h2c->goaway && !c->error
        && !c->read->timedout)
    {
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_CLOSED_HEADER, 1);
    }

    return NGX_OK;
}
