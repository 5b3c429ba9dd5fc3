
/*
 * Has the connections of clients who speak HTTP/2 watched
 * (ngx_http_sluice_http2.h): nginx says in a handshake what it will call when
 * that is done, and a listener what takes its connections.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_http2.h"
#include "ngx_sluice_metrics.h"

#include <openssl/ssl.h>


static void ngx_http_sluice_http2_info(const SSL *ssl, int where, int value);
static long ngx_http_sluice_http2_bio(BIO *bio, int operation,
    const char *data, size_t size, int argi, long argl, int result,
    size_t *processed);
static void ngx_http_sluice_http2_handshaked(ngx_connection_t *c);
static ngx_uint_t ngx_http_sluice_http2_is_plain(ngx_listening_t *ls);
static ngx_uint_t ngx_http_sluice_http2_speaks(ngx_http_addr_conf_t *conf);
static void ngx_http_sluice_http2_accept(ngx_connection_t *c);


extern ngx_module_t  ngx_http_ssl_module;
extern ngx_module_t  ngx_http_v2_module;


/* nginx's, which all of its contexts have. */

static void  (*ngx_http_sluice_http2_nginx_info)(const SSL *ssl, int where,
    int value);
static void  (*ngx_http_sluice_http2_nginx_handshaked)(ngx_connection_t *c);


char *
ngx_http_sluice_http2_limits(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                      n;
    ngx_str_t                     *value;
    ngx_uint_t                     i;
    ngx_http_sluice_http2_conf_t  *mcf;

    mcf = ngx_http_sluice_set_conf(conf, cmd);
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


void
ngx_http_sluice_http2_init(ngx_conf_t *cf, ngx_http_sluice_http2_conf_t *mcf)
{
    SSL_CTX                     *ctx;
    ngx_uint_t                   i;
    ngx_http_ssl_srv_conf_t     *sscf;
    ngx_http_core_srv_conf_t   **servers;
    ngx_http_core_main_conf_t   *cmcf;

    if (!mcf->set) {
        return;
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
}


/*
 * When a handshake ends, nginx goes on with c->ssl->handler, which it has set
 * where the first call of OpenSSL was not the last; else at once, with nothing
 * to take the place of.  So the first call ends when the server has spoken,
 * whatever the client has sent by then.
 */

static void
ngx_http_sluice_http2_info(const SSL *ssl, int where, int value)
{
    BIO                  *bio;
    unsigned int          size;
    ngx_connection_t     *c;
    const unsigned char  *protocol;

    if (ngx_http_sluice_http2_nginx_info) {
        ngx_http_sluice_http2_nginx_info(ssl, where, value);
    }

    if (!(where & (SSL_CB_HANDSHAKE_START|SSL_CB_HANDSHAKE_DONE))) {
        return;
    }

    c = ngx_ssl_get_connection((SSL *) ssl);

    if (c->ssl->handshaked) {
        return;
    }

    if (where & SSL_CB_HANDSHAKE_START) {
        bio = SSL_get_rbio(ssl);
        BIO_set_callback_ex(bio, ngx_http_sluice_http2_bio);
        BIO_set_callback_arg(bio, (char *) c);
        return;
    }

    SSL_get0_alpn_selected(ssl, &protocol, &size);

    if (size == 2 && ngx_memcmp(protocol, "h2", 2) == 0
        && c->ssl->handler != ngx_http_sluice_http2_handshaked)
    {
        ngx_http_sluice_http2_nginx_handshaked = c->ssl->handler;
        c->ssl->handler = ngx_http_sluice_http2_handshaked;
    }
}


static long
ngx_http_sluice_http2_bio(BIO *bio, int operation, const char *data,
    size_t size, int argi, long argl, int result, size_t *processed)
{
    ngx_connection_t  *c;

    if (operation != BIO_CB_READ) {
        return result;
    }

    c = (ngx_connection_t *) BIO_get_callback_arg(bio);

    if (c->ssl->handler != NULL) {
        BIO_set_callback_ex(bio, NULL);
        return result;
    }

    if (BIO_number_written(bio) == 0) {
        return result;
    }

    /* as a socket without data */

    BIO_set_retry_read(bio);

    return -1;
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

void
ngx_http_sluice_http2_init_process(ngx_cycle_t *cycle,
    ngx_http_sluice_http2_conf_t *mcf)
{
    ngx_uint_t        i;
    ngx_listening_t  *ls;

    if (!mcf->set) {
        return;
    }

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].handler == ngx_http_sluice_error_log_connection
            && ngx_http_sluice_http2_is_plain(&ls[i]))
        {
            ls[i].handler = ngx_http_sluice_http2_accept;
        }
    }
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


/*
 * Streams that nginx has reset, and what ended while its header was read, and
 * not by the client.
 */

ngx_int_t
ngx_http_sluice_http2_handler(ngx_http_request_t *r)
{
    ngx_connection_t          *c;
    ngx_http_v2_connection_t  *h2c;

    if (r->stream == NULL || !ngx_http_sluice_main_conf(r, http2)->set) {
        return NGX_OK;
    }

    h2c = r->stream->connection;
    c = h2c->connection;

    if (r->stream->rst_sent) {
        ngx_http_sluice_http2_reset(c);
    }

    if (r->stream->pool == h2c->state.pool && h2c->goaway && !c->error
        && !c->read->timedout)
    {
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_CLOSED_HEADER, 1);
    }

    return NGX_OK;
}
