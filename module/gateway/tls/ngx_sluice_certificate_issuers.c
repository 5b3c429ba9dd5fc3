
/*
 * The certificates that stand behind a certificate.  Thousands of names may
 * have those of one CA, so what was read last is kept, and shared.
 */


#include "ngx_sluice_certificates.h"

#include <openssl/pem.h>
#include <openssl/sha.h>


#define NGX_SLUICE_CERTIFICATE_ISSUERS  64       /* kept, by their text */


typedef struct {
    u_char           digest[SHA256_DIGEST_LENGTH];
    STACK_OF(X509)  *issuers;
} ngx_sluice_certificate_issuers_t;


static STACK_OF(X509) *ngx_sluice_certificate_issuers_read(BIO *bio);


static ngx_sluice_certificate_issuers_t
    ngx_sluice_certificate_issuers_kept[NGX_SLUICE_CERTIFICATE_ISSUERS];


STACK_OF(X509) *
ngx_sluice_certificate_issuers(BIO *bio)
{
    long                               length;
    char                              *text;
    u_char                             digest[SHA256_DIGEST_LENGTH];
    STACK_OF(X509)                    *issuers;
    ngx_sluice_certificate_issuers_t  *kept;

    length = BIO_get_mem_data(bio, &text);

    if (length < (long) sizeof("-----BEGIN") - 1) {
        return sk_X509_new_null();
    }

    (void) SHA256((u_char *) text, (size_t) length, digest);

    kept = &ngx_sluice_certificate_issuers_kept[
                                  digest[0] % NGX_SLUICE_CERTIFICATE_ISSUERS];

    if (kept->issuers == NULL
        || ngx_memcmp(kept->digest, digest, sizeof(digest)) != 0)
    {
        issuers = ngx_sluice_certificate_issuers_read(bio);
        if (issuers == NULL) {
            return NULL;
        }

        sk_X509_pop_free(kept->issuers, X509_free);
        kept->issuers = issuers;
        ngx_memcpy(kept->digest, digest, sizeof(digest));
    }

    return X509_chain_up_ref(kept->issuers);
}


static STACK_OF(X509) *
ngx_sluice_certificate_issuers_read(BIO *bio)
{
    X509            *x509;
    STACK_OF(X509)  *issuers;

    issuers = sk_X509_new_null();

    while (issuers && (x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {

        if (!sk_X509_push(issuers, x509)) {
            X509_free(x509);
            sk_X509_pop_free(issuers, X509_free);
            issuers = NULL;
        }
    }

    return issuers;
}
