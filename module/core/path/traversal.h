
/*
 * Path traversal that the gateway does not see and an upstream may: a dot
 * segment beside something that only some servers take for the end of a
 * segment, as in "/public/..%2fprivate", "/..;/", "/..\".
 *
 * The gateway removes dot segments between slashes, with dots that are encoded
 * once ("/%2e%2e/"); what it decodes no further goes to the upstream as it is.
 *
 * Bytes only: this knows nothing of nginx.
 */

#ifndef SLUICE_TRAVERSAL_H
#define SLUICE_TRAVERSAL_H


#include <stddef.h>


/* FFI */

/*
 * Whether a path, as it came and without its query, has such a segment.  One
 * pass; none beyond memchr() where nothing in it is encoded or odd.
 */

int sluice_traversal_hides(const unsigned char *path,
    const unsigned char *end);


/*
 * Whether a path that begins with base_length bytes of a base leaves it again,
 * for an upstream that takes some of those for separators, and not others.
 */

int sluice_traversal_leaves(const unsigned char *path, size_t length,
    size_t base_length);

/* FFI end */


#endif
