
/*
 * Paths of requests: one normal spelling for each, and what the upstream is
 * asked instead.  The rules are those of docs/router.md.  Bytes only, and no
 * allocation: this knows nothing of nginx.
 *
 *
 * SYNOPSIS
 *
 *     sluice_path_split(&target, &request.raw, &request.query);
 *     sluice_path_normalize(&request.raw, buffer, size, &request.path);
 *
 *         a match by request.path, and plugins, say the rest of request
 *
 *     rc = sluice_path_upstream(&request, buffer, size, &uri);
 *
 * Of "/a/./b%7e?c", for the prefix "/a" and the service's path "/s", that is:
 * path "/a/b~", uri "/s/b~?c".
 *
 *
 * WHAT A VERB GIVES
 *
 * is a text.  Where there is nothing to do, which is usual, it is the input,
 * at its own address, and nothing is written.  Else it is written into the
 * buffer, which must not overlap the input.  A buffer smaller than the verb's
 * bound is left alone and answered SLUICE_CORE_FULL: a caller that has to
 * allocate asks with a size of 0 first.
 *
 *
 * LIMITS
 *
 * Any bytes are taken, NUL too, up to 2^28 in a text.  Time is linear in the
 * lengths, whatever the bytes.
 */

#ifndef SLUICE_PATH_H_INCLUDED
#define SLUICE_PATH_H_INCLUDED


#include "core.h"


/* FFI */

/* Flags of a request. */

#define SLUICE_PATH_STRIP      0x01    /* the route's strip_path */
#define SLUICE_PATH_V1         0x02    /* its path_handling is "v1", or "v0" */
#define SLUICE_PATH_TRAVERSAL  0x04    /* reject_encoded_climbs is off */
#define SLUICE_PATH_ARGS       0x08    /* plugins have run: args count */


typedef struct {
    sluice_core_text_t   raw;       /* the path as it came */
    sluice_core_text_t   query;     /* what follows it, from "?" on */
    sluice_core_text_t   path;      /* what normalize has made of raw */
    sluice_core_text_t   base;      /* the service's path; NULL and 0: "/" */
    sluice_core_text_t   args;      /* the query as plugins have left it */
    int32_t              prefix;    /* bytes of path that matched; -1: none */
    uint32_t             flags;
} sluice_path_request_t;


/* Path and query of a target; scheme and authority are not in it. */
void sluice_path_split(const sluice_core_text_t *target,
    sluice_core_text_t *raw, sluice_core_text_t *query);

/*
 * The normal spelling, which begins with a slash.  RFC 3986, 6.2.2: triplets
 * are decoded, save those of reserved characters (2.2) and "%", whose digits
 * become upper case; dot segments are removed (5.2.4), slashes merged.  A "%"
 * that begins no triplet becomes "%25".  The result may hold any byte: what is
 * sent has to come from escape, upstream or stripped.  SLUICE_CORE_OK, _FULL.
 */
int sluice_path_normalize(const sluice_core_text_t *raw, char *buffer,
    size_t size, sluice_core_text_t *path);
size_t sluice_path_normalize_bound(const sluice_core_text_t *raw);

/* Encodes what may not stand in a request line.  SLUICE_CORE_OK, _FULL. */
int sluice_path_escape(const sluice_core_text_t *path, char *buffer,
    size_t size, sluice_core_text_t *escaped);
size_t sluice_path_escape_bound(const sluice_core_text_t *path);

/*
 * Writes a query that a plugin has made, without "?"; encodes control
 * characters and spaces, which would end the request line.  Returns its end.
 */
char *sluice_path_put_args(const sluice_core_text_t *args, char *out);
size_t sluice_path_put_args_bound(const sluice_core_text_t *args);

/*
 * Path and query to ask the upstream for; at raw's address: the target as it
 * came.  SLUICE_CORE_OK, _FULL; _TRAVERSAL: the upstream may see a way out of
 * the service's path, answer 400.
 */
int sluice_path_upstream(const sluice_path_request_t *request, char *buffer,
    size_t size, sluice_core_text_t *uri);
size_t sluice_path_upstream_bound(const sluice_path_request_t *request);

/*
 * What upstream has left out at the path's start, for X-Forwarded-Prefix; of
 * length 0: no more than a slash.  Its bound is that of escape for the prefix.
 * SLUICE_CORE_OK, _FULL.
 */
int sluice_path_stripped(const sluice_path_request_t *request, char *buffer,
    size_t size, sluice_core_text_t *prefix);

/* FFI end */


#endif /* SLUICE_PATH_H_INCLUDED */
