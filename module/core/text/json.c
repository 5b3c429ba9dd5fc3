
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


static char *sluice_json_escape_byte(char *out, unsigned char c);
static int sluice_json_is_plain(uint64_t word);
static int sluice_json_is_plain_utf8(uint64_t word);
static size_t sluice_json_character(const unsigned char *p, size_t length);


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
    size_t    i;
    uint64_t  word;

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

        out = sluice_json_escape_byte(out, (unsigned char) text[i]);
    }

    return out;
}


static char *
sluice_json_escape_byte(char *out, unsigned char c)
{
    static const char  digits[] = "0123456789abcdef";

    char  escape;

    escape = sluice_json_escapes[c];

    if (escape == 0) {
        *out++ = (char) c;
        return out;
    }

    *out++ = '\\';
    *out++ = escape;

    if (escape == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = digits[c >> 4];
        *out++ = digits[c & 0xf];
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


char *
sluice_json_utf8(char *out, const char *text, size_t length)
{
    static const char  replacement[] = "\xef\xbf\xbd";

    size_t    i, n;
    uint64_t  word;

    *out++ = '"';

    for (i = 0; i < length; i += n) {
        n = sizeof(word);

        if (length - i >= n) {
            memcpy(&word, text + i, n);

            if (sluice_json_is_plain_utf8(word)) {
                memcpy(out, &word, n);
                out += n;
                continue;
            }
        }

        n = sluice_json_character((const unsigned char *) text + i,
                                  length - i);

        if (n == 0) {
            memcpy(out, replacement, sizeof(replacement) - 1);
            out += sizeof(replacement) - 1;
            n = 1;

        } else if (n > 1 || text[i] == '/') {
            memcpy(out, text + i, n);
            out += n;

        } else {
            out = sluice_json_escape_byte(out, (unsigned char) text[i]);
        }
    }

    *out++ = '"';

    return out;
}


static int
sluice_json_is_plain_utf8(uint64_t word)
{
    return (sluice_json_less(word, 0x20) | sluice_json_has(word, '"')
            | sluice_json_has(word, '\\') | sluice_json_has(word, 0x7f)
            | (word & SLUICE_JSON_ONES * 128))
           == 0;
}


/*
 * The bytes of the character that begins there, 0: none does.  RFC 3629,
 * section 4: no longer forms, no surrogates, nothing above U+10FFFF.
 */

static size_t
sluice_json_character(const unsigned char *p, size_t length)
{
    size_t         i, n;
    unsigned char  least, most;

    least = 0x80;
    most = 0xbf;

    if (p[0] < 0x80) {
        return 1;

    } else if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        least = p[0] == 0xe0 ? 0xa0 : least;
        most = p[0] == 0xed ? 0x9f : most;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        least = p[0] == 0xf0 ? 0x90 : least;
        most = p[0] == 0xf4 ? 0x8f : most;

    } else {
        return 0;
    }

    if (length < n || p[1] < least || p[1] > most) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }

    return n;
}
