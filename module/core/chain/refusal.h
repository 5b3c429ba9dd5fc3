
/*
 * What the gateway itself refuses requests for, and what they are told, as
 * they go on: by their head, the match, their route, their service.
 *
 *     if (sluice_refusal_of_code(sluice_core_match(...), &refusal)) {
 *         answer refusal;
 *     }
 *
 * Each returns 0 where the request passes, and then writes nothing; else 1.
 * The texts of a refusal are constant, or those of the facts.
 */


#ifndef SLUICE_REFUSAL_H_INCLUDED
#define SLUICE_REFUSAL_H_INCLUDED


#include "core.h"
#include "flags.h"


#define SLUICE_REFUSAL_PARTS  3


typedef struct {
    uint32_t             status;
    sluice_core_text_t   message;   /* in the format that the client accepts;
                                       data NULL: the server's own page */
    sluice_core_text_t   upgrade;   /* of a header Upgrade, which Connection
                                       names; data NULL: there is none */
    sluice_core_text_t   location[SLUICE_REFUSAL_PARTS];   /* one after the
                                       other; data NULL: there is none */
    const char          *note;      /* for the error log; NULL: none */
} sluice_refusal_t;


/* What is wrong with a head: bits. */

typedef enum {
    SLUICE_FAULT_COLON = 0x01,      /* a line of a header has none */
    SLUICE_FAULT_AUTHORITY = 0x02,  /* it is none (authority.h) */
    SLUICE_FAULT_LINES = 0x04,      /* more than SLUICE_REFUSAL_LINES */
    SLUICE_FAULT_OPTIONS = 0x08,    /* Connection names more headers than can
                                       be removed */
    SLUICE_FAULT_TRAVERSAL = 0x10   /* the path hides one (traversal.h) */
} sluice_fault_e;


/* Lines of headers; the same as max_headers of later versions of nginx. */
#define SLUICE_REFUSAL_LINES  1000


/* host and target are looked at if sluice_refusal_needs_scheme(flags). */

typedef struct {
    uint32_t             route;     /* slot, or NOBODY: none has matched */
    uint32_t             flags;     /* SLUICE_ROUTE_* */
    uint32_t             is_https;  /* as the client has asked, seen by us */
    uint32_t             is_http2;  /* or later */
    sluice_core_text_t   host;      /* that the client has asked for */
    sluice_core_text_t   target;    /* path and query as they came */
} sluice_refusal_route_t;


typedef struct {
    uint32_t             service;   /* slot, or NOBODY: the route has none */
    uint32_t             unusable;  /* its TLS cannot be set */
    uint32_t             is_upstream;  /* balanced; else its host is a name */
    uint32_t             targets;   /* with addresses */
    uint32_t             no_turn;   /* none of them may be asked */
} sluice_refusal_service_t;


/* Whether a route looks at the scheme by which it was asked. */
#define sluice_refusal_needs_scheme(flags)                                    \
    (((flags) & SLUICE_ROUTE_HTTPS_ONLY) != 0)


/* The first of these faults counts; 0: there is none. */
int sluice_refusal_of_head(uint32_t faults, sluice_refusal_t *refusal);

/* A body's length, -1: not known; and the most that is taken, 0: all. */
int sluice_refusal_of_size(int64_t length, int64_t limit,
    sluice_refusal_t *refusal);

/*
 * Codes of the match, of the path that the upstream is asked, and of the
 * configuration being read; no route (NONE) is no refusal yet.
 */
int sluice_refusal_of_code(int rc, sluice_refusal_t *refusal);

/* Before the plugins. */
int sluice_refusal_of_route(const sluice_refusal_route_t *facts,
    sluice_refusal_t *refusal);

/* Behind them. */
int sluice_refusal_of_service(const sluice_refusal_service_t *facts,
    sluice_refusal_t *refusal);


#endif /* SLUICE_REFUSAL_H_INCLUDED */
