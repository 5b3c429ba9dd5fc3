
/*
 * A number in decimal digits.  The printf family reads a format first, which
 * costs four times as much.
 */


#ifndef SLUICE_CORE_DECIMAL_H_INCLUDED
#define SLUICE_CORE_DECIMAL_H_INCLUDED


#include <stdint.h>
#include <string.h>


#define SLUICE_CORE_DECIMAL  20             /* bytes of the longest */


/* Writes it, without a NUL; returns its end.  Two digits cost one division. */

static inline char *
sluice_core_decimal(char *p, uint64_t number)
{
    char    digits[SLUICE_CORE_DECIMAL], *first;
    size_t  length;

    static const char  pairs[] =
        "00010203040506070809101112131415161718192021222324"
        "25262728293031323334353637383940414243444546474849"
        "50515253545556575859606162636465666768697071727374"
        "75767778798081828384858687888990919293949596979899";

    first = digits + SLUICE_CORE_DECIMAL;

    while (number >= 100) {
        first -= 2;
        memcpy(first, &pairs[2 * (number % 100)], 2);
        number /= 100;
    }

    if (number >= 10) {
        first -= 2;
        memcpy(first, &pairs[2 * number], 2);

    } else {
        *--first = (char) ('0' + number);
    }

    length = (size_t) (digits + SLUICE_CORE_DECIMAL - first);
    memcpy(p, first, length);

    return p + length;
}


#endif /* SLUICE_CORE_DECIMAL_H_INCLUDED */
