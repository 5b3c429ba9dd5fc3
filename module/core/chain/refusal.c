
/*
 * Refusals (refusal.h).  The words are Kong's where Kong has some.
 */


#include "refusal.h"

#include <string.h>


static int refusal_say(sluice_refusal_t *refusal, uint32_t status,
    const char *message);
static void refusal_set(sluice_core_text_t *text, const char *words);


/* by gateway/image/flags.lua's numbers */

static const uint32_t  refusal_redirects[] = { 426, 301, 302, 307, 308 };


/* In the order in which they are looked for; of 494 nginx makes a 400. */

static const struct {
    uint32_t     fault;
    uint32_t     status;
    const char  *note;
} refusal_faults[] = {
    { SLUICE_FAULT_COLON, 400, "client sent header line without colon" },
    { SLUICE_FAULT_AUTHORITY, 400, "client sent invalid authority" },
    { SLUICE_FAULT_LINES, 494, "client sent too many header lines" },
    { SLUICE_FAULT_OPTIONS, 400, "client sent too many names in Connection" },
    { SLUICE_FAULT_TRAVERSAL, 400, "client sent an encoded path traversal" }
};


int
sluice_refusal_of_head(uint32_t faults, sluice_refusal_t *refusal)
{
    size_t  i;

    for (i = 0; i < sizeof(refusal_faults) / sizeof(refusal_faults[0]); i++) {

        if (faults & refusal_faults[i].fault) {
            (void) refusal_say(refusal, refusal_faults[i].status, NULL);
            refusal->note = refusal_faults[i].note;

            return 1;
        }
    }

    return 0;
}


int
sluice_refusal_of_size(int64_t length, int64_t limit,
    sluice_refusal_t *refusal)
{
    if (length == -1 || limit == 0 || length <= limit) {
        return 0;
    }

    return refusal_say(refusal, 413, NULL);
}


/* What keeps a request from being routed; no other route is a safe guess. */

int
sluice_refusal_of_code(int rc, sluice_refusal_t *refusal)
{
    switch (rc) {

    case SLUICE_CORE_OK:
    case SLUICE_CORE_NONE:
        return 0;

    case SLUICE_CORE_LIMIT:
    case SLUICE_CORE_AGAIN:
    case SLUICE_CORE_PATTERN:
    case SLUICE_CORE_MEMORY:
        return refusal_say(refusal, 500, NULL);

    case SLUICE_CORE_LARGE:
    case SLUICE_CORE_TRAVERSAL:
        return refusal_say(refusal, 400, NULL);

    default:

        /* nothing is published, or it cannot be mapped: what was there before
           is not served */

        return refusal_say(refusal, 503, "the configuration cannot be read");
    }
}


int
sluice_refusal_of_route(const sluice_refusal_route_t *facts,
    sluice_refusal_t *refusal)
{
    uint32_t  code;

    if (facts->route == SLUICE_CORE_NOBODY) {
        return refusal_say(refusal, 404, "no Route matched with those values");
    }

    if (!sluice_refusal_needs_scheme(facts->flags) || facts->is_https) {
        return 0;
    }

    code = facts->flags / SLUICE_ROUTE_REDIRECT & 7;

    if (code == 0
        || code >= sizeof(refusal_redirects) / sizeof(refusal_redirects[0]))
    {
        (void) refusal_say(refusal, refusal_redirects[0],
                           "Please use HTTPS protocol");

        if (!facts->is_http2) {
            refusal_set(&refusal->upgrade, "TLS/1.2, HTTP/1.1");
        }

        return 1;
    }

    (void) refusal_say(refusal, refusal_redirects[code], NULL);

    refusal_set(&refusal->location[0], "https://");
    refusal->location[1] = facts->host;
    refusal->location[2] = facts->target;

    return 1;
}


int
sluice_refusal_of_service(const sluice_refusal_service_t *facts,
    sluice_refusal_t *refusal)
{
    if (facts->service == SLUICE_CORE_NOBODY) {
        return refusal_say(refusal, 503, "no Service found with those values");
    }

    if (facts->unusable) {
        return refusal_say(refusal, 503,
                           "a certificate of the service cannot be used");
    }

    if (facts->targets) {
        return facts->no_turn ? refusal_say(refusal, 503, NULL) : 0;
    }

    return refusal_say(refusal, 503,
                       facts->is_upstream
                       ? "failure to get a peer from the ring-balancer"
                       : "name resolution failed");
}


static int
refusal_say(sluice_refusal_t *refusal, uint32_t status, const char *message)
{
    memset(refusal, 0, sizeof(sluice_refusal_t));
    refusal->status = status;

    if (message) {
        refusal_set(&refusal->message, message);
    }

    return 1;
}


static void
refusal_set(sluice_core_text_t *text, const char *words)
{
    text->data = words;
    text->length = (uint32_t) strlen(words);
}
