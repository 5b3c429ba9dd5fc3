
#include "json.h"

#include <stdint.h>
#include <string.h>


#define SLUICE_JSON_ONES  (~(uint64_t) 0 / 255)     /* of each byte, 1 */

/*
 * Whether one of eight bytes is below n (up to 128), or is c: "Determine if a
 * word has a byte less than n", S. E. Anderson, "Bit Twiddling Hacks".
 */

#define sluice_json_less(word, n)                                             \
    (((word) - SLUICE_JSON_ONES * (n)) & ~(word) & SLUICE_JSON_ONES * 128)

#define sluice_json_has(word, c)                                              \
    sluice_json_less((word) ^ SLUICE_JSON_ONES * (c), 1)


static int sluice_json_is_plain(uint64_t word);


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
    uint64_t       word;
    unsigned char  c;

    for (i = 0; i < length; i++) {

        while (length - i >= sizeof(word)) {
            memcpy(&word, text + i, sizeof(word));

            if (!sluice_json_is_plain(word)) {
                break;
            }

            memcpy(out, &word, sizeof(word));
            out += sizeof(word);
            i += sizeof(word);
        }

        if (i == length) {
            break;
        }

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


/* whether all eight bytes stay as they are */

static int
sluice_json_is_plain(uint64_t word)
{
    return (sluice_json_less(word, 0x20) | sluice_json_has(word, '"')
            | sluice_json_has(word, '/') | sluice_json_has(word, '\\')
            | sluice_json_has(word, 0x7f))
           == 0;
}
