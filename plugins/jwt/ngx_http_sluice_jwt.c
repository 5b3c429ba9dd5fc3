
/*
 * The plugin jwt in nginx: sluice_jwt.c decides.  Signatures by public keys
 * are verified here, by OpenSSL.
 *
 * A worker remembers keys, as OpenSSL has them, with the credential as it was:
 * one that was changed has another revision.  The table has a fixed size; a
 * newcomer takes the place of an older one.
 */


#include "ngx_http_sluice_jwt.h"

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>


#define NGX_HTTP_SLUICE_JWT_KEYS  256


typedef struct {
    EVP_PKEY     *key;
    uint64_t      revision;
    uint32_t      slot;
    uint32_t      generation;
    ngx_uint_t    is_read;           /* key NULL: it is none */
} ngx_http_sluice_jwt_key_t;


static ngx_int_t ngx_http_sluice_jwt_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static int ngx_http_sluice_jwt_verify(sluice_jwt_own_t *own,
    const sluice_jwt_signed_t *what);
static EVP_PKEY *ngx_http_sluice_jwt_key(const sluice_jwt_signed_t *what);
static EVP_PKEY *ngx_http_sluice_jwt_read_key(const sluice_core_text_t *pem);
static int ngx_http_sluice_jwt_password(char *buf, int size, int is_new,
    void *data);
static ngx_uint_t ngx_http_sluice_jwt_is_of(EVP_PKEY *key, int family);
static int ngx_http_sluice_jwt_check(EVP_PKEY *key,
    const sluice_jwt_token_t *token);
static int ngx_http_sluice_jwt_check_by(EVP_MD_CTX *context, EVP_PKEY *key,
    const sluice_jwt_token_t *token, const u_char *signature, size_t length);
static u_char *ngx_http_sluice_jwt_der(const sluice_jwt_token_t *token,
    size_t *length);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_jwt = {
    .name = ngx_string("jwt"),
    .decision = &sluice_jwt,
    .access = ngx_http_sluice_jwt_access
};


static ngx_http_sluice_jwt_key_t
    ngx_http_sluice_jwt_keys[NGX_HTTP_SLUICE_JWT_KEYS];


static ngx_int_t
ngx_http_sluice_jwt_access(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    void *data)
{
    ngx_http_sluice_jwt_own_t  own;

    own.plain.recall = ngx_http_sluice_jwt_recall;
    own.plain.is_right = ngx_http_sluice_jwt_is_right;
    own.plain.remember = ngx_http_sluice_jwt_remember;
    own.plain.verify = ngx_http_sluice_jwt_verify;

    return ngx_http_sluice_decide(&sluice_jwt, r, ctx, data, &own);
}


static int
ngx_http_sluice_jwt_verify(sluice_jwt_own_t *own,
    const sluice_jwt_signed_t *what)
{
    int        rc;
    EVP_PKEY  *key;

    key = ngx_http_sluice_jwt_key(what);

    rc = key ? ngx_http_sluice_jwt_check(key, what->token) : SLUICE_FACT_NONE;

    /* what OpenSSL found wrong is no one else's */

    ERR_clear_error();

    return rc;
}


static EVP_PKEY *
ngx_http_sluice_jwt_key(const sluice_jwt_signed_t *what)
{
    ngx_http_sluice_jwt_key_t  *kept;

    kept = &ngx_http_sluice_jwt_keys[what->slot % NGX_HTTP_SLUICE_JWT_KEYS];

    if (!kept->is_read
        || kept->slot != what->slot
        || kept->generation != what->generation
        || kept->revision != what->revision)
    {
        EVP_PKEY_free(kept->key);

        kept->key = ngx_http_sluice_jwt_read_key(&what->key);
        kept->slot = what->slot;
        kept->generation = what->generation;
        kept->revision = what->revision;
        kept->is_read = 1;
    }

    if (kept->key
        && !ngx_http_sluice_jwt_is_of(kept->key,
                                      what->token->algorithm->family))
    {
        return NULL;
    }

    return kept->key;
}


/* A public key, as its owner has it; or a private one, of which it is made. */

static EVP_PKEY *
ngx_http_sluice_jwt_read_key(const sluice_core_text_t *pem)
{
    BIO       *bio;
    EVP_PKEY  *key;

    bio = BIO_new_mem_buf(pem->data, (int) pem->length);
    if (bio == NULL) {
        return NULL;
    }

    key = PEM_read_bio_PUBKEY(bio, NULL, ngx_http_sluice_jwt_password, NULL);

    if (key == NULL && BIO_reset(bio) == 1) {
        key = PEM_read_bio_PrivateKey(bio, NULL, ngx_http_sluice_jwt_password,
                                      NULL);
    }

    BIO_free(bio);

    return key;
}


/* None, not even an empty one: to try it may take as long as the key says. */

static int
ngx_http_sluice_jwt_password(char *buf, int size, int is_new, void *data)
{
    return -1;
}


static ngx_uint_t
ngx_http_sluice_jwt_is_of(EVP_PKEY *key, int family)
{
    int  id;

    id = EVP_PKEY_base_id(key);

    switch (family) {

    case SLUICE_JWT_RS:
        return id == EVP_PKEY_RSA;

    case SLUICE_JWT_PS:
        return id == EVP_PKEY_RSA || id == EVP_PKEY_RSA_PSS;

    case SLUICE_JWT_ES:
        return id == EVP_PKEY_EC;

    default:
        return id == EVP_PKEY_ED25519 || id == EVP_PKEY_ED448;
    }
}


static int
ngx_http_sluice_jwt_check(EVP_PKEY *key, const sluice_jwt_token_t *token)
{
    int          rc;
    size_t       length;
    u_char      *der, *signature;
    EVP_MD_CTX  *context;

    der = NULL;
    signature = (u_char *) token->signature.data;
    length = token->signature.length;

    if (token->algorithm->family == SLUICE_JWT_ES) {

        if (length != token->algorithm->size) {
            return SLUICE_FACT_NONE;
        }

        der = ngx_http_sluice_jwt_der(token, &length);
        if (der == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        signature = der;
    }

    context = EVP_MD_CTX_new();

    rc = context ? ngx_http_sluice_jwt_check_by(context, key, token, signature,
                                                length)
                 : SLUICE_FACT_MEMORY;

    EVP_MD_CTX_free(context);
    OPENSSL_free(der);

    return rc;
}


static int
ngx_http_sluice_jwt_check_by(EVP_MD_CTX *context, EVP_PKEY *key,
    const sluice_jwt_token_t *token, const u_char *signature, size_t length)
{
    EVP_PKEY_CTX  *options;
    const EVP_MD  *md;

    md = token->algorithm->digest
         ? EVP_get_digestbyname(token->algorithm->digest) : NULL;

    if (EVP_DigestVerifyInit(context, &options, md, NULL, key) != 1) {
        return SLUICE_FACT_NONE;
    }

    if (token->algorithm->family == SLUICE_JWT_PS
        && (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1
            || EVP_PKEY_CTX_set_rsa_pss_saltlen(options,
                                                RSA_PSS_SALTLEN_DIGEST)
               != 1))
    {
        return SLUICE_FACT_NONE;
    }

    return EVP_DigestVerify(context, signature, length,
                            (const u_char *) token->data.data,
                            token->data.length)
           == 1
           ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


/* Two numbers of one size, as OpenSSL wants them (RFC 7518, section 3.4). */

static u_char *
ngx_http_sluice_jwt_der(const sluice_jwt_token_t *token, size_t *length)
{
    int         n, size;
    u_char     *der;
    BIGNUM     *r, *s;
    ECDSA_SIG  *pair;

    size = (int) token->algorithm->size / 2;
    der = NULL;

    pair = ECDSA_SIG_new();
    r = BN_bin2bn((const u_char *) token->signature.data, size, NULL);
    s = BN_bin2bn((const u_char *) token->signature.data + size, size, NULL);

    if (pair == NULL || r == NULL || s == NULL
        || ECDSA_SIG_set0(pair, r, s) != 1)
    {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(pair);

        return NULL;
    }

    n = i2d_ECDSA_SIG(pair, &der);
    *length = n > 0 ? (size_t) n : 0;

    ECDSA_SIG_free(pair);

    return der;
}
