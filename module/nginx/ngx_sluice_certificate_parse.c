
/*
 * PEM (RFC 7468) of the image to what OpenSSL works with.
 */


#include "ngx_sluice_certificates.h"

#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>


/* A value that is looked up: {vault://env/NAME} (gateway/config/vault.lua). */

#define NGX_SLUICE_CERTIFICATE_VAULT     "{vault://env/"
#define NGX_SLUICE_CERTIFICATE_VARIABLE  256


static ngx_int_t ngx_sluice_certificate_parse_pair(
    const sluice_core_found_t *found, int chain, int key,
    ngx_sluice_certificate_pair_t *pair, ngx_log_t *log);
static ngx_int_t ngx_sluice_certificate_parse_chain(BIO *bio,
    ngx_sluice_certificate_pair_t *pair);
static EVP_PKEY *ngx_sluice_certificate_parse_key(BIO *bio);
static EVP_PKEY *ngx_sluice_certificate_decode(const u_char *data,
    size_t length);
static BIO *ngx_sluice_certificate_open(const sluice_core_found_t *found,
    int field, ngx_log_t *log);
static const char *ngx_sluice_certificate_value(const sluice_core_text_t *text,
    ngx_log_t *log);
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
                                           &certificate->pairs[0], log);
    certificate->npairs = 1;

    if (rc == NGX_OK
        && sluice_core_text(found, SLUICE_CORE_CERTIFICATE_CERT_ALT).data)
    {
        rc = ngx_sluice_certificate_parse_pair(found,
                                             SLUICE_CORE_CERTIFICATE_CERT_ALT,
                                             SLUICE_CORE_CERTIFICATE_KEY_ALT,
                                             &certificate->pairs[1], log);
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

    bio = ngx_sluice_certificate_open(found, SLUICE_CORE_CA_CERTIFICATE_CERT,
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
    int key, ngx_sluice_certificate_pair_t *pair, ngx_log_t *log)
{
    BIO        *bio;
    ngx_int_t   rc;

    bio = ngx_sluice_certificate_open(found, chain, log);
    if (bio == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_sluice_certificate_parse_chain(bio, pair);
    BIO_free(bio);

    if (rc != NGX_OK) {
        return rc;
    }

    bio = ngx_sluice_certificate_open(found, key, log);
    if (bio == NULL) {
        return NGX_ERROR;
    }

    pair->key = ngx_sluice_certificate_parse_key(bio);
    BIO_free(bio);

    return pair->key && X509_check_private_key(pair->leaf, pair->key)
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_sluice_certificate_parse_chain(BIO *bio,
    ngx_sluice_certificate_pair_t *pair)
{
    X509  *x509;

    pair->leaf = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    pair->issuers = sk_X509_new_null();

    if (pair->leaf == NULL || pair->issuers == NULL) {
        return NGX_ERROR;
    }

    while ((x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {

        if (!sk_X509_push(pair->issuers, x509)) {
            X509_free(x509);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/*
 * PEM_read_bio_PrivateKey() of OpenSSL 3.0 makes a decoder each time, of all
 * that there are: 4.7 million instructions a key.  With one that is kept it
 * is 0.56 million (callgrind, P-256), for keys in the form that all tools
 * write today.
 */

static EVP_PKEY *
ngx_sluice_certificate_parse_key(BIO *bio)
{
    long       length;
    char      *name, *header;
    u_char    *data;
    EVP_PKEY  *key;

    key = NULL;

    if (PEM_read_bio(bio, &name, &header, &data, &length)) {

        if (ngx_strcmp(name, PEM_STRING_PKCS8INF) == 0) {
            key = ngx_sluice_certificate_decode(data, (size_t) length);
        }

        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(data, (size_t) length);
    }

    if (key == NULL) {
        (void) BIO_reset(bio);
        key = PEM_read_bio_PrivateKey(bio, NULL,
                                      ngx_sluice_certificate_password, NULL);
    }

    return key;
}


static EVP_PKEY *
ngx_sluice_certificate_decode(const u_char *data, size_t length)
{
    EVP_PKEY  *key;

    static EVP_PKEY          *decoded;
    static OSSL_DECODER_CTX  *decoder;

    if (decoder == NULL) {
        decoder = OSSL_DECODER_CTX_new_for_pkey(&decoded, "DER",
                                                "PrivateKeyInfo", NULL,
                                                EVP_PKEY_KEYPAIR, NULL, NULL);
    }

    decoded = NULL;

    if (decoder && !OSSL_DECODER_from_data(decoder, &data, &length)) {
        EVP_PKEY_free(decoded);
        decoded = NULL;
    }

    key = decoded;
    decoded = NULL;

    return key;
}


static BIO *
ngx_sluice_certificate_open(const sluice_core_found_t *found, int field,
    ngx_log_t *log)
{
    const char          *value;
    sluice_core_text_t   text;

    text = sluice_core_text(found, field);

    if (text.data == NULL) {
        return NULL;
    }

    value = ngx_sluice_certificate_value(&text, log);

    return value == NULL ? NULL
           : BIO_new_mem_buf(value, value == text.data ? (int) text.length
                                                       : -1);
}


/*
 * The text, or what the environment has: nginx's has no other variables of the
 * user than those that may be referred to.
 */

static const char *
ngx_sluice_certificate_value(const sluice_core_text_t *text, ngx_log_t *log)
{
    char        name[NGX_SLUICE_CERTIFICATE_VARIABLE];
    size_t      i, n;
    const char *value;

    n = sizeof(NGX_SLUICE_CERTIFICATE_VAULT) - 1;

    if (text->length <= n
        || ngx_memcmp(text->data, NGX_SLUICE_CERTIFICATE_VAULT, n) != 0)
    {
        return text->data;
    }

    for (i = 0; n + i < text->length && i < sizeof(name) - 1; i++) {

        if (text->data[n + i] == '}') {
            break;
        }

        name[i] = text->data[n + i] == '-'
                  ? '_' : (char) ngx_toupper(text->data[n + i]);
    }

    name[i] = '\0';
    value = getenv(name);

    if (value == NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "sluice: a certificate refers to the environment "
                      "variable \"%s\", which is not there", name);
    }

    return value;
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
