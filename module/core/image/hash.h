
/*
 * Hashes of the core: folded multiplications, 8 bytes a step.  Not secret:
 * whoever chooses keys is the configuration's owner, and a chain of equal
 * hashes is bounded (core.h, LIMITS).  Where it is not, one has a key.
 */


#ifndef SLUICE_CORE_HASH_H_INCLUDED
#define SLUICE_CORE_HASH_H_INCLUDED


#include <stdint.h>
#include <string.h>


#define SLUICE_CORE_K1  0x9e3779b97f4a7c15ull
#define SLUICE_CORE_K2  0xe7037ed1a0b428dbull
#define SLUICE_CORE_K3  0x8ebc6af09c88c6e3ull

#define SLUICE_CORE_KEY_WORDS  33            /* 255 bytes, and zeroes */


__extension__ typedef unsigned __int128  sluice_core_u128_t;


/* What the keys of different things begin with. */

enum {
    SLUICE_CORE_HASH_HOST = 1,               /* plus its kind */
    SLUICE_CORE_HASH_ID = 16,                /* plus the kind */
    SLUICE_CORE_HASH_KEY = 32,
    SLUICE_CORE_HASH_CHILDREN = 48,
    SLUICE_CORE_HASH_SLOT = 80,
    SLUICE_CORE_HASH_SUM = 96
};


static inline uint64_t
sluice_core_fold(uint64_t a, uint64_t b)
{
    sluice_core_u128_t  product;

    product = (sluice_core_u128_t) (a ^ SLUICE_CORE_K2) * (b ^ SLUICE_CORE_K1);

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}


static inline uint64_t
sluice_core_hash(uint64_t what, const void *data, uint64_t length)
{
    uint64_t        hash, word;
    const uint8_t  *p, *end;

    p = data;
    hash = what * SLUICE_CORE_K3 + length;

    for (end = p + (length & ~7ull); p != end; p += 8) {
        memcpy(&word, p, 8);
        hash = sluice_core_fold(hash ^ word, SLUICE_CORE_K3);
    }

    word = 0;

    if (length & 7) {
        memcpy(&word, p, length & 7);
    }

    return sluice_core_fold(hash ^ word, length);
}


/* With two secret numbers: without them nobody can aim at a hash. */

static inline uint64_t
sluice_core_hash_keyed(const uint64_t *secret, const void *data,
    uint64_t length)
{
    uint64_t        hash, word;
    const uint8_t  *p, *end;

    p = data;
    hash = secret[0];

    for (end = p + (length & ~7ull); p != end; p += 8) {
        memcpy(&word, p, 8);
        hash = sluice_core_fold(hash ^ word, secret[1]);
    }

    word = 0;

    if (length & 7) {
        memcpy(&word, p, length & 7);
    }

    return sluice_core_fold(hash ^ word, secret[1] + length);
}


/*
 * The heads of one path: hashed once, each length in one step more.  words
 * holds the first 255 bytes and zeroes, states what the whole words before
 * each come to.
 */

typedef struct {
    uint64_t  words[SLUICE_CORE_KEY_WORDS];
    uint64_t  states[SLUICE_CORE_KEY_WORDS];
} sluice_core_heads_t;


static inline void
sluice_core_heads(sluice_core_heads_t *heads, const char *path,
    uint32_t length)
{
    uint32_t  i, n;

    n = length < 255 ? length : 255;

    heads->states[0] = SLUICE_CORE_K3;

    for (i = 0; i < n / 8; i++) {
        memcpy(&heads->words[i], path + 8 * i, 8);
        heads->states[i + 1] = sluice_core_fold(heads->states[i]
                                                ^ heads->words[i],
                                                SLUICE_CORE_K3);
    }

    heads->words[i] = 0;
    memcpy(&heads->words[i], path + 8 * i, n % 8);
}


/* Of the head of length bytes, of a path that is at least as long. */

static inline uint64_t
sluice_core_hash_key(uint64_t host, const sluice_core_heads_t *heads,
    uint32_t length)
{
    uint64_t  mask, path;

    mask = (length & 7) ? ~0ull >> (64 - 8 * (length & 7)) : 0;
    path = heads->states[length / 8] ^ (heads->words[length / 8] & mask);

    return sluice_core_fold(host ^ sluice_core_fold(path, length),
                            SLUICE_CORE_K3);
}


#endif /* SLUICE_CORE_HASH_H_INCLUDED */
