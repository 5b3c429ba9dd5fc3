
/*
 * Hexadecimal digits, of triplets and escapes.
 */


#ifndef SLUICE_HEX_H_INCLUDED
#define SLUICE_HEX_H_INCLUDED


/* -1: it is none */

static inline int
sluice_hex_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}


/* the byte that two of them stand for; -1: there are no two */

static inline int
sluice_hex_byte(const void *text, const void *end)
{
    int                   high, low;
    const unsigned char  *p = text;

    if ((const unsigned char *) end - p < 2) {
        return -1;
    }

    high = sluice_hex_digit(p[0]);
    low = sluice_hex_digit(p[1]);

    return (high < 0 || low < 0) ? -1 : high << 4 | low;
}


#endif /* SLUICE_HEX_H_INCLUDED */
