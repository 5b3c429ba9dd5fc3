
/*
 * Authorities (authority.h).
 */


#include "authority.h"


#define SLUICE_AUTHORITY_PORT  5             /* digits of the longest */


/* in a host, besides what its kind has: letters, digits, "-._~!$&'()*+,;=" */

static const uint32_t  sluice_authority_host[8] = {
    0x00000000,
    0x2bff7fd2, /*    ?>=< ;:98 7654 3210 /.-, +*)( '&%$ #"!  */
    0x87fffffe, /*    _^]\  [ZYX WVUT SRQP ONML KJIH GFED CBA@ */
    0x47fffffe, /*     ~}| {zyx wvut srqp onml kjih gfed cba` */
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


static int sluice_authority_is_port(const char *p, const char *end);


int
sluice_authority_port(const sluice_core_text_t *authority,
    sluice_core_text_t *port)
{
    int          is_literal;
    const char  *p, *end;

    p = authority->data;
    end = p + authority->length;
    is_literal = (p < end && *p == '[');
    p += is_literal;

    for ( /* void */ ; p < end; p++) {

        if ((sluice_authority_host[(unsigned char) *p >> 5]
             & ((uint32_t) 1 << (*p & 0x1f)))
            || *p == (is_literal ? ':' : '%'))
        {
            continue;
        }

        if (*p == (is_literal ? ']' : ':')) {
            p += is_literal;
            break;
        }

        return 0;
    }

    if (is_literal && p[-1] != ']') {
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
