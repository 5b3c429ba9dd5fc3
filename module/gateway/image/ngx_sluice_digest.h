
/*
 * What images have of a key: SHA-256 of the store's uuid, the kind of its
 * credentials, a zero and the key.  So it depends on the store, which makes a
 * copied image of no use elsewhere.
 *
 * To compute one costs more than all else that authentication does.  So keys
 * that were found are kept with their credentials' records, by a hash that
 * clients cannot aim at, and compared as a whole.  A record says what is live
 * until something is published, and so long keys are kept: then all of them
 * are overwritten, in an idle worker within a second.
 */


#ifndef NGX_SLUICE_DIGEST_H_INCLUDED
#define NGX_SLUICE_DIGEST_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "core.h"


/* Bytes of a kind, a zero and a key; longer ones are not kept. */
#define NGX_SLUICE_DIGEST_TEXT  88


/* A key, as it is kept: two lines of a cache. */

typedef struct {
    u_char               text[NGX_SLUICE_DIGEST_TEXT];
    uint32_t             length;         /* of text; 0: it is too long */
    uint32_t             hash;
    sluice_core_found_t  found;          /* its credential */
    const void          *owner;          /* that one's consumer: only a hint of
                                            what is read next */
} ngx_sluice_digest_key_t;


/*
 * Looks for a key among those that are kept.  1: found says whose it is; 0:
 * it is not kept, and may be by ngx_sluice_digest_keep().
 */
ngx_uint_t ngx_sluice_digest_find(ngx_sluice_digest_key_t *key,
    const u_char *kind, size_t kind_length, const u_char *text, size_t length);

/* The digest of a key.  SLUICE_CORE_OK, or _MEMORY. */
int ngx_sluice_digest(u_char *digest, const sluice_core_view_t *view,
    const u_char *kind, size_t kind_length, const u_char *key, size_t length);

/*
 * Keeps one whose credential was found since ngx_sluice_digest_find(): who
 * sends wrong keys fills nothing.
 */
void ngx_sluice_digest_keep(const ngx_sluice_digest_key_t *key);

/* Overwrites all keys. */
void ngx_sluice_digest_forget(void);

void ngx_sluice_digest_exit_process(void);


#endif /* NGX_SLUICE_DIGEST_H_INCLUDED */
