
/*
 * Balancers, and which target is picked next.
 */


#include "layout.h"
#include "balancer.h"

#include <stdlib.h>


#define CORE_DRAWS       16
#define CORE_TRIES       100

/* A place in the cycle, by which picks are sorted; then the target. */

#define CORE_PLACE_BITS   44
#define CORE_TARGET_BITS  16


struct sluice_balancer_s {
    uint32_t  size;                        /* bytes, a multiple of 8 */
    uint32_t  targets;
    uint32_t  length;                      /* picks */
    uint32_t  zero;
    uint64_t  weighted[1];                 /* bits: targets that have picks */
};


_Static_assert(SLUICE_BALANCER_TARGETS_MAX < 1 << CORE_TARGET_BITS, "targets");
_Static_assert(CORE_PLACE_BITS + CORE_TARGET_BITS < 64, "a pick's key");
_Static_assert(sizeof(sluice_balancer_position_t) == SLUICE_CORE_LINE,
               "position");


static uint64_t core_share(sluice_balancer_t *balancer,
    const uint32_t *weights, uint32_t count, uint32_t slots, uint64_t *keys);
static uint64_t core_divisor(const uint32_t *weights, uint32_t count,
    uint64_t *total);
static uint64_t core_picks_of(uint64_t weight, uint64_t total, uint32_t slots);
static int core_compare(const void *one, const void *two);
static uint64_t core_pick(sluice_balancer_position_t *position,
    uint32_t generation);
static int core_bit(const uint64_t *bits, uint32_t i);
static int core_look(const sluice_balancer_t *balancer, uint32_t from,
    const uint64_t *down, const uint64_t *tried);


#define core_words(targets)  (((targets) + 63) / 64)

#define core_head_size(targets)                                               \
    (offsetof(sluice_balancer_t, weighted)                                    \
     + (uint64_t) core_words(targets) * 8)

#define core_picks(balancer)                                                  \
    ((const uint16_t *) &(balancer)->weighted[core_words((balancer)->targets)])


/* Scaling may give a target one pick more than its part of the slots. */

uint64_t
sluice_balancer_bound(uint32_t count, uint32_t slots)
{
    return sluice_core_align(core_head_size((uint64_t) count)
                             + ((uint64_t) count + slots) * sizeof(uint16_t),
                             8);
}


int
sluice_balancer_build(const uint32_t *weights, uint32_t count,
    uint32_t slots, void *buffer, uint64_t size, uint64_t *used)
{
    uint32_t            i;
    uint16_t           *picks;
    uint64_t            k, length, *keys;
    sluice_balancer_t  *balancer;

    if (count > SLUICE_BALANCER_TARGETS_MAX
        || slots > SLUICE_BALANCER_PICKS_MAX || slots == 0)
    {
        return SLUICE_CORE_LARGE;
    }

    for (i = 0; i < count; i++) {

        if (weights[i] > SLUICE_BALANCER_WEIGHT_MAX) {
            return SLUICE_CORE_LARGE;
        }
    }

    if (size < sluice_balancer_bound(count, slots)) {
        return SLUICE_CORE_FULL;
    }

    keys = malloc(((uint64_t) count + slots) * sizeof(uint64_t));
    if (keys == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    balancer = buffer;
    memset(balancer, 0, core_head_size(count));

    length = core_share(balancer, weights, count, slots, keys);

    balancer->targets = count;
    balancer->length = (uint32_t) length;
    balancer->size = (uint32_t) sluice_core_align(core_head_size(count)
                                                  + length * sizeof(uint16_t),
                                                  8);

    picks = (uint16_t *) &balancer->weighted[core_words(count)];
    memset(picks, 0, balancer->size - core_head_size(count));

    for (k = 0; k < length; k++) {
        picks[k] = (uint16_t) keys[k];
    }

    free(keys);
    *used = balancer->size;

    return SLUICE_CORE_OK;
}


/* The targets' picks, in their order; keys has room for all of them. */

static uint64_t
core_share(sluice_balancer_t *balancer, const uint32_t *weights,
    uint32_t count, uint32_t slots, uint64_t *keys)
{
    uint32_t  i;
    uint64_t  divisor, total, n, k, length;

    divisor = core_divisor(weights, count, &total);
    length = 0;

    for (i = 0; i < count; i++) {

        if (weights[i] == 0) {
            continue;
        }

        balancer->weighted[i / 64] |= 1ull << i % 64;
        n = core_picks_of(weights[i] / divisor, total, slots);

        /*
         * Two places differ by 2^-33 at least, so that 44 bits keep apart
         * what is not equal.
         */

        for (k = 0; k < n; k++) {
            keys[length++] = ((2 * k + 1) << CORE_PLACE_BITS) / (2 * n)
                             << CORE_TARGET_BITS | i;
        }
    }

    qsort(keys, length, sizeof(uint64_t), core_compare);

    return length;
}


/* What all weights can be divided by; total: of what that leaves. */

static uint64_t
core_divisor(const uint32_t *weights, uint32_t count, uint64_t *total)
{
    uint32_t  i;
    uint64_t  a, b, rest, sum;

    for (i = 0, a = 0, sum = 0; i < count; i++) {
        sum += weights[i];

        for (b = weights[i]; b != 0; b = rest) {
            rest = a % b;
            a = b;
        }
    }

    *total = a ? sum / a : 0;

    return a;
}


static uint64_t
core_picks_of(uint64_t weight, uint64_t total, uint32_t slots)
{
    uint64_t  picks;

    if (total <= slots) {
        return weight;
    }

    picks = (2 * weight * slots + total) / (2 * total);

    return picks ? picks : 1;
}


static int
core_compare(const void *one, const void *two)
{
    uint64_t  a, b;

    a = *(const uint64_t *) one;
    b = *(const uint64_t *) two;

    return (a > b) - (a < b);
}


int
sluice_balancer_check(const void *bytes, uint64_t size)
{
    uint32_t                  i;
    uint64_t                  head, end;
    const uint16_t           *picks;
    const sluice_balancer_t  *balancer;

    balancer = bytes;

    if ((uintptr_t) bytes % 8
        || size < offsetof(sluice_balancer_t, weighted)
        || balancer->size != size
        || balancer->zero
        || balancer->targets > SLUICE_BALANCER_TARGETS_MAX
        || balancer->length > balancer->targets + SLUICE_BALANCER_PICKS_MAX)
    {
        return SLUICE_CORE_BAD;
    }

    head = core_head_size(balancer->targets);
    end = head + balancer->length * sizeof(uint16_t);

    if (size != sluice_core_align(end, 8)) {
        return SLUICE_CORE_BAD;
    }

    /* who has a bit exists, who has a pick has a bit */

    for (i = balancer->targets; i < core_words(balancer->targets) * 64; i++) {

        if (core_bit(balancer->weighted, i)) {
            return SLUICE_CORE_BAD;
        }
    }

    picks = core_picks(balancer);

    for (i = 0; i < balancer->length; i++) {

        if (picks[i] >= balancer->targets
            || !core_bit(balancer->weighted, picks[i]))
        {
            return SLUICE_CORE_BAD;
        }
    }

    return SLUICE_CORE_OK;
}


uint32_t
sluice_balancer_length(const sluice_balancer_t *balancer)
{
    return balancer->length;
}


uint32_t
sluice_balancer_words(const sluice_balancer_t *balancer)
{
    return core_words(balancer->targets);
}


int
sluice_balancer_pick(const sluice_balancer_t *balancer,
    sluice_balancer_position_t *position, uint32_t generation,
    const uint64_t *down, uint64_t *tried)
{
    int       target;
    uint32_t  i;
    uint64_t  pick;

    if (balancer->length == 0
        || (tried && core_look(balancer, 0, down, tried) == SLUICE_CORE_NONE))
    {
        return SLUICE_CORE_NONE;
    }

    for (i = 0; i < CORE_DRAWS; i++) {
        pick = core_pick(position, generation);
        target = core_picks(balancer)[pick % balancer->length];

        if (!core_bit(down, (uint32_t) target)
            && !core_bit(tried, (uint32_t) target))
        {
            break;
        }
    }

    if (i == CORE_DRAWS) {
        i = (uint32_t) (pick / CORE_DRAWS % balancer->targets);
        target = core_look(balancer, i, down, tried);
    }

    if (tried && target != SLUICE_CORE_NONE) {
        tried[target / 64] |= 1ull << target % 64;
    }

    return target;
}


/* Counts a pick: the number of those before it. */

static uint64_t
core_pick(sluice_balancer_position_t *position, uint32_t generation)
{
    uint32_t           i;
    uint64_t           seen, now, first;
    _Atomic uint64_t  *word;

    word = (_Atomic uint64_t *) &position->word;
    seen = atomic_fetch_add_explicit(word, 1 << 16, memory_order_relaxed);

    /* what is added to a predecessor's count, nobody will miss */

    for (i = 0; (uint16_t) seen != (uint16_t) generation && i < CORE_TRIES;
         i++)
    {
        first = 1 << 16 | (uint16_t) generation;
        now = atomic_load_explicit(word, memory_order_relaxed);

        if ((uint16_t) now == (uint16_t) generation) {
            seen = atomic_fetch_add_explicit(word, 1 << 16,
                                             memory_order_relaxed);

        } else if (atomic_compare_exchange_strong_explicit(word, &now, first,
                                                       memory_order_relaxed,
                                                       memory_order_relaxed))
        {
            return 0;
        }
    }

    return seen >> 16;
}


static int
core_bit(const uint64_t *bits, uint32_t i)
{
    return bits && (atomic_load_explicit((const _Atomic uint64_t *)
                                         &bits[i / 64], memory_order_relaxed)
                    >> i % 64 & 1);
}


/* The first from there on, around, that is neither down nor tried. */

static int
core_look(const sluice_balancer_t *balancer, uint32_t from,
    const uint64_t *down, const uint64_t *tried)
{
    uint32_t  i, word, words;
    uint64_t  bits;

    words = core_words(balancer->targets);

    /* the first word once more at the end: its bits before from */

    for (i = 0; i <= words; i++) {
        word = (from / 64 + i) % words;
        bits = balancer->weighted[word];

        if (down) {
            bits &= ~atomic_load_explicit((const _Atomic uint64_t *)
                                          &down[word], memory_order_relaxed);
        }

        if (tried) {
            bits &= ~tried[word];
        }

        if (i == 0) {
            bits &= ~0ull << from % 64;
        }

        if (bits) {
            return (int) (word * 64 + (uint32_t) __builtin_ctzll(bits));
        }
    }

    return SLUICE_CORE_NONE;
}
