
#include "json.h"
#include "bytes.h"


#define SLUICE_JSON_ONES  (~(uint64_t) 0 / 255)     /* of each byte, 1 */

/*
 * Of bytes below 128, the highest bit where one is below n, or is c:
 * "Determine if a word has a byte less than n", S. E. Anderson, "Bit Twiddling
 * Hacks".  Bits may be set above those of the lowest such byte, never below.
 */

#define SLUICE_JSON_HIGH          (SLUICE_JSON_ONES * 128)
#define sluice_json_less(word, n) ((word) - SLUICE_JSON_ONES * (n))
#define sluice_json_has(word, c)                                              \
    sluice_json_less((word) ^ SLUICE_JSON_ONES * (c), 1)


static char *sluice_json_escape_byte(char *out, unsigned char c);
static inline char *sluice_json_write(char *out, const char *text,
    size_t length, int is_small);
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
    out = sluice_json_write(out, text, length, 0);
    *out++ = '"';

    return out;
}


char *
sluice_json_name(char *out, const char *text, size_t length)
{
    *out++ = '"';
    out = sluice_json_write(out, text, length, 1);
    *out++ = '"';

    return out;
}


char *
sluice_json_escape(char *out, const char *text, size_t length)
{
    return sluice_json_write(out, text, length, 0);
}


/*
 * Sixteen bytes a step: those before the first special one, then that one.
 * is_small: capitals are written as small letters.
 */

static inline char *
sluice_json_write(char *out, const char *text, size_t length, int is_small)
{
    size_t          n, first;
    sluice_bytes_t  bytes;

    while (length) {
        n = length < SLUICE_BYTES ? length : SLUICE_BYTES;

        bytes = sluice_bytes_load(text, n);
        first = sluice_bytes_first((bytes < 0x20) | (bytes == '"')
                                   | (bytes == '/') | (bytes == '\\')
                                   | (bytes == 0x7f));

        if (is_small) {
            bytes |= (sluice_bytes_t) ((bytes >= 'A') & (bytes <= 'Z')) & 0x20;
        }

        memcpy(out, &bytes, SLUICE_BYTES);

        if (first >= n) {
            out += n;
            text += n;
            length -= n;
            continue;
        }

        out = sluice_json_escape_byte(out + first,
                                      (unsigned char) text[first]);
        text += first + 1;
        length -= first + 1;
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
    return ((sluice_json_less(word, 0x20) | sluice_json_has(word, '"')
             | sluice_json_has(word, '\\') | sluice_json_has(word, 0x7f)
             | word)
            & SLUICE_JSON_HIGH)
           == 0;
}


int
sluice_json_is_utf8(const char *text, size_t length)
{
    size_t  i, n;

    for (i = 0; i < length; i += n) {
        n = sluice_json_character((const unsigned char *) text + i,
                                  length - i);

        if (n == 0) {
            return 0;
        }
    }

    return 1;
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
