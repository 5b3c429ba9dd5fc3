
/*
 * TLS to a service's upstreams (ngx_http_sluice_upstream_tls.h).
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_upstream_tls.h"


#if (NGX_HTTP_SSL)


#define NGX_HTTP_SLUICE_UPSTREAM_TLS_DEPTH  1   /* what nginx has by default */


typedef struct {
    X509_STORE                   *trusted;
} ngx_http_sluice_upstream_tls_conf_t;


static char *ngx_http_sluice_upstream_tls_trusted(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static void ngx_http_sluice_upstream_tls_free_store(void *data);
static void *ngx_http_sluice_upstream_tls_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_upstream_tls_digest(
    ngx_http_sluice_upstream_tls_t *tls);
static ngx_int_t ngx_http_sluice_upstream_tls_set_name(
    X509_VERIFY_PARAM *param, ngx_str_t *name);
static int ngx_http_sluice_upstream_tls_verified(int ok,
    X509_STORE_CTX *ctx);

extern ngx_module_t  ngx_http_sluice_upstream_tls_module;


static ngx_command_t  ngx_http_sluice_upstream_tls_commands[] = {

    { ngx_string("sluice_upstream_trusted_certificate"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_sluice_upstream_tls_trusted,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_upstream_tls_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_sluice_upstream_tls_create_conf, /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_upstream_tls_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_upstream_tls_module_ctx, /* module context */
    ngx_http_sluice_upstream_tls_commands, /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* Read once, by the master: workers share the pages. */

static char *
ngx_http_sluice_upstream_tls_trusted(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_sluice_upstream_tls_conf_t  *tcf = conf;

    ngx_str_t           *value;
    ngx_pool_cleanup_t  *cln;

    value = cf->args->elts;

    if (tcf->trusted == NULL) {
        cln = ngx_pool_cleanup_add(cf->pool, 0);
        if (cln == NULL) {
            return NGX_CONF_ERROR;
        }

        tcf->trusted = X509_STORE_new();
        if (tcf->trusted == NULL) {
            return NGX_CONF_ERROR;
        }

        cln->handler = ngx_http_sluice_upstream_tls_free_store;
        cln->data = tcf->trusted;
    }

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (X509_STORE_load_file(tcf->trusted, (char *) value[1].data) != 1) {
        ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                      "cannot load CA certificates from \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    /* it may leave errors behind where it succeeds */

    ERR_clear_error();

    return NGX_CONF_OK;
}


static void
ngx_http_sluice_upstream_tls_free_store(void *data)
{
    X509_STORE_free(data);
}


static void *
ngx_http_sluice_upstream_tls_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_upstream_tls_conf_t));
}


ngx_int_t
ngx_http_sluice_upstream_tls_read(ngx_pool_t *pool,
    sluice_core_found_t *service, ngx_http_sluice_upstream_tls_t **result)
{
    uint32_t                              flags, depth;
    ngx_http_sluice_upstream_tls_t       *tls;
    ngx_http_sluice_upstream_tls_conf_t  *conf;

    *result = NULL;

    flags = sluice_core_number(service, SLUICE_CORE_SERVICE_FLAGS);

    if (!(flags & NGX_HTTP_SLUICE_SERVICE_VERIFY)) {
        return NGX_OK;
    }

    tls = ngx_pcalloc(pool, sizeof(ngx_http_sluice_upstream_tls_t));
    if (tls == NULL) {
        return NGX_ERROR;
    }

    conf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                          ngx_http_sluice_upstream_tls_module);
    depth = flags / NGX_HTTP_SLUICE_SERVICE_DEPTH;

    tls->verify = 1;
    tls->trusted = conf->trusted;
    tls->depth = depth ? (int) depth - 1 : NGX_HTTP_SLUICE_UPSTREAM_TLS_DEPTH;

    *result = tls;

    return ngx_http_sluice_upstream_tls_digest(tls);
}


static ngx_int_t
ngx_http_sluice_upstream_tls_digest(ngx_http_sluice_upstream_tls_t *tls)
{
    struct {
        int                       depth;
        int                       verify;
    } said = { tls->depth, tls->verify };

    return EVP_Digest(&said, sizeof(said), tls->digest, NULL, EVP_sha256(),
                      NULL)
           == 1 ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_sluice_upstream_tls_set(ngx_connection_t *c,
    ngx_http_sluice_upstream_tls_t *tls, ngx_str_t *name)
{
    SSL                *ssl;
    X509_VERIFY_PARAM  *param;

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


#endif
