
/*
 * Which clients are asked for a certificate, in their handshake
 * (ngx_http_sluice_tls.h).
 */


#include "ngx_http_sluice_tls.h"


static int ngx_http_sluice_tls_ask_take(X509_STORE_CTX *store, void *data);


static ngx_uint_t  ngx_http_sluice_tls_asked;


/*
 * "on", or ports: all addresses are one server's of nginx, and its listening
 * sockets may have several addresses of one port.
 */

char *
ngx_http_sluice_tls_ask(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                   n;
    in_port_t                  *port;
    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_sluice_tls_ask_t  *ask;

    ask = (ngx_http_sluice_tls_ask_t *) ((u_char *) conf + cmd->offset);
    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "on") == 0) {
        ask->all = 1;
        return NGX_CONF_OK;
    }

    ask->ports = ngx_array_create(cf->pool, cf->args->nelts,
                                  sizeof(in_port_t));
    if (ask->ports == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        n = ngx_atoi(value[i].data, value[i].len);

        if (n < 1 || n > 65535) {
            return "has a port that is none";
        }

        port = ngx_array_push(ask->ports);
        if (port == NULL) {
            return NGX_CONF_ERROR;
        }

        *port = (in_port_t) n;
    }

    return NGX_CONF_OK;
}


void
ngx_http_sluice_tls_ask_init(SSL_CTX *ctx, ngx_http_sluice_tls_ask_t *ask)
{
    if (ask->all || ask->ports) {
        ngx_http_sluice_tls_asked = 1;
        SSL_CTX_set_cert_verify_callback(ctx, ngx_http_sluice_tls_ask_take,
                                         NULL);
    }
}


/* The client's certificate is not looked at: who needs it, verifies it. */

static int
ngx_http_sluice_tls_ask_take(X509_STORE_CTX *store, void *data)
{
    SSL  *ssl;

    ssl = X509_STORE_CTX_get_ex_data(store,
                                     SSL_get_ex_data_X509_STORE_CTX_idx());

    /* of TLS 1.3; in 1.2 the ticket is an empty one */

    (void) SSL_set_num_tickets(ssl, 0);

    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);

    return 1;
}


ngx_uint_t
ngx_http_sluice_tls_ask_client(SSL *ssl, ngx_http_sluice_tls_ask_t *ask,
    ngx_connection_t *c)
{
    in_port_t   *ports, port;
    ngx_uint_t   i, asked;

    asked = ask->all;
    port = ngx_inet_get_port(c->local_sockaddr);

    for (i = 0; ask->ports && i < ask->ports->nelts; i++) {
        ports = ask->ports->elts;

        if (ports[i] == port) {
            asked = 1;
        }
    }

    if (asked) {
        SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    }

    return asked;
}


void
ngx_http_sluice_tls_ask_nobody(void)
{
    ngx_http_sluice_tls_asked = 0;
}


ngx_uint_t
ngx_http_sluice_tls_asks(void)
{
    return ngx_http_sluice_tls_asked;
}
