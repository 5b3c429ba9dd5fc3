
/*
 * Base64 (base64.h).
 */


#include "base64.h"


/* Of a byte: its value as a letter, and the alphabets that have it. */

#define BASE64_VALUE  0x3f
#define BASE64_URL    0x40
#define BASE64_PLAIN  0x80


static const unsigned char  base64_letters[256] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbe, 0x00, 0x7e, 0x00, 0xbf,
    0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6,
    0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2,
    0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0x00, 0x00, 0x00, 0x00, 0x7f,
    0x00, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4,
    0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef, 0xf0,
    0xf1, 0xf2, 0xf3, 0x00, 0x00, 0x00, 0x00, 0x00
};


#define base64_letter(c)  (base64_letters[(unsigned char) (c)])


/* No branch depends on a letter: a CPU guesses those of random texts wrong. */

long
sluice_base64_decode(const char *text, size_t length, int is_url, char *out)
{
    char      *p;
    size_t     i, padding;
    unsigned   a, b, c, d, bits, alphabets;

    for (padding = 0; length && text[length - 1] == '='; length--) {
        padding++;
    }

    if (length % 4 == 1 || (padding && (length + padding) % 4)
        || padding > 2)
    {
        return -1;
    }

    p = out;
    alphabets = BASE64_URL|BASE64_PLAIN;

    for (i = 0; i + 4 <= length; i += 4) {
        a = base64_letter(text[i]);
        b = base64_letter(text[i + 1]);
        c = base64_letter(text[i + 2]);
        d = base64_letter(text[i + 3]);

        alphabets &= a & b & c & d;
        bits = (a & BASE64_VALUE) << 18 | (b & BASE64_VALUE) << 12
               | (c & BASE64_VALUE) << 6 | (d & BASE64_VALUE);

        *p++ = (char) (bits >> 16);
        *p++ = (char) (bits >> 8);
        *p++ = (char) bits;
    }

    /* a byte or two are left in two letters or three */

    for (bits = 0; i < length; i++) {
        a = base64_letter(text[i]);
        alphabets &= a;
        bits = bits << 6 | (a & BASE64_VALUE);

        if (i % 4) {
            *p++ = (char) (bits >> (6 - 2 * (i % 4)));
        }
    }

    return alphabets & (is_url ? BASE64_URL : BASE64_PLAIN) ? p - out : -1;
}


char *
sluice_base64_encode(const unsigned char *bytes, size_t length, char *out)
{
    size_t             i, left;
    unsigned           bits;
    static const char  letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (i = 0; i < length; i += 3) {
        left = length - i;
        bits = (unsigned) bytes[i] << 16
               | (left > 1 ? (unsigned) bytes[i + 1] << 8 : 0)
               | (left > 2 ? (unsigned) bytes[i + 2] : 0);

        *out++ = letters[bits >> 18];
        *out++ = letters[bits >> 12 & 0x3f];
        *out++ = left > 1 ? letters[bits >> 6 & 0x3f] : '=';
        *out++ = left > 2 ? letters[bits & 0x3f] : '=';
    }

    return out;
}
