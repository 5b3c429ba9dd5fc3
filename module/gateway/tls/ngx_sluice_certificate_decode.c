
/*
 * A certificate and its key from DER, by the short way.
 *
 * OpenSSL 3.0 looks for a decoder among all that it has, for each public key
 * of a certificate (1.1 million instructions, callgrind) and for each private
 * key (4.2 million).  What is decoded here needs none: keys on the three
 * curves that browsers take, and RSA.
 *
 * - The private key is read into the structures that OpenSSL had before 3.0.
 *   The parameters of a curve are computed once.
 * - The certificate is read in a library context without providers, which has
 *   no decoder to look for, so that its public key stays unread.  Then it gets
 *   the private key as its own, which has the public one.
 *
 * That this is the key that stood there, and that the certificate is written
 * as it was read, is compared byte for byte.  Whatever differs is left to the
 * long way.
 */


#include "ngx_sluice_certificates.h"

#include <openssl/ec.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>


#define NGX_SLUICE_CERTIFICATE_CURVES  3


static EVP_PKEY *ngx_sluice_certificate_decode_ec(const X509_ALGOR *algorithm,
    const u_char *data, int length);
static const EC_GROUP *ngx_sluice_certificate_decode_group(
    const X509_ALGOR *algorithm);
static EVP_PKEY *ngx_sluice_certificate_decode_rsa(const u_char *data,
    int length);
static OSSL_LIB_CTX *ngx_sluice_certificate_decode_context(void);
static ngx_int_t ngx_sluice_certificate_decode_is_key(X509 *x509,
    EVP_PKEY *key);
static ngx_int_t ngx_sluice_certificate_decode_is_written(X509 *x509,
    const u_char *data, size_t length);


EVP_PKEY *
ngx_sluice_certificate_decode_key(const u_char *data, size_t length)
{
    int                   n;
    EVP_PKEY             *key;
    ASN1_OBJECT          *type;
    const u_char         *inner;
    const X509_ALGOR     *algorithm;
    PKCS8_PRIV_KEY_INFO  *info;

    key = NULL;
    info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &data, (long) length);

    if (info && PKCS8_pkey_get0((const ASN1_OBJECT **) &type, &inner, &n,
                                &algorithm, info))
    {
        switch (OBJ_obj2nid(type)) {

        case NID_X9_62_id_ecPublicKey:
            key = ngx_sluice_certificate_decode_ec(algorithm, inner, n);
            break;

        case NID_rsaEncryption:
            key = ngx_sluice_certificate_decode_rsa(inner, n);
            break;
        }
    }

    PKCS8_PRIV_KEY_INFO_free(info);

    return key;
}


static EVP_PKEY *
ngx_sluice_certificate_decode_ec(const X509_ALGOR *algorithm,
    const u_char *data, int length)
{
    EC_KEY          *ec;
    EVP_PKEY        *key;
    const EC_GROUP  *group;

    group = ngx_sluice_certificate_decode_group(algorithm);
    if (group == NULL) {
        return NULL;
    }

    ec = EC_KEY_new();
    key = EVP_PKEY_new();

    if (ec && key && EC_KEY_set_group(ec, group)
        && d2i_ECPrivateKey(&ec, &data, length)
        && EVP_PKEY_assign_EC_KEY(key, ec))
    {
        return key;
    }

    EC_KEY_free(ec);
    EVP_PKEY_free(key);

    return NULL;
}


static const EC_GROUP *
ngx_sluice_certificate_decode_group(const X509_ALGOR *algorithm)
{
    int                 type;
    ngx_uint_t          i;
    const void         *value;
    const ASN1_OBJECT  *oid;

    static EC_GROUP    *groups[NGX_SLUICE_CERTIFICATE_CURVES];
    static const int    names[NGX_SLUICE_CERTIFICATE_CURVES] = {
        NID_X9_62_prime256v1, NID_secp384r1, NID_secp521r1
    };

    X509_ALGOR_get0(&oid, &type, &value, algorithm);

    if (type != V_ASN1_OBJECT) {
        return NULL;
    }

    for (i = 0; i < NGX_SLUICE_CERTIFICATE_CURVES; i++) {

        if (OBJ_obj2nid(value) != names[i]) {
            continue;
        }

        if (groups[i] == NULL) {
            groups[i] = EC_GROUP_new_by_curve_name(names[i]);
        }

        return groups[i];
    }

    return NULL;
}


static EVP_PKEY *
ngx_sluice_certificate_decode_rsa(const u_char *data, int length)
{
    RSA       *rsa;
    EVP_PKEY  *key;

    rsa = d2i_RSAPrivateKey(NULL, &data, length);
    key = EVP_PKEY_new();

    if (rsa && key && EVP_PKEY_assign_RSA(key, rsa)) {
        return key;
    }

    RSA_free(rsa);
    EVP_PKEY_free(key);

    return NULL;
}


X509 *
ngx_sluice_certificate_decode(const u_char *data, size_t length, EVP_PKEY *key)
{
    X509          *x509;
    const u_char  *p;

    p = data;
    x509 = X509_new_ex(ngx_sluice_certificate_decode_context(), NULL);

    if (x509 && d2i_X509(&x509, &p, (long) length)
        && ngx_sluice_certificate_decode_is_key(x509, key) == NGX_OK
        && ngx_sluice_certificate_decode_is_written(x509, data, length)
           == NGX_OK)
    {
        /*
         * What OpenSSL keeps of extensions it wants now: it finds no SHA-1 in
         * this context, which is an error in its queue, and no harm.
         */

        (void) X509_check_purpose(x509, -1, 0);

        return x509;
    }

    X509_free(x509);

    return NULL;
}


/* NULL, which is the usual one, where there is no memory. */

static OSSL_LIB_CTX *
ngx_sluice_certificate_decode_context(void)
{
    static OSSL_LIB_CTX  *context;

    if (context == NULL) {
        context = OSSL_LIB_CTX_new();

        /* else it would load the default ones */

        if (context && OSSL_PROVIDER_load(context, "null") == NULL) {
            OSSL_LIB_CTX_free(context);
            context = NULL;
        }
    }

    return context;
}


static ngx_int_t
ngx_sluice_certificate_decode_is_key(X509 *x509, EVP_PKEY *key)
{
    int        before, after;
    u_char    *old, *new;
    ngx_int_t  rc;

    old = NULL;
    new = NULL;
    after = -1;

    before = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &old);

    if (before > 0 && X509_set_pubkey(x509, key)) {
        after = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &new);
    }

    rc = before > 0 && before == after && ngx_memcmp(old, new, before) == 0
         ? NGX_OK : NGX_DECLINED;

    OPENSSL_free(old);
    OPENSSL_free(new);

    return rc;
}


static ngx_int_t
ngx_sluice_certificate_decode_is_written(X509 *x509, const u_char *data,
    size_t length)
{
    int        n;
    u_char    *written;
    ngx_int_t  rc;

    written = NULL;
    n = i2d_X509(x509, &written);

    rc = n > 0 && (size_t) n == length
         && ngx_memcmp(written, data, length) == 0 ? NGX_OK : NGX_DECLINED;

    OPENSSL_free(written);

    return rc;
}
