
/*
 * What images have of a key: SHA-256 of the store's uuid, the kind of its
 * credentials, a zero and the key.  So it depends on the store, which makes a
 * copied image of no use elsewhere.
 *
 * To compute one costs more than all else that authentication does.  So keys
 * that were found are kept with their digests, by a hash that clients cannot
 * aim at, and compared as a whole.  A kept digest says nothing of what is
 * live: each request looks for it in what is published now.  Keys are kept
 * only until something is published: then all are overwritten, in an idle
 * worker within a second.
 */


#ifndef NGX_SLUICE_DIGEST_H_INCLUDED
#define NGX_SLUICE_DIGEST_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "core.h"


/* Bytes of a kind, a zero and a key; longer ones are not kept. */
#define NGX_SLUICE_DIGEST_TEXT  84


typedef struct {
    u_char      digest[SLUICE_CORE_DIGEST];
    u_char      text[NGX_SLUICE_DIGEST_TEXT];
    uint32_t    length;         /* of text; 0: it is too long */
    uint64_t    hash;
    ngx_uint_t  is_kept;
} ngx_sluice_digest_t;


/* The digest of a key.  SLUICE_CORE_OK, or _MEMORY. */
int ngx_sluice_digest(ngx_sluice_digest_t *d, const sluice_core_view_t *view,
    const u_char *kind, size_t kind_length, const u_char *key, size_t length);

/* Keeps one whose key was found: who sends wrong keys fills nothing. */
void ngx_sluice_digest_keep(const ngx_sluice_digest_t *d);

/* Overwrites all keys. */
void ngx_sluice_digest_forget(void);

void ngx_sluice_digest_exit_process(void);


#endif /* NGX_SLUICE_DIGEST_H_INCLUDED */
