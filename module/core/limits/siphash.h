
/*
 * SipHash: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF",
 * 2012.  For what clients choose: without the key nobody can aim at a place.
 *
 * The message is a word (its 8 bytes, the lowest first) and length bytes that
 * follow it.  c and d are the rounds of a word and of the end.
 */


#ifndef SLUICE_CORE_SIPHASH_H_INCLUDED
#define SLUICE_CORE_SIPHASH_H_INCLUDED


#include <stdint.h>
#include <string.h>


#define sluice_core_rotate(x, n)  ((x) << (n) | (x) >> (64 - (n)))


/* as functions they would count rounds, which costs as much as one of these */

static inline void sluice_core_sip_rounds(uint64_t *v, int rounds)
    __attribute__ ((always_inline));
static inline uint64_t sluice_core_siphash(const uint64_t *key, int c, int d,
    uint64_t word, const void *data, uint64_t length)
    __attribute__ ((always_inline));


static inline void
sluice_core_sip_rounds(uint64_t *v, int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[1] = sluice_core_rotate(v[1], 13) ^ v[0];
        v[0] = sluice_core_rotate(v[0], 32);
        v[2] += v[3];
        v[3] = sluice_core_rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = sluice_core_rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = sluice_core_rotate(v[1], 17) ^ v[2];
        v[2] = sluice_core_rotate(v[2], 32);
    }
}


static inline uint64_t
sluice_core_siphash(const uint64_t *key, int c, int d, uint64_t word,
    const void *data, uint64_t length)
{
    uint64_t        v[4], left;
    const uint8_t  *p;

    v[0] = key[0] ^ 0x736f6d6570736575ull;
    v[1] = key[1] ^ 0x646f72616e646f6dull;
    v[2] = key[0] ^ 0x6c7967656e657261ull;
    v[3] = key[1] ^ 0x7465646279746573ull;

    v[3] ^= word;
    sluice_core_sip_rounds(v, c);
    v[0] ^= word;

    for (p = data, left = length; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        v[3] ^= word;
        sluice_core_sip_rounds(v, c);
        v[0] ^= word;
    }

    word = 0;

    if (left) {
        memcpy(&word, p, left);
    }

    word |= (length + 8) << 56;
    v[3] ^= word;
    sluice_core_sip_rounds(v, c);
    v[0] ^= word;

    v[2] ^= 0xff;
    sluice_core_sip_rounds(v, d);

    return v[0] ^ v[1] ^ v[2] ^ v[3];
}


#endif /* SLUICE_CORE_SIPHASH_H_INCLUDED */
