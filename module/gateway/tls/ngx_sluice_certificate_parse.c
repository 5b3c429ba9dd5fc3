
/*
 * PEM (RFC 7468) of the image to what OpenSSL works with.
 */


#include "ngx_sluice_certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>


static ngx_int_t ngx_sluice_certificate_parse_pair(
    const sluice_core_found_t *found, int chain, int key,
    ngx_sluice_certificate_pair_t *pair, size_t *size, ngx_log_t *log);
static ngx_int_t ngx_sluice_certificate_parse_short(BIO *certs, BIO *keys,
    ngx_sluice_certificate_pair_t *pair);
static u_char *ngx_sluice_certificate_parse_block(BIO *bio, const char *wanted,
    size_t *length);
static ngx_int_t ngx_sluice_certificate_parse_long(BIO *certs, BIO *keys,
    ngx_sluice_certificate_pair_t *pair);
static int ngx_sluice_certificate_password(char *buffer, int size, int rwflag,
    void *data);
static void ngx_sluice_certificate_complain(const sluice_core_found_t *found,
    ngx_log_t *log);


ngx_int_t
ngx_sluice_certificate_parse(const sluice_core_found_t *found,
    ngx_sluice_certificate_t *certificate, ngx_log_t *log)
{
    ngx_int_t  rc;

    ngx_memzero(certificate, sizeof(ngx_sluice_certificate_t));

    rc = ngx_sluice_certificate_parse_pair(found,
                                           SLUICE_CORE_CERTIFICATE_CERT,
                                           SLUICE_CORE_CERTIFICATE_KEY,
                                           &certificate->pairs[0],
                                           &certificate->size, log);
    certificate->npairs = 1;

    if (rc == NGX_OK
        && sluice_core_text(found, SLUICE_CORE_CERTIFICATE_CERT_ALT).data)
    {
        rc = ngx_sluice_certificate_parse_pair(found,
                                             SLUICE_CORE_CERTIFICATE_CERT_ALT,
                                             SLUICE_CORE_CERTIFICATE_KEY_ALT,
                                             &certificate->pairs[1],
                                             &certificate->size, log);
        certificate->npairs = 2;
    }

    if (rc != NGX_OK) {
        ngx_sluice_certificate_complain(found, log);
        ngx_sluice_certificate_free(certificate);
    }

    /* what OpenSSL says of the end of a text would be a connection's error */

    ERR_clear_error();

    return rc;
}


X509 *
ngx_sluice_certificate_parse_authority(const sluice_core_found_t *found,
    ngx_log_t *log)
{
    BIO   *bio;
    X509  *x509;

    bio = ngx_sluice_certificate_value(found, SLUICE_CORE_CA_CERTIFICATE_CERT,
                                       log);
    if (bio == NULL) {
        return NULL;
    }

    x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    if (x509 == NULL) {
        ngx_sluice_certificate_complain(found, log);
    }

    BIO_free(bio);
    ERR_clear_error();

    return x509;
}


static ngx_int_t
ngx_sluice_certificate_parse_pair(const sluice_core_found_t *found, int chain,
    int key, ngx_sluice_certificate_pair_t *pair, size_t *size,
    ngx_log_t *log)
{
    BIO        *certs, *keys;
    ngx_int_t   rc;

    rc = NGX_ERROR;
    certs = ngx_sluice_certificate_value(found, chain, log);
    keys = ngx_sluice_certificate_value(found, key, log);

    if (certs && keys) {
        *size += NGX_SLUICE_CERTIFICATES_SIZE(BIO_pending(certs)
                                              + BIO_pending(keys));

        rc = ngx_sluice_certificate_parse_short(certs, keys, pair);

        if (rc == NGX_DECLINED) {
            rc = ngx_sluice_certificate_parse_long(certs, keys, pair);
        }
    }

    if (rc == NGX_OK) {
        pair->issuers = ngx_sluice_certificate_issuers(certs);
        rc = pair->issuers ? NGX_OK : NGX_ERROR;
    }

    BIO_free(certs);
    BIO_free(keys);

    return rc;
}


/* NGX_DECLINED: neither is kept, and both texts stand at their beginning. */

static ngx_int_t
ngx_sluice_certificate_parse_short(BIO *certs, BIO *keys,
    ngx_sluice_certificate_pair_t *pair)
{
    size_t   length;
    u_char  *data;

    data = ngx_sluice_certificate_parse_block(keys, PEM_STRING_PKCS8INF,
                                              &length);
    if (data) {
        pair->key = ngx_sluice_certificate_decode_key(data, length);
        OPENSSL_clear_free(data, length);
    }

    data = ngx_sluice_certificate_parse_block(certs, PEM_STRING_X509, &length);

    if (data && pair->key) {
        pair->leaf = ngx_sluice_certificate_decode(data, length, pair->key);
    }

    OPENSSL_free(data);

    if (pair->leaf) {
        return NGX_OK;
    }

    EVP_PKEY_free(pair->key);
    pair->key = NULL;

    (void) BIO_reset(certs);
    (void) BIO_reset(keys);

    return NGX_DECLINED;
}


/* The first block of a PEM, if it is one of these. */

static u_char *
ngx_sluice_certificate_parse_block(BIO *bio, const char *wanted,
    size_t *length)
{
    long     n;
    char    *name, *header;
    u_char  *data;

    if (!PEM_read_bio(bio, &name, &header, &data, &n)) {
        return NULL;
    }

    if (ngx_strcmp(name, wanted) != 0) {
        OPENSSL_clear_free(data, (size_t) n);
        data = NULL;
    }

    OPENSSL_free(name);
    OPENSSL_free(header);
    *length = (size_t) n;

    return data;
}


static ngx_int_t
ngx_sluice_certificate_parse_long(BIO *certs, BIO *keys,
    ngx_sluice_certificate_pair_t *pair)
{
    pair->leaf = PEM_read_bio_X509(certs, NULL, NULL, NULL);
    pair->key = PEM_read_bio_PrivateKey(keys, NULL,
                                        ngx_sluice_certificate_password, NULL);

    return pair->leaf && pair->key
           && X509_check_private_key(pair->leaf, pair->key)
           ? NGX_OK : NGX_ERROR;
}


/* There is nobody to ask. */

static int
ngx_sluice_certificate_password(char *buffer, int size, int rwflag, void *data)
{
    return 0;
}


/* By its id: what OpenSSL says could have a part of the text. */

static void
ngx_sluice_certificate_complain(const sluice_core_found_t *found,
    ngx_log_t *log)
{
    u_char                id[32];
    sluice_core_entity_t  head;

    sluice_core_head(found, &head);
    (void) ngx_hex_dump(id, head.id, sizeof(head.id));

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "sluice: the certificate %*s cannot be used",
                  sizeof(id), id);
}


void
ngx_sluice_certificate_free(ngx_sluice_certificate_t *certificate)
{
    ngx_uint_t                      i;
    ngx_sluice_certificate_pair_t  *pair;

    for (i = 0; i < certificate->npairs; i++) {
        pair = &certificate->pairs[i];

        X509_free(pair->leaf);
        sk_X509_pop_free(pair->issuers, X509_free);
        EVP_PKEY_free(pair->key);
    }
}
