
/*
 * Authorities (authority.h).
 */


#include "authority.h"


#define SLUICE_AUTHORITY_PORT  5             /* digits of the longest */


/* What stands in a name or an IPv4 address, and in an IPv6 address. */

#define SLUICE_AUTHORITY_NAME     1
#define SLUICE_AUTHORITY_LITERAL  2


/* letters, digits, "-._~!$&'()*+,;=" in both, "%" in a name, ":" in [] */

static const uint8_t  sluice_authority_bytes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 3, 0, 0, 3, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 3, 0, 3, 0, 0,
    0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 3,
    0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 3, 0
};


static int sluice_authority_is_port(const char *p, const char *end);


int
sluice_authority_port(const sluice_core_text_t *authority,
    sluice_core_text_t *port)
{
    int          is_literal, allowed;
    const char  *p, *end;

    p = authority->data;
    end = p + authority->length;
    is_literal = (p < end && *p == '[');
    p += is_literal;

    allowed = is_literal ? SLUICE_AUTHORITY_LITERAL : SLUICE_AUTHORITY_NAME;

    while (p < end && (sluice_authority_bytes[(uint8_t) *p] & allowed)) {
        p++;
    }

    if (is_literal && (p == end || *p++ != ']')) {
        return 0;
    }

    port->data = p;
    port->length = 0;

    if (p == end) {
        return 1;
    }

    if (*p++ != ':') {
        return 0;
    }

    while (end - p > 1 && *p == '0') {
        p++;
    }

    port->data = p;
    port->length = (uint32_t) (end - p);

    return port->length == 0 || sluice_authority_is_port(p, end);
}


static int
sluice_authority_is_port(const char *p, const char *end)
{
    uint32_t  number;

    if (end - p > SLUICE_AUTHORITY_PORT) {
        return 0;
    }

    for (number = 0; p < end; p++) {

        if (*p < '0' || *p > '9') {
            return 0;
        }

        number = 10 * number + (uint32_t) (*p - '0');
    }

    return number <= 65535;
}
