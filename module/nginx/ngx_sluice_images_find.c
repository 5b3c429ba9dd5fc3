
/*
 * Look-ups in what this worker has mapped, for Lua: FFI compiles no call that
 * takes or returns a struct by value.
 *
 * All return SLUICE_CORE_OK, _NONE, or what the last refresh has returned; in
 * found is a record, good until the event loop is returned to.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"

#include <openssl/evp.h>


static int ngx_sluice_images_digest(const sluice_core_view_t *view,
    const u_char *kind, size_t kind_length, const u_char *key, size_t length,
    u_char *digest);


static EVP_MD_CTX  *ngx_sluice_images_digests;


int
sluice_images_by_slot(int kind, uint32_t slot, sluice_core_found_t *found)
{
    int                        rc;
    const sluice_core_view_t  *view;

    rc = ngx_sluice_images_seen(&view);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    *found = sluice_core_by_slot(view, kind, slot);

    return found->record ? SLUICE_CORE_OK : SLUICE_CORE_NONE;
}


/* id: 16 bytes; of consumers */

int
sluice_images_by_id(int kind, const u_char *id, sluice_core_found_t *found)
{
    int                        rc;
    const sluice_core_view_t  *view;

    rc = ngx_sluice_images_seen(&view);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    *found = sluice_core_by_id(view, kind, id);

    return found->record ? SLUICE_CORE_OK : SLUICE_CORE_NONE;
}


int
sluice_images_by_key(int kind, const u_char *key, size_t length,
    sluice_core_found_t *found)
{
    int                        rc;
    const sluice_core_view_t  *view;

    rc = ngx_sluice_images_seen(&view);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    if (length > SLUICE_CORE_TEXT_MAX) {
        return SLUICE_CORE_NONE;
    }

    *found = sluice_core_by_key(view, kind, key, (uint32_t) length);

    return found->record ? SLUICE_CORE_OK : SLUICE_CORE_NONE;
}


/*
 * The credential of a kind with this key.  Refreshes first, as a key may be
 * revoked while its request waits in an earlier plugin.
 */

int
sluice_images_credential(const u_char *kind, size_t kind_length,
    const u_char *key, size_t length, sluice_core_found_t *found)
{
    int     rc;
    u_char  digest[SLUICE_CORE_DIGEST];

    rc = sluice_images_refresh();
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    rc = ngx_sluice_images_digest(sluice_images_view(), kind, kind_length, key,
                                  length, digest);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    return sluice_images_by_key(SLUICE_CORE_CREDENTIAL, digest,
                                SLUICE_CORE_DIGEST, found);
}


/*
 * SHA-256 of the store's uuid, the kind, a zero and the key: what a copied
 * image has of a key depends on its store.  The context keeps its method, so
 * that OpenSSL looks for it once.
 */

static int
ngx_sluice_images_digest(const sluice_core_view_t *view, const u_char *kind,
    size_t kind_length, const u_char *key, size_t length, u_char *digest)
{
    EVP_MD_CTX              *context;
    const EVP_MD            *method;
    sluice_core_identity_t   identity;

    context = ngx_sluice_images_digests;
    method = NULL;

    if (context == NULL) {
        context = EVP_MD_CTX_new();
        method = EVP_sha256();
        ngx_sluice_images_digests = context;
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
        ngx_sluice_images_find_exit_process();
        return SLUICE_CORE_MEMORY;
    }

    return SLUICE_CORE_OK;
}


void
ngx_sluice_images_find_exit_process(void)
{
    EVP_MD_CTX_free(ngx_sluice_images_digests);
    ngx_sluice_images_digests = NULL;
}
