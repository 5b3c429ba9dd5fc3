
/*
 * The plugin mtls-auth in nginx: sluice_mtls_auth.c decides, and this asks
 * OpenSSL.
 *
 * No session with a certificate is ever resumed (ngx_http_sluice_tls.h).  So
 * what is verified here is what this connection's client has proved to have.
 */


#include "ngx_http_sluice_crl.h"
#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_tls.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_certificates.h"
#include "sluice_mtls_auth.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>


/*
 * How long what was found of a connection's certificate counts: it may expire,
 * and who is refused is to cost no more than who is not.
 */
#define NGX_HTTP_SLUICE_MTLS_AUTH_FRESH        60          /* seconds */

/* A longer subject is nobody's whom a service could know. */
#define NGX_HTTP_SLUICE_MTLS_AUTH_SUBJECT      4096        /* bytes */


typedef struct {
    sluice_mtls_auth_t    plain;           /* the first: decide() reads it */
    STACK_OF(X509_CRL)   *crls;            /* NULL: none */
    uint64_t              revision;
    uint32_t              slot;
} ngx_http_sluice_mtls_auth_t;


typedef struct {
    sluice_mtls_auth_own_t        plain;   /* the same */
    ngx_http_request_t           *request;
    ngx_http_sluice_mtls_auth_t  *conf;
    X509                         *leaf;    /* NULL: not asked for, or none */
} ngx_http_sluice_mtls_auth_own_t;


static void *ngx_http_sluice_mtls_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_int_t ngx_http_sluice_mtls_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static int ngx_http_sluice_mtls_auth_fresh(sluice_mtls_auth_own_t *plain);
static int ngx_http_sluice_mtls_auth_certificate(
    sluice_mtls_auth_own_t *plain);
static int ngx_http_sluice_mtls_auth_check(sluice_mtls_auth_own_t *plain);
static int ngx_http_sluice_mtls_auth_describe(sluice_mtls_auth_own_t *plain,
    sluice_core_text_t *subject, sluice_core_text_t *fingerprint);
static ngx_int_t ngx_http_sluice_mtls_auth_verify(ngx_http_request_t *r,
    ngx_http_sluice_mtls_auth_t *conf, X509 *leaf, X509_STORE *store);
static int ngx_http_sluice_mtls_auth_revoked(int ok, X509_STORE_CTX *verify);
static int ngx_http_sluice_mtls_auth_subject(ngx_http_request_t *r,
    X509 *leaf, sluice_core_text_t *subject);
static int ngx_http_sluice_mtls_auth_fingerprint(ngx_http_request_t *r,
    X509 *leaf, sluice_core_text_t *fingerprint);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_mtls_auth = {
    .name = ngx_string("mtls-auth"),
    .compile = ngx_http_sluice_mtls_auth_compile,
    .access = ngx_http_sluice_mtls_auth_access
};


static void *
ngx_http_sluice_mtls_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_int_t                     rc;
    ngx_str_t                     crl;
    ngx_http_sluice_mtls_auth_t  *conf;

    conf = ngx_http_sluice_decide_compile(&sluice_mtls_auth,
                                          sizeof(ngx_http_sluice_mtls_auth_t),
                                          pool, binding, words);
    if (conf == NULL) {
        return NULL;
    }

    if (!ngx_http_sluice_tls_asks()) {
        ngx_str_set(words, "no client is asked for a certificate: see the "
                    "setting ask_client_certificate, and ssl in "
                    "proxy_listen");
        return NULL;
    }

    conf->slot = binding->slot;
    conf->revision = binding->revision;

    crl.data = (u_char *) conf->plain.crl.data;
    crl.len = conf->plain.crl.length;

    rc = ngx_http_sluice_crl_get(pool, &crl, &conf->crls);

    if (rc == NGX_DECLINED) {
        ngx_str_set(words, "the revocation list cannot be read");
    }

    return rc == NGX_OK ? conf : NULL;
}


static ngx_int_t
ngx_http_sluice_mtls_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_int_t                        rc;
    ngx_http_sluice_mtls_auth_own_t  own;

    own.plain.certificate = ngx_http_sluice_mtls_auth_certificate;
    own.plain.fresh = ngx_http_sluice_mtls_auth_fresh;
    own.plain.verify = ngx_http_sluice_mtls_auth_check;
    own.plain.describe = ngx_http_sluice_mtls_auth_describe;
    own.request = r;
    own.conf = data;
    own.leaf = NULL;

    rc = ngx_http_sluice_decide(&sluice_mtls_auth, r, ctx, data, &own);

    X509_free(own.leaf);

    return rc;
}


static int
ngx_http_sluice_mtls_auth_fresh(sluice_mtls_auth_own_t *plain)
{
    return ngx_http_sluice_crl_outdated() ? SLUICE_FACT_NONE : SLUICE_FACT_OK;
}


static int
ngx_http_sluice_mtls_auth_certificate(sluice_mtls_auth_own_t *plain)
{
    ngx_connection_t                 *c;
    ngx_http_sluice_mtls_auth_own_t  *own;

    own = (ngx_http_sluice_mtls_auth_own_t *) plain;
    c = own->request->connection;

    own->leaf = c->ssl ? SSL_get1_peer_certificate(c->ssl->connection) : NULL;

    return own->leaf ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


/*
 * Once a minute a connection: by the same configuration, and nothing changed
 * meanwhile.
 */

static int
ngx_http_sluice_mtls_auth_check(sluice_mtls_auth_own_t *plain)
{
    ngx_int_t                         rc;
    ngx_connection_t                 *c;
    const sluice_core_text_t         *ids;
    const ngx_sluice_authorities_t   *authorities;
    ngx_http_sluice_mtls_auth_t      *conf;
    ngx_http_sluice_tls_verified_t   *verified;
    ngx_http_sluice_mtls_auth_own_t  *own;

    own = (ngx_http_sluice_mtls_auth_own_t *) plain;
    conf = own->conf;
    c = own->request->connection;

    if (sluice_images_refresh() != SLUICE_CORE_OK) {
        return SLUICE_FACT_MEMORY;
    }

    verified = ngx_http_sluice_tls_verified(c);

    if (verified->until > ngx_time() && verified->slot == conf->slot
        && verified->revision == conf->revision
        && verified->epoch == sluice_images_epoch())
    {
        return verified->is_refused ? SLUICE_FACT_NONE : SLUICE_FACT_OK;
    }

    ids = &conf->plain.ids;

    if (ngx_sluice_certificates_authorities((const u_char *) ids->data,
                                            ids->length
                                            / NGX_SLUICE_CERTIFICATES_ID,
                                            &authorities, c->log)
        != NGX_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    rc = ngx_http_sluice_mtls_auth_verify(own->request, conf, own->leaf,
                                          authorities->store);

    if (rc == NGX_ERROR) {
        return SLUICE_FACT_MEMORY;
    }

    verified->is_refused = (rc == NGX_DECLINED);
    verified->until = ngx_time() + NGX_HTTP_SLUICE_MTLS_AUTH_FRESH;
    verified->slot = conf->slot;
    verified->revision = conf->revision;
    verified->epoch = sluice_images_epoch();

    return verified->is_refused ? SLUICE_FACT_NONE : SLUICE_FACT_OK;
}


static int
ngx_http_sluice_mtls_auth_describe(sluice_mtls_auth_own_t *plain,
    sluice_core_text_t *subject, sluice_core_text_t *fingerprint)
{
    int                               rc;
    ngx_http_sluice_mtls_auth_own_t  *own;

    own = (ngx_http_sluice_mtls_auth_own_t *) plain;

    rc = ngx_http_sluice_mtls_auth_subject(own->request, own->leaf, subject);

    return rc == SLUICE_FACT_OK
           ? ngx_http_sluice_mtls_auth_fingerprint(own->request, own->leaf,
                                                   fingerprint)
           : rc;
}


static ngx_int_t
ngx_http_sluice_mtls_auth_verify(ngx_http_request_t *r,
    ngx_http_sluice_mtls_auth_t *conf, X509 *leaf, X509_STORE *store)
{
    int              ok, error;
    SSL             *ssl;
    X509_STORE_CTX  *verify;

    verify = X509_STORE_CTX_new();
    if (verify == NULL) {
        return NGX_ERROR;
    }

    ssl = r->connection->ssl->connection;

    if (!X509_STORE_CTX_init(verify, store, leaf, SSL_get_peer_cert_chain(ssl))
        || !X509_STORE_CTX_set_default(verify, "ssl_client"))
    {
        X509_STORE_CTX_free(verify);
        return NGX_ERROR;
    }

    X509_STORE_CTX_set_depth(verify, (int) conf->plain.depth);

    /* OpenSSL's own verification has it too: no SHA-1, no RSA of 1,024 bits */

    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(verify),
                                     SSL_get_security_level(ssl));

    if (conf->crls) {
        X509_STORE_CTX_set0_crls(verify, conf->crls);
        X509_STORE_CTX_set_flags(verify, X509_V_FLAG_CRL_CHECK
                                         |X509_V_FLAG_CRL_CHECK_ALL);
        X509_STORE_CTX_set_verify_cb(verify,
                                     ngx_http_sluice_mtls_auth_revoked);
    }

    ok = X509_verify_cert(verify);
    error = X509_STORE_CTX_get_error(verify);

    X509_STORE_CTX_free(verify);
    ERR_clear_error();

    if (ok == 1) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "mtls-auth: the client's certificate is not verified: %s",
                  X509_verify_cert_error_string(error));

    return NGX_DECLINED;
}


/* A list is a must for the client's issuer; those above may have one. */

static int
ngx_http_sluice_mtls_auth_revoked(int ok, X509_STORE_CTX *verify)
{
    if (!ok
        && X509_STORE_CTX_get_error(verify) == X509_V_ERR_UNABLE_TO_GET_CRL
        && X509_STORE_CTX_get_error_depth(verify) > 0)
    {
        X509_STORE_CTX_set_error(verify, X509_V_OK);
        return 1;
    }

    return ok;
}


/* RFC 2253: what would end a header, and what is not ASCII, is escaped. */

static int
ngx_http_sluice_mtls_auth_subject(ngx_http_request_t *r, X509 *leaf,
    sluice_core_text_t *subject)
{
    int      rc;
    BIO     *bio;
    char    *text;
    long     length;
    u_char  *copy;

    bio = BIO_new(BIO_s_mem());
    if (bio == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    rc = SLUICE_FACT_MEMORY;

    if (X509_NAME_print_ex(bio, X509_get_subject_name(leaf), 0,
                           XN_FLAG_RFC2253) >= 0)
    {
        length = BIO_get_mem_data(bio, &text);
        rc = length > NGX_HTTP_SLUICE_MTLS_AUTH_SUBJECT ? SLUICE_FACT_NONE
                                                        : SLUICE_FACT_OK;
    }

    if (rc == SLUICE_FACT_OK) {
        copy = ngx_pnalloc(r->pool, (size_t) length + 1);

        if (copy == NULL) {
            rc = SLUICE_FACT_MEMORY;

        } else if (length) {

            /* of an empty subject there is no text */

            ngx_memcpy(copy, text, (size_t) length);
        }

        subject->data = (const char *) copy;
        subject->length = (uint32_t) length;
    }

    BIO_free(bio);

    return rc;
}


static int
ngx_http_sluice_mtls_auth_fingerprint(ngx_http_request_t *r, X509 *leaf,
    sluice_core_text_t *fingerprint)
{
    u_char        *text, digest[EVP_MAX_MD_SIZE];
    unsigned int   size;

    if (!X509_digest(leaf, EVP_sha256(), digest, &size)) {
        return SLUICE_FACT_MEMORY;
    }

    text = ngx_pnalloc(r->pool, 2 * size);
    if (text == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    (void) ngx_hex_dump(text, digest, size);

    fingerprint->data = (const char *) text;
    fingerprint->length = 2 * size;

    return SLUICE_FACT_OK;
}
