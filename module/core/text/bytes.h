
/*
 * Sixteen bytes of a text at a time, by GCC's vectors: SSE2 or NEON, and words
 * where a processor has neither.
 *
 *     mask = (bytes == '"') | (bytes < 0x20);
 *
 * has all bits of each byte set that is one of these.
 */


#ifndef SLUICE_BYTES_H_INCLUDED
#define SLUICE_BYTES_H_INCLUDED


#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>


#define SLUICE_BYTES  16


typedef uint8_t   sluice_bytes_t __attribute__((vector_size(SLUICE_BYTES)));
typedef int8_t    sluice_bytes_mask_t
                                 __attribute__((vector_size(SLUICE_BYTES)));


/* n bytes, of 1 to SLUICE_BYTES; zeros behind them.  It reads no others. */

static inline sluice_bytes_t
sluice_bytes_load(const char *text, size_t n)
{
    uint32_t        first, last;
    uint64_t        words[2];
    sluice_bytes_t  bytes;

    if (n >= SLUICE_BYTES) {
        memcpy(&bytes, text, SLUICE_BYTES);
        return bytes;
    }

    words[1] = 0;

    if (n >= 8) {
        memcpy(&words[0], text, 8);
        memcpy(&words[1], text + n - 8, 8);

        /* those that are in the first word already go; of eight, all */

        words[1] = htole64(le64toh(words[1]) >> 8 * (15 - n) >> 8);

    } else if (n >= 4) {
        memcpy(&first, text, 4);
        memcpy(&last, text + n - 4, 4);

        words[0] = htole64(le32toh(first)
                           | (uint64_t) le32toh(last) << 8 * (n - 4));

    } else {
        words[0] = htole64((uint64_t) (unsigned char) text[0]
                     | (uint64_t) (unsigned char) text[n / 2] << 8 * (n / 2)
                     | (uint64_t) (unsigned char) text[n - 1] << 8 * (n - 1));
    }

    memcpy(&bytes, words, SLUICE_BYTES);

    return bytes;
}


static inline int
sluice_bytes_any(sluice_bytes_mask_t mask)
{
    uint64_t  words[2];

    memcpy(words, &mask, sizeof(words));

    return (words[0] | words[1]) != 0;
}


/* The first byte that is set; SLUICE_BYTES: none is. */

static inline size_t
sluice_bytes_first(sluice_bytes_mask_t mask)
{
    uint64_t  words[2];

    memcpy(words, &mask, sizeof(words));

    if (words[0]) {
        return (size_t) __builtin_ctzll(le64toh(words[0])) / 8;
    }

    return words[1] ? 8 + (size_t) __builtin_ctzll(le64toh(words[1])) / 8
                    : SLUICE_BYTES;
}


#endif /* SLUICE_BYTES_H_INCLUDED */
