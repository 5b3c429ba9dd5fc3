
/*
 * The handshake with a client (ngx_http_sluice_tls.h).
 */


#include "ngx_http_sluice_tls.h"
#include "ngx_sluice_certificates.h"

#include <openssl/sha.h>
#include <openssl/ssl.h>


/* Of what a session is resumed for; another text is another world. */

#define NGX_HTTP_SLUICE_TLS_CONTEXT  "sluice proxy 1"


/* Of a connection, in its pool. */

typedef struct {
    ngx_http_sluice_tls_verified_t   verified;
    ngx_str_t                        name;
    u_char                           data[NGX_SLUICE_CERTIFICATES_NAME];
} ngx_http_sluice_tls_t;


static ngx_int_t ngx_http_sluice_tls_init_server(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *cscf, ngx_http_sluice_tls_conf_t *conf);
static int ngx_http_sluice_tls_hello(SSL *ssl, int *alert, void *data);
static ngx_http_sluice_tls_t *ngx_http_sluice_tls_make(SSL *ssl,
    ngx_connection_t *c);
static ngx_int_t ngx_http_sluice_tls_read_name(SSL *ssl,
    ngx_http_sluice_tls_t *tls);
static int ngx_http_sluice_tls_set_context(SSL *ssl,
    ngx_http_sluice_tls_t *tls, ngx_uint_t asked);
static int ngx_http_sluice_tls_certificate(SSL *ssl, void *data);
static ngx_int_t ngx_http_sluice_tls_use(SSL *ssl,
    const ngx_sluice_certificate_t *certificate);


extern ngx_module_t  ngx_http_ssl_module;

/* The Lua module's, whose callback has ours in its place. */

extern int ngx_http_lua_ssl_cert_handler(ngx_ssl_conn_t *ssl, void *data);


ngx_http_sluice_tls_more_pt  ngx_http_sluice_tls_more;


/* Of OpenSSL's connections; made once a process image. */

static int  ngx_http_sluice_tls_index = -1;

static ngx_uint_t  ngx_http_sluice_tls_runs_lua;


void
sluice_tls_lua(int runs)
{
    ngx_http_sluice_tls_runs_lua = runs ? 1 : 0;
}


ngx_int_t
ngx_http_sluice_tls_init(ngx_conf_t *cf)
{
    ngx_uint_t                    i;
    ngx_http_core_srv_conf_t    **servers;
    ngx_http_core_main_conf_t    *cmcf;
    ngx_http_sluice_tls_conf_t   *conf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    servers = cmcf->servers.elts;
    ngx_http_sluice_tls_ask_nobody();

    for (i = 0; i < cmcf->servers.nelts; i++) {
        conf = ngx_http_sluice_srv_conf(servers[i]->ctx, tls);

        if (conf->enable
            && ngx_http_sluice_tls_init_server(cf, servers[i], conf) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_tls_init_server(ngx_conf_t *cf, ngx_http_core_srv_conf_t *cscf,
    ngx_http_sluice_tls_conf_t *conf)
{
    SSL_CTX                  *ctx;
    ngx_http_ssl_srv_conf_t  *sscf;

    sscf = cscf->ctx->srv_conf[ngx_http_ssl_module.ctx_index];
    ctx = sscf->ssl.ctx;

    if (ctx == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"sluice_tls\" wants an \"ssl_certificate\" for names "
                      "that nobody has one for");
        return NGX_ERROR;
    }

    if (ngx_http_sluice_tls_index == -1) {
        ngx_http_sluice_tls_index = SSL_get_ex_new_index(0, NULL, NULL, NULL,
                                                         NULL);
        if (ngx_http_sluice_tls_index == -1) {
            return NGX_ERROR;
        }
    }

    ngx_http_sluice_tls_ask_init(ctx, &conf->ask);

    SSL_CTX_set_client_hello_cb(ctx, ngx_http_sluice_tls_hello, conf);
    SSL_CTX_set_cert_cb(ctx, ngx_http_sluice_tls_certificate, NULL);

    return ngx_http_sluice_tls_tickets_init(cf, ctx);
}


static int
ngx_http_sluice_tls_hello(SSL *ssl, int *alert, void *data)
{
    ngx_http_sluice_tls_conf_t  *conf = data;

    ngx_uint_t              asked;
    ngx_connection_t       *c;
    ngx_http_sluice_tls_t  *tls;

    c = ngx_ssl_get_connection(ssl);
    tls = ngx_http_sluice_tls_make(ssl, c);

    if (tls == NULL) {
        *alert = SSL_AD_INTERNAL_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }

    if (ngx_http_sluice_tls_read_name(ssl, tls) != NGX_OK) {
        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "sluice: the client's server_name is not well-formed");
        *alert = SSL_AD_DECODE_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }

    asked = ngx_http_sluice_tls_ask_client(ssl, &conf->ask, c);

    if (!ngx_http_sluice_tls_set_context(ssl, tls, asked)) {
        *alert = SSL_AD_INTERNAL_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }

    return SSL_CLIENT_HELLO_SUCCESS;
}


/* The one there is: a client may be asked to say hello again. */

static ngx_http_sluice_tls_t *
ngx_http_sluice_tls_make(SSL *ssl, ngx_connection_t *c)
{
    ngx_http_sluice_tls_t  *tls;

    tls = SSL_get_ex_data(ssl, ngx_http_sluice_tls_index);

    if (tls == NULL) {
        tls = ngx_pcalloc(c->pool, sizeof(ngx_http_sluice_tls_t));

        if (tls == NULL
            || !SSL_set_ex_data(ssl, ngx_http_sluice_tls_index, tls))
        {
            return NULL;
        }
    }

    tls->name.data = tls->data;
    tls->name.len = 0;

    return tls;
}


/*
 * RFC 6066, section 3: the length of a list, and in it one name: its type
 * (host_name is 0), its length, its bytes.
 */

static ngx_int_t
ngx_http_sluice_tls_read_name(SSL *ssl, ngx_http_sluice_tls_t *tls)
{
    size_t        size, length, i;
    const u_char  *p;

    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &size)) {
        return NGX_OK;
    }

    if (size < 5 || (size_t) (p[0] << 8 | p[1]) != size - 2
        || p[2] != TLSEXT_NAMETYPE_host_name)
    {
        return NGX_ERROR;
    }

    length = (size_t) (p[3] << 8 | p[4]);

    if (length != size - 5 || length == 0
        || length > NGX_SLUICE_CERTIFICATES_NAME)
    {
        return NGX_ERROR;
    }

    /* it may stand in the error log, a line of which ends with a line feed */

    for (i = 0; i < length; i++) {
        if (p[5 + i] < ' ' || p[5 + i] == 0x7f) {
            return NGX_ERROR;
        }
    }

    if (length > 1 && p[5 + length - 1] == '.') {
        length--;
    }

    ngx_strlow(tls->data, (u_char *) p + 5, length);
    tls->name.len = length;

    return NGX_OK;
}


static int
ngx_http_sluice_tls_set_context(SSL *ssl, ngx_http_sluice_tls_t *tls,
    ngx_uint_t asked)
{
    u_char  text[sizeof(NGX_HTTP_SLUICE_TLS_CONTEXT)
                 + 1 + NGX_SLUICE_CERTIFICATES_NAME], *p;
    u_char  digest[SHA256_DIGEST_LENGTH];

    /* with the NUL, so that no name goes on where the text ends */

    p = ngx_cpymem(text, NGX_HTTP_SLUICE_TLS_CONTEXT,
                   sizeof(NGX_HTTP_SLUICE_TLS_CONTEXT));
    *p++ = asked ? 1 : 0;
    p = ngx_cpymem(p, tls->name.data, tls->name.len);

    (void) SHA256(text, p - text, digest);

    return SSL_set_session_id_context(ssl, digest, sizeof(digest));
}


static int
ngx_http_sluice_tls_certificate(SSL *ssl, void *data)
{
    ngx_int_t                        rc, more;
    ngx_connection_t                *c;
    ngx_http_sluice_tls_t           *tls;
    const ngx_sluice_certificate_t  *certificate;

    c = ngx_ssl_get_connection(ssl);
    tls = SSL_get_ex_data(ssl, ngx_http_sluice_tls_index);

    rc = ngx_sluice_certificates_by_sni(&tls->name, &certificate, c->log);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_tls_use(ssl, certificate);
    }

    more = NGX_OK;

    if (rc != NGX_ERROR && ngx_http_sluice_tls_more) {
        more = ngx_http_sluice_tls_more(c, &tls->name);

        if (more == NGX_ERROR) {
            rc = NGX_ERROR;
        }
    }

    if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "sluice: no handshake for the server name \"%V\"",
                      &tls->name);
        return 0;
    }

    return more == NGX_DONE && ngx_http_sluice_tls_runs_lua
           ? ngx_http_lua_ssl_cert_handler(ssl, NULL) : 1;
}


static ngx_int_t
ngx_http_sluice_tls_use(SSL *ssl, const ngx_sluice_certificate_t *certificate)
{
    ngx_uint_t                            i;
    const ngx_sluice_certificate_pair_t  *pair;

    /* the server's own, which might fit the client better */

    SSL_certs_clear(ssl);

    for (i = 0; i < certificate->npairs; i++) {
        pair = &certificate->pairs[i];

        if (!SSL_use_cert_and_key(ssl, pair->leaf, pair->key, pair->issuers,
                                  1))
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_sluice_tls_name(ngx_connection_t *c, ngx_str_t *name)
{
    ngx_http_sluice_tls_t  *tls;

    tls = NULL;

    if (c->ssl && ngx_http_sluice_tls_index != -1) {
        tls = SSL_get_ex_data(c->ssl->connection, ngx_http_sluice_tls_index);
    }

    if (tls) {
        *name = tls->name;

    } else {
        ngx_str_null(name);
    }
}


ngx_http_sluice_tls_verified_t *
ngx_http_sluice_tls_verified(ngx_connection_t *c)
{
    ngx_http_sluice_tls_t  *tls;

    tls = SSL_get_ex_data(c->ssl->connection, ngx_http_sluice_tls_index);

    return tls ? &tls->verified : NULL;
}
