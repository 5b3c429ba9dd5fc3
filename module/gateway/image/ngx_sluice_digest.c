
/*
 * Digests of keys (ngx_sluice_digest.h).
 */


#include "ngx_sluice_digest.h"
#include "siphash.h"

#include <openssl/evp.h>
#include <sys/random.h>


/* Keys of a worker, and a table that is never more than half full. */
#define NGX_SLUICE_DIGEST_KEYS   1024
#define NGX_SLUICE_DIGEST_SLOTS  2048


static void ngx_sluice_digest_text(ngx_sluice_digest_key_t *key,
    const u_char *kind, size_t kind_length, const u_char *text, size_t length);
static void ngx_sluice_digest_prefetch(const void *record);
static ngx_uint_t ngx_sluice_digest_has_secret(void);
static uint16_t *ngx_sluice_digest_slot(const ngx_sluice_digest_key_t *key);


static EVP_MD_CTX  *ngx_sluice_digest_context;

static uint64_t    ngx_sluice_digest_secret[2];
static ngx_uint_t  ngx_sluice_digest_drawn;

static _Alignas(64) ngx_sluice_digest_key_t
    ngx_sluice_digest_keys[NGX_SLUICE_DIGEST_KEYS];
static ngx_uint_t  ngx_sluice_digest_count;

/* 1 and the index of a key; 0: free */

static uint16_t  ngx_sluice_digest_slots[NGX_SLUICE_DIGEST_SLOTS];


ngx_uint_t
ngx_sluice_digest_find(ngx_sluice_digest_key_t *key, const u_char *kind,
    size_t kind_length, const u_char *text, size_t length)
{
    uint16_t                        slot;
    const ngx_sluice_digest_key_t  *kept;

    ngx_sluice_digest_text(key, kind, kind_length, text, length);

    if (key->length == 0) {
        return 0;
    }

    slot = *ngx_sluice_digest_slot(key);

    if (slot == 0) {
        return 0;
    }

    kept = &ngx_sluice_digest_keys[slot - 1];
    key->found = kept->found;

    ngx_sluice_digest_prefetch(key->found.record);
    ngx_sluice_digest_prefetch(kept->owner);

    return 1;
}


/* A record and what follows it; of many consumers it is in no cache. */

static void
ngx_sluice_digest_prefetch(const void *record)
{
    const u_char  *p = record;

    if (p) {
        __builtin_prefetch(p);
        __builtin_prefetch(p + 64);
        __builtin_prefetch(p + 128);
    }
}


void
ngx_sluice_digest_keep(const ngx_sluice_digest_key_t *key)
{
    if (key->length == 0) {
        return;
    }

    if (ngx_sluice_digest_count == NGX_SLUICE_DIGEST_KEYS) {
        ngx_sluice_digest_forget();
    }

    ngx_sluice_digest_keys[ngx_sluice_digest_count++] = *key;

    *ngx_sluice_digest_slot(key) = (uint16_t) ngx_sluice_digest_count;
}


void
ngx_sluice_digest_forget(void)
{
    if (ngx_sluice_digest_count == 0) {
        return;
    }

    ngx_explicit_memzero(ngx_sluice_digest_keys,
                         ngx_sluice_digest_count
                         * sizeof(ngx_sluice_digest_key_t));
    ngx_memzero(ngx_sluice_digest_slots, sizeof(ngx_sluice_digest_slots));

    ngx_sluice_digest_count = 0;
}


void
ngx_sluice_digest_exit_process(void)
{
    EVP_MD_CTX_free(ngx_sluice_digest_context);
    ngx_sluice_digest_context = NULL;
}


static void
ngx_sluice_digest_text(ngx_sluice_digest_key_t *key, const u_char *kind,
    size_t kind_length, const u_char *text, size_t length)
{
    u_char  *p;

    key->length = 0;

    if (kind_length >= NGX_SLUICE_DIGEST_TEXT
        || length >= NGX_SLUICE_DIGEST_TEXT - kind_length
        || !ngx_sluice_digest_has_secret())
    {
        return;
    }

    p = ngx_cpymem(key->text, kind, kind_length);
    *p++ = '\0';
    p = ngx_cpymem(p, text, length);

    key->length = (uint32_t) (p - key->text);
    key->hash = (uint32_t) sluice_core_siphash(ngx_sluice_digest_secret, 1, 3,
                                               0, key->text, key->length);
}


static ngx_uint_t
ngx_sluice_digest_has_secret(void)
{
    if (!ngx_sluice_digest_drawn) {
        ngx_sluice_digest_drawn =
            getrandom(ngx_sluice_digest_secret,
                      sizeof(ngx_sluice_digest_secret), GRND_NONBLOCK)
            == (ssize_t) sizeof(ngx_sluice_digest_secret);
    }

    return ngx_sluice_digest_drawn;
}


/* the slot that has the key, or where it belongs; ends: half are free */

static uint16_t *
ngx_sluice_digest_slot(const ngx_sluice_digest_key_t *key)
{
    uint16_t                       *slot;
    uint64_t                        i;
    const ngx_sluice_digest_key_t  *kept;

    for (i = key->hash; /* void */ ; i++) {
        slot = &ngx_sluice_digest_slots[i % NGX_SLUICE_DIGEST_SLOTS];

        if (*slot == 0) {
            return slot;
        }

        kept = &ngx_sluice_digest_keys[*slot - 1];
        __builtin_prefetch(kept->text);

        if (kept->hash == key->hash && kept->length == key->length
            && ngx_memcmp(kept->text, key->text, key->length) == 0)
        {
            return slot;
        }
    }
}


/* the context keeps its method, so that OpenSSL looks for it once */

int
ngx_sluice_digest(u_char *digest, const sluice_core_view_t *view,
    const u_char *kind, size_t kind_length, const u_char *key, size_t length)
{
    EVP_MD_CTX              *context;
    const EVP_MD            *method;
    sluice_core_identity_t   identity;

    context = ngx_sluice_digest_context;
    method = NULL;

    if (context == NULL) {
        context = EVP_MD_CTX_new();
        method = EVP_sha256();
        ngx_sluice_digest_context = context;
    }

    sluice_core_identity(&view->base, &identity);

    if (context == NULL
        || EVP_DigestInit_ex(context, method, NULL) != 1
        || EVP_DigestUpdate(context, identity.store, 16) != 1
        || EVP_DigestUpdate(context, kind, kind_length) != 1
        || EVP_DigestUpdate(context, "", 1) != 1
        || EVP_DigestUpdate(context, key, length) != 1
        || EVP_DigestFinal_ex(context, digest, NULL) != 1)
    {
        ngx_sluice_digest_exit_process();
        return SLUICE_CORE_MEMORY;
    }

    return SLUICE_CORE_OK;
}
