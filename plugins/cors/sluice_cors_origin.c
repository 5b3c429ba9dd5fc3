
/*
 * Origins of the plugin cors, and what they are compared with.
 */


#include "sluice_cors.h"


/* Bytes of an origin, which has a scheme, a name of 253 and a port. */

#define SLUICE_CORS_ORIGIN  1024


static int sluice_cors_is_port(const sluice_core_text_t *text, uint32_t from,
    const char *port);
static int sluice_cors_is(const sluice_core_text_t *text,
    const sluice_core_text_t *other);


sluice_core_text_t
sluice_cors_normal(const sluice_core_text_t *origin, sluice_core_text_t *host)
{
    char                 c;
    uint32_t             i, scheme, port;
    sluice_core_text_t   normal;

    normal = *origin;
    *host = normal;

    for (scheme = 0; scheme < origin->length; scheme++) {

        if (origin->data[scheme] == ':') {
            break;
        }
    }

    i = scheme + 3;

    if (scheme == 0
        || i >= origin->length
        || memcmp(&origin->data[scheme], "://", 3) != 0)
    {
        i = 0;
    }

    host->data += i;
    host->length -= i;

    port = 0;

    for ( /* void */ ; i < origin->length; i++) {
        c = origin->data[i];

        /* a path, a query, or somebody's name: no browser sends these */

        if (c == '/' || c == '?' || c == '#' || c == '@' || c == '\\') {
            normal.data = NULL;
            return normal;
        }

        if (c == ':') {
            port = i + 1;

        } else if (c == ']') {
            port = 0;
        }
    }

    if (port
        && ((scheme == 4 && memcmp(origin->data, "http", 4) == 0
             && sluice_cors_is_port(origin, port, "80"))
            || (scheme == 5 && memcmp(origin->data, "https", 5) == 0
                && sluice_cors_is_port(origin, port, "443"))))
    {
        normal.length = port - 1;
    }

    if (port) {
        host->length -= origin->length - (port - 1);
    }

    return normal;
}


static int
sluice_cors_is_port(const sluice_core_text_t *text, uint32_t from,
    const char *port)
{
    return text->length - from == strlen(port)
           && memcmp(&text->data[from], port, strlen(port)) == 0;
}


/*
 * Patterns share the time of one match; whose limit is passed, or who cannot
 * be run, allows nobody.
 */

int
sluice_cors_find(const sluice_cors_t *conf, sluice_core_regexes_t *regexes,
    const sluice_core_text_t *origin, const sluice_core_text_t *host)
{
    int                        rc, is_first, reason;
    uint32_t                   i;
    sluice_core_text_t         text;
    const sluice_core_text_t  *subject;

    if (origin->length > SLUICE_CORS_ORIGIN) {
        return SLUICE_CORE_NONE;
    }

    is_first = 1;

    for (i = 0; i < conf->origins.count; i++) {
        text = conf->origins.texts[i];

        if (text.length == 0) {
            continue;
        }

        text.data++;
        text.length--;

        if (text.data[-1] == '=') {

            if (sluice_cors_is(&text, origin)) {
                return SLUICE_CORE_OK;
            }

            continue;
        }

        subject = text.data[-1] == '@' ? host : origin;

        rc = sluice_core_regex_try(regexes, text.data, text.length, 1,
                                   subject->data, subject->length, is_first,
                                   &reason);
        if (rc != SLUICE_CORE_NONE) {
            return rc;
        }

        is_first = 0;
    }

    return SLUICE_CORE_NONE;
}


static int
sluice_cors_is(const sluice_core_text_t *text, const sluice_core_text_t *other)
{
    return text->length == other->length
           && memcmp(text->data, other->data, text->length) == 0;
}
