
/*
 * OpenSSL for what plugins decide (ngx_sluice_crypto.h).
 *
 * OpenSSL 3 looks algorithms up by name and allocates what computes them,
 * which takes several times as long as the digest of a short text.  So a
 * worker does that once an algorithm, and HMAC is made of digests here (RFC
 * 2104).  Nothing of a key or of a text stays behind.
 */


#include "ngx_sluice_crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>


#define NGX_SLUICE_CRYPTO_BLOCK  128     /* bytes of the largest: SHA-512 */

/* What of HMAC the key is padded with. */
#define NGX_SLUICE_CRYPTO_INNER  0x36
#define NGX_SLUICE_CRYPTO_OUTER  0x5c


typedef struct {
    const char  *name;
    EVP_MD_CTX  *context;                /* NULL: not yet used */
} ngx_sluice_crypto_digest_t;


static ngx_uint_t ngx_sluice_crypto_begin(ngx_sluice_crypto_digest_t *digest);
static int ngx_sluice_crypto_plain(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out);
static int ngx_sluice_crypto_hmac(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out);
static int ngx_sluice_crypto_padded(ngx_sluice_crypto_digest_t *digest,
    unsigned char *block, unsigned char change,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out);
static int ngx_sluice_crypto_end(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out);


static ngx_sluice_crypto_digest_t  ngx_sluice_crypto_digests[] = {
    { "sha1", NULL },
    { "sha224", NULL },
    { "sha256", NULL },
    { "sha384", NULL },
    { "sha512", NULL }
};


int
ngx_sluice_crypto_digest(void *data, const char *name,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out)
{
    int                          length;
    ngx_uint_t                   i;
    ngx_sluice_crypto_digest_t  *digest;

    digest = NULL;

    for (i = 0; i < sizeof(ngx_sluice_crypto_digests)
                    / sizeof(ngx_sluice_crypto_digest_t); i++)
    {
        if (ngx_strcmp(name, ngx_sluice_crypto_digests[i].name) == 0) {
            digest = &ngx_sluice_crypto_digests[i];
        }
    }

    if (digest == NULL) {
        return SLUICE_FACT_NONE;
    }

    length = key ? ngx_sluice_crypto_hmac(digest, key, texts, count, out)
                 : ngx_sluice_crypto_plain(digest, texts, count, out);

    return length ? length : SLUICE_FACT_MEMORY;
}


static ngx_uint_t
ngx_sluice_crypto_begin(ngx_sluice_crypto_digest_t *digest)
{
    EVP_MD      *md;
    EVP_MD_CTX  *context;

    if (digest->context) {
        return EVP_DigestInit_ex(digest->context, NULL, NULL) == 1;
    }

    md = EVP_MD_fetch(NULL, digest->name, NULL);
    context = EVP_MD_CTX_new();

    if (md && context && EVP_DigestInit_ex(context, md, NULL) == 1) {
        digest->context = context;

    } else {
        EVP_MD_CTX_free(context);
    }

    EVP_MD_free(md);                     /* the context keeps it */

    return digest->context != NULL;
}


/* Bytes in out; 0: OpenSSL cannot. */

static int
ngx_sluice_crypto_plain(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out)
{
    return ngx_sluice_crypto_begin(digest)
           ? ngx_sluice_crypto_end(digest, texts, count, out) : 0;
}


static int
ngx_sluice_crypto_hmac(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out)
{
    int                  length;
    unsigned char        block[NGX_SLUICE_CRYPTO_BLOCK];
    sluice_core_text_t   inner;

    ngx_memzero(block, sizeof(block));

    if (!ngx_sluice_crypto_begin(digest)) {
        return 0;
    }

    if (key->length
        > (uint32_t) EVP_MD_CTX_get_block_size(digest->context))
    {
        if (!ngx_sluice_crypto_end(digest, key, 1, block)) {
            return 0;
        }

    } else if (key->length) {
        ngx_memcpy(block, key->data, key->length);
    }

    length = ngx_sluice_crypto_padded(digest, block, NGX_SLUICE_CRYPTO_INNER,
                                      texts, count, out);

    if (length) {
        inner.data = (const char *) out;
        inner.length = (uint32_t) length;

        length = ngx_sluice_crypto_padded(digest, block,
                                          NGX_SLUICE_CRYPTO_INNER
                                          ^ NGX_SLUICE_CRYPTO_OUTER,
                                          &inner, 1, out);
    }

    OPENSSL_cleanse(block, sizeof(block));

    return length;
}


/* Changes the block, and digests it before the texts. */

static int
ngx_sluice_crypto_padded(ngx_sluice_crypto_digest_t *digest,
    unsigned char *block, unsigned char change,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out)
{
    size_t  i;

    for (i = 0; i < NGX_SLUICE_CRYPTO_BLOCK; i++) {
        block[i] ^= change;
    }

    if (!ngx_sluice_crypto_begin(digest)
        || EVP_DigestUpdate(digest->context, block,
                            (size_t) EVP_MD_CTX_get_block_size(
                                                             digest->context))
           != 1)
    {
        return 0;
    }

    return ngx_sluice_crypto_end(digest, texts, count, out);
}


static int
ngx_sluice_crypto_end(ngx_sluice_crypto_digest_t *digest,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out)
{
    uint32_t  i;
    unsigned  length;

    for (i = 0; i < count; i++) {

        if (EVP_DigestUpdate(digest->context, texts[i].data, texts[i].length)
            != 1)
        {
            return 0;
        }
    }

    return EVP_DigestFinal_ex(digest->context, out, &length) == 1
           ? (int) length : 0;
}
