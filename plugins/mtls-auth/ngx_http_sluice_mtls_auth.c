
/*
 * The plugin mtls-auth: asks for a client certificate of one of its CAs
 * (docs/plugins/mtls-auth.md).
 *
 * The handshake takes any certificate, since it comes before the route is
 * known, and no session with one is ever resumed (ngx_http_sluice_tls.h).  So
 * what is verified here is what this connection's client has proved to have.
 */


#include "ngx_http_sluice_plugin.h"
#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_crl.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_packed.h"
#include "ngx_http_sluice_tls.h"
#include "ngx_sluice_abi.h"
#include "ngx_sluice_certificates.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>


#define NGX_HTTP_SLUICE_MTLS_AUTH_MISDIRECTED  421

/*
 * How long what was found of a connection's certificate counts: it may expire,
 * and who is refused is to cost no more than who is not.
 */
#define NGX_HTTP_SLUICE_MTLS_AUTH_FRESH        60          /* seconds */

/* A longer subject is nobody's whom a service could know. */
#define NGX_HTTP_SLUICE_MTLS_AUTH_SUBJECT      4096        /* bytes */


typedef struct {
    ngx_str_t             ids;             /* of CAs, 16 bytes each */
    ngx_uint_t            depth;
    STACK_OF(X509_CRL)   *crls;            /* NULL: none */
    uint64_t              revision;
    uint32_t              slot;
} ngx_http_sluice_mtls_auth_t;


static void *ngx_http_sluice_mtls_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_int_t ngx_http_sluice_mtls_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static ngx_int_t ngx_http_sluice_mtls_auth_check(ngx_http_request_t *r,
    ngx_http_sluice_mtls_auth_t *conf, X509 *leaf);
static ngx_int_t ngx_http_sluice_mtls_auth_verify(ngx_http_request_t *r,
    ngx_http_sluice_mtls_auth_t *conf, X509 *leaf, X509_STORE *store);
static int ngx_http_sluice_mtls_auth_revoked(int ok, X509_STORE_CTX *verify);
static ngx_int_t ngx_http_sluice_mtls_auth_tell(ngx_http_request_t *r,
    X509 *leaf);
static ngx_int_t ngx_http_sluice_mtls_auth_subject(ngx_http_request_t *r,
    X509 *leaf, ngx_str_t *subject);
static ngx_int_t ngx_http_sluice_mtls_auth_fingerprint(ngx_http_request_t *r,
    X509 *leaf, ngx_str_t *fingerprint);
static ngx_int_t ngx_http_sluice_mtls_auth_set(ngx_http_request_t *r,
    sluice_header_t *header, ngx_str_t *value);


#define ngx_http_sluice_mtls_auth_header(name, lowcase)                       \
    { (u_char *) name, (u_char *) lowcase, sizeof(name) - 1, 0, 0 }


ngx_http_sluice_plugin_t  ngx_http_sluice_mtls_auth_plugin = {
    ngx_string("mtls-auth"),
    ngx_http_sluice_mtls_auth_compile,
    ngx_http_sluice_mtls_auth_access
};


static sluice_header_t  ngx_http_sluice_mtls_auth_dn =
    ngx_http_sluice_mtls_auth_header("X-Client-Cert-DN", "x-client-cert-dn");
static sluice_header_t  ngx_http_sluice_mtls_auth_digest =
    ngx_http_sluice_mtls_auth_header("X-Client-Cert-Fingerprint",
                                     "x-client-cert-fingerprint");


static void *
ngx_http_sluice_mtls_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_int_t                     rc;
    ngx_str_t                     ids, crl;
    ngx_http_sluice_packed_t      packed;
    ngx_http_sluice_mtls_auth_t  *conf;

    conf = ngx_pcalloc(pool, sizeof(ngx_http_sluice_mtls_auth_t));
    if (conf == NULL) {
        return NULL;
    }

    ngx_http_sluice_packed_open(&packed, &binding->packed);

    conf->depth = ngx_http_sluice_packed_number(&packed);
    ngx_http_sluice_packed_text(&packed, &ids);
    ngx_http_sluice_packed_text(&packed, &crl);

    if (ngx_http_sluice_packed_done(&packed) != NGX_OK || ids.len == 0
        || ids.len % NGX_SLUICE_CERTIFICATES_ID != 0)
    {
        ngx_str_set(words, "the packed configuration is damaged");
        return NULL;
    }

    if (!ngx_http_sluice_tls_asks()) {
        ngx_str_set(words, "no client is asked for a certificate: see the "
                    "setting ask_client_certificate");
        return NULL;
    }

    conf->slot = binding->slot;
    conf->revision = binding->revision;
    conf->ids.len = ids.len;
    conf->ids.data = ngx_pstrdup(pool, &ids);

    if (conf->ids.data == NULL) {
        return NULL;
    }

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
    ngx_http_sluice_mtls_auth_t  *conf = data;

    X509       *leaf;
    ngx_int_t   rc;
    ngx_str_t   name, words;

    ngx_http_sluice_tls_name(r->connection, &name);

    if (name.len
        && (name.len != r->headers_in.server.len
            || ngx_strncmp(name.data, r->headers_in.server.data, name.len)
               != 0))
    {
        ngx_str_set(&words, "The host is another than that of the connection");
        return ngx_http_sluice_answer(r, NGX_HTTP_SLUICE_MTLS_AUTH_MISDIRECTED,
                                      &words);
    }

    /* another connection is with a worker that has them */

    if (ngx_http_sluice_crl_outdated()) {
        ngx_str_set(&words, "The connection is older than the revocation "
                    "lists");
        return ngx_http_sluice_answer(r, NGX_HTTP_SLUICE_MTLS_AUTH_MISDIRECTED,
                                      &words);
    }

    leaf = r->connection->ssl
           ? SSL_get1_peer_certificate(r->connection->ssl->connection) : NULL;

    if (leaf == NULL) {
        ngx_str_set(&words, "No required TLS certificate was sent");
        return ngx_http_sluice_answer(r, NGX_HTTP_UNAUTHORIZED, &words);
    }

    rc = ngx_http_sluice_mtls_auth_check(r, conf, leaf);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_mtls_auth_tell(r, leaf);
    }

    X509_free(leaf);

    if (rc == NGX_DECLINED) {
        ngx_str_set(&words, "TLS certificate failed verification");
        return ngx_http_sluice_answer(r, NGX_HTTP_UNAUTHORIZED, &words);
    }

    return rc == NGX_OK ? NGX_OK
           : ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
}


/*
 * Once a minute a connection: by the same configuration, and nothing changed
 * meanwhile.
 */

static ngx_int_t
ngx_http_sluice_mtls_auth_check(ngx_http_request_t *r,
    ngx_http_sluice_mtls_auth_t *conf, X509 *leaf)
{
    ngx_int_t                         rc;
    const ngx_sluice_authorities_t   *authorities;
    ngx_http_sluice_tls_verified_t   *verified;

    if (sluice_images_refresh() != SLUICE_CORE_OK) {
        return NGX_ERROR;
    }

    verified = ngx_http_sluice_tls_verified(r->connection);

    if (verified->until > ngx_time() && verified->slot == conf->slot
        && verified->revision == conf->revision
        && verified->epoch == sluice_images_epoch())
    {
        return verified->is_refused ? NGX_DECLINED : NGX_OK;
    }

    if (ngx_sluice_authorities(conf->ids.data,
                               conf->ids.len / NGX_SLUICE_CERTIFICATES_ID,
                               &authorities, r->connection->log)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_sluice_mtls_auth_verify(r, conf, leaf, authorities->store);

    if (rc != NGX_ERROR) {
        verified->is_refused = (rc == NGX_DECLINED);
        verified->until = ngx_time() + NGX_HTTP_SLUICE_MTLS_AUTH_FRESH;
        verified->slot = conf->slot;
        verified->revision = conf->revision;
        verified->epoch = sluice_images_epoch();
    }

    return rc;
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

    X509_STORE_CTX_set_depth(verify, (int) conf->depth);

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


static ngx_int_t
ngx_http_sluice_mtls_auth_tell(ngx_http_request_t *r, X509 *leaf)
{
    ngx_int_t  rc;
    ngx_str_t  subject, fingerprint;

    rc = ngx_http_sluice_mtls_auth_subject(r, leaf, &subject);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_mtls_auth_fingerprint(r, leaf, &fingerprint);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_mtls_auth_set(r, &ngx_http_sluice_mtls_auth_dn,
                                           &subject);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_mtls_auth_set(r,
                                           &ngx_http_sluice_mtls_auth_digest,
                                           &fingerprint);
    }

    return rc;
}


/* RFC 2253: what would end a header, and what is not ASCII, is escaped. */

static ngx_int_t
ngx_http_sluice_mtls_auth_subject(ngx_http_request_t *r, X509 *leaf,
    ngx_str_t *subject)
{
    BIO        *bio;
    char       *text;
    long        length;
    ngx_int_t   rc;

    bio = BIO_new(BIO_s_mem());
    if (bio == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    if (X509_NAME_print_ex(bio, X509_get_subject_name(leaf), 0,
                           XN_FLAG_RFC2253) >= 0)
    {
        length = BIO_get_mem_data(bio, &text);
        rc = length > NGX_HTTP_SLUICE_MTLS_AUTH_SUBJECT ? NGX_DECLINED
                                                        : NGX_OK;
    }

    if (rc == NGX_OK) {
        subject->len = (size_t) length;
        subject->data = ngx_pnalloc(r->pool, subject->len + 1);

        if (subject->data == NULL) {
            rc = NGX_ERROR;

        } else if (subject->len) {

            /* of an empty subject there is no text */

            ngx_memcpy(subject->data, text, subject->len);
        }
    }

    BIO_free(bio);

    return rc;
}


static ngx_int_t
ngx_http_sluice_mtls_auth_fingerprint(ngx_http_request_t *r, X509 *leaf,
    ngx_str_t *fingerprint)
{
    u_char        digest[EVP_MAX_MD_SIZE];
    unsigned int  size;

    if (!X509_digest(leaf, EVP_sha256(), digest, &size)) {
        return NGX_ERROR;
    }

    fingerprint->len = 2 * size;
    fingerprint->data = ngx_pnalloc(r->pool, fingerprint->len);

    if (fingerprint->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_hex_dump(fingerprint->data, digest, size);

    return NGX_OK;
}


/* In place of what may be there, whoever has said it. */

static ngx_int_t
ngx_http_sluice_mtls_auth_set(ngx_http_request_t *r, sluice_header_t *header,
    ngx_str_t *value)
{
    if (ngx_http_sluice_header_clear(r, header->lowcase, header->length)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (header->hash == 0) {
        header->hash = ngx_hash_key(header->lowcase, header->length);
    }

    return ngx_http_sluice_header_add(r, &r->headers_in.headers, header,
                                      value->data, value->len);
}
