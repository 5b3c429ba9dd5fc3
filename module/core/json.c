
#include "json.h"


/*
 * Of each byte what follows the backslash: 0, none, as it stays; 'u': its
 * number.
 */

static const char  sluice_json_escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u',
    ['"'] = '"',
    ['/'] = '/',
    ['\\'] = '\\',
    [0x7f] = 'u'
};


char *
sluice_json_string(char *out, const char *text, size_t length)
{
    *out++ = '"';
    out = sluice_json_escape(out, text, length);
    *out++ = '"';

    return out;
}


char *
sluice_json_escape(char *out, const char *text, size_t length)
{
    static const char  digits[] = "0123456789abcdef";

    char           escape;
    size_t         i;
    unsigned char  c;

    for (i = 0; i < length; i++) {

        c = (unsigned char) text[i];
        escape = sluice_json_escapes[c];

        if (escape == 0) {
            *out++ = (char) c;
            continue;
        }

        *out++ = '\\';
        *out++ = escape;

        if (escape == 'u') {
            *out++ = '0';
            *out++ = '0';
            *out++ = digits[c >> 4];
            *out++ = digits[c & 0xf];
        }
    }

    return out;
}
