
/*
 * A number in decimal digits.  The printf family reads a format first, which
 * costs four times as much.
 */


#ifndef SLUICE_CORE_DECIMAL_H_INCLUDED
#define SLUICE_CORE_DECIMAL_H_INCLUDED


#include <stdint.h>
#include <string.h>


#define SLUICE_CORE_DECIMAL  20             /* bytes of the longest */


/* Writes it, without a NUL; returns its end. */

static inline char *
sluice_core_decimal(char *p, uint64_t number)
{
    char    digits[SLUICE_CORE_DECIMAL], *first;
    size_t  length;

    first = digits + SLUICE_CORE_DECIMAL;

    do {
        *--first = (char) ('0' + number % 10);
        number /= 10;
    } while (number);

    length = (size_t) (digits + SLUICE_CORE_DECIMAL - first);
    memcpy(p, first, length);

    return p + length;
}


#endif /* SLUICE_CORE_DECIMAL_H_INCLUDED */
