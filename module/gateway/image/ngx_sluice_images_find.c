
/*
 * Look-ups in what this worker has mapped, for Lua: FFI compiles no call that
 * takes or returns a struct by value.
 *
 * All return SLUICE_CORE_OK, _NONE, or what the last refresh has returned; in
 * found is a record, good until the event loop is returned to.
 */


#include "ngx_sluice_images.h"
#include "ngx_sluice_digest.h"


static int sluice_images_unless_expired(
    const sluice_core_found_t *credential);


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


/* As sluice_core_slots(); 0 also where nothing is mapped. */

uint32_t
sluice_images_slots(int kind, uint32_t *slots, uint32_t max)
{
    const sluice_core_view_t  *view;

    if (ngx_sluice_images_seen(&view) != SLUICE_CORE_OK) {
        return 0;
    }

    return sluice_core_slots(view, kind, slots, max);
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
    return sluice_images_entity(SLUICE_CORE_CREDENTIAL, kind, kind_length, key,
                                length, found);
}


/*
 * A credential or an entity of a plugin's (SLUICE_CORE_ENTITY) by what one of
 * its look-ups is named, and a key; the rest as above.
 */

int
sluice_images_entity(int kind, const u_char *name, size_t name_length,
    const u_char *key, size_t length, sluice_core_found_t *found)
{
    int                      rc;
    u_char                   digest[SLUICE_CORE_DIGEST];
    ngx_sluice_digest_key_t  kept;

    rc = sluice_images_refresh();
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    if (ngx_sluice_digest_find(&kept, name, name_length, key, length)) {
        *found = kept.found;
        return sluice_images_unless_expired(found);
    }

    rc = ngx_sluice_digest(digest, sluice_images_view(), name, name_length,
                           key, length);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    rc = sluice_images_by_key(kind, digest, SLUICE_CORE_DIGEST, found);

    if (rc == SLUICE_CORE_OK) {
        kept.found = *found;
        kept.owner = sluice_core_by_slot(sluice_images_view(),
                                         SLUICE_CORE_CONSUMER,
                                         sluice_core_number(found,
                                             SLUICE_CORE_CREDENTIAL_CONSUMER))
                     .record;
        ngx_sluice_digest_keep(&kept);
        rc = sluice_images_unless_expired(found);
    }

    return rc;
}


/* By the number of its kind (sluice_core_of_kind()) and its 16 bytes of id. */

int
sluice_images_of_kind(int kind, uint32_t of, const u_char *id,
    sluice_core_found_t *found)
{
    int  rc;

    rc = sluice_images_refresh();
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    *found = sluice_core_of_kind(sluice_images_view(), kind, of, id);

    return found->record ? sluice_images_unless_expired(found)
                         : SLUICE_CORE_NONE;
}


/* one stays in the image until the control worker finds the time */

static int
sluice_images_unless_expired(const sluice_core_found_t *credential)
{
    uint32_t  expires;

    expires = sluice_core_number(credential, SLUICE_CORE_CREDENTIAL_EXPIRES);

    return expires && expires <= (uint64_t) ngx_time() ? SLUICE_CORE_NONE
                                                       : SLUICE_CORE_OK;
}
