
/*
 * From what a service says of TLS to a connection before its handshake
 * (ngx_http_sluice_upstream_tls.h).
 */


#include "ngx_http_sluice_upstream_tls.h"


static ngx_int_t ngx_http_sluice_upstream_tls_set_client(ngx_connection_t *c,
    ngx_sluice_certificate_t *client);
static ngx_int_t ngx_http_sluice_upstream_tls_set_name(
    X509_VERIFY_PARAM *param, ngx_str_t *name);
static int ngx_http_sluice_upstream_tls_verified(int ok,
    X509_STORE_CTX *ctx);


ngx_int_t
ngx_http_sluice_upstream_tls_set(ngx_connection_t *c,
    ngx_http_sluice_upstream_tls_t *tls, ngx_str_t *name)
{
    SSL                *ssl;
    X509_VERIFY_PARAM  *param;

    if (ngx_http_sluice_upstream_tls_set_client(c, &tls->client) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!tls->verify) {
        return NGX_OK;
    }

    ssl = c->ssl->connection;
    param = SSL_get0_param(ssl);

    SSL_set_verify(ssl, SSL_VERIFY_PEER,
                   ngx_http_sluice_upstream_tls_verified);
    SSL_set_verify_depth(ssl, tls->depth);
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    if (tls->trusted && SSL_set1_verify_cert_store(ssl, tls->trusted) != 1) {
        ngx_ssl_error(NGX_LOG_ALERT, c->log, 0,
                      "SSL_set1_verify_cert_store() failed");
        return NGX_ERROR;
    }

    if (ngx_http_sluice_upstream_tls_set_name(param, name) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "upstream SSL certificate cannot match \"%V\"", name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_tls_set_client(ngx_connection_t *c,
    ngx_sluice_certificate_t *client)
{
    ngx_uint_t                      i;
    ngx_sluice_certificate_pair_t  *pair;

    for (i = 0; i < client->npairs; i++) {
        pair = &client->pairs[i];

        if (SSL_use_cert_and_key(c->ssl->connection, pair->leaf, pair->key,
                                 pair->issuers, 1)
            != 1)
        {
            ngx_ssl_error(NGX_LOG_ERR, c->log, 0,
                          "the client certificate for the upstream cannot be "
                          "used");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Addresses are told from names as nginx does where it sends none (SNI). */

static ngx_int_t
ngx_http_sluice_upstream_tls_set_name(X509_VERIFY_PARAM *param,
    ngx_str_t *name)
{
    size_t     length;
    u_char    *data, ip6[16];
    in_addr_t  ip4;

    data = name->data;
    length = name->len;

    if (length > 2 && data[0] == '[' && data[length - 1] == ']') {

        if (ngx_inet6_addr(data + 1, length - 2, ip6) != NGX_OK) {
            return NGX_ERROR;
        }

        return X509_VERIFY_PARAM_set1_ip(param, ip6, sizeof(ip6)) == 1
               ? NGX_OK : NGX_ERROR;
    }

    ip4 = ngx_inet_addr(data, length);

    if (ip4 != INADDR_NONE) {
        return X509_VERIFY_PARAM_set1_ip(param, (u_char *) &ip4, sizeof(ip4))
               == 1 ? NGX_OK : NGX_ERROR;
    }

    /* certificates have names without the last dot */

    if (length && data[length - 1] == '.') {
        length--;
    }

    /* OpenSSL would take an empty one as any */

    if (length == 0) {
        return NGX_ERROR;
    }

    return X509_VERIFY_PARAM_set1_host(param, (char *) data, length) == 1
           ? NGX_OK : NGX_ERROR;
}


/* What is wrong, in nginx's words; nginx says then "handshake rejected". */

static int
ngx_http_sluice_upstream_tls_verified(int ok, X509_STORE_CTX *ctx)
{
    int                  error;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    if (ok) {
        return 1;
    }

    c = ngx_ssl_get_connection(X509_STORE_CTX_get_ex_data(ctx,
                                       SSL_get_ex_data_X509_STORE_CTX_idx()));
    error = X509_STORE_CTX_get_error(ctx);

    switch (error) {

    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        r = c->data;
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "upstream SSL certificate does not match \"%V\"",
                      &r->upstream->ssl_name);
        break;

    default:
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "upstream SSL certificate verify error: (%d:%s)",
                      error, X509_verify_cert_error_string(error));
    }

    /* else nginx has a critical error of what is the upstream's */

    c->ssl->handshake_rejected = 1;

    return 0;
}
