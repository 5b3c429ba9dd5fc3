
/*
 * Figures, words, hashes and sizes: what needs no lock and changes nothing.
 */


#include "ring_layout.h"

#include <string.h>


#define SLUICE_RING_K1  0xa0761d6478bd642fu
#define SLUICE_RING_K2  0xe7037ed1a0b428dbu


static uint64_t sluice_ring_mix(uint64_t a, uint64_t b);
static uint64_t sluice_ring_hash_more(uint64_t hash, const void *data,
    size_t length);


/* Each word has one writer, so this needs no atomic addition. */

void
sluice_ring_count(sluice_ring_t *ring, int counter, uint64_t n)
{
    _Atomic uint64_t  *word;

    if (ring->own) {
        word = &ring->own->count[counter];
        n += atomic_load_explicit(word, memory_order_relaxed);
        atomic_store_explicit(word, n, memory_order_relaxed);
    }
}


uint64_t *
sluice_ring_counters(sluice_ring_t *ring)
{
    return ring->own ? (uint64_t *) ring->own->count : NULL;
}


void
sluice_ring_stats(const sluice_ring_t *ring, sluice_ring_stats_t *stats)
{
    uint32_t                i, state;
    uint64_t                gate, cursor;
    sluice_ring_control_t  *c;

    c = ring->control;

    memset(stats, 0, sizeof(sluice_ring_stats_t));

    (void) sluice_ring_tail_now(ring, &stats->tail, &stats->seq);

    gate = stats->tail;
    stats->slots = ring->count;
    stats->top = atomic_load(&c->top);

    for (i = 0; i < stats->top && i < ring->count; i++) {
        state = atomic_load(&ring->slots[i].state);
        cursor = atomic_load(&ring->slots[i].cursor);

        if (state == SLUICE_RING_ATTACHED) {
            stats->attached++;

            if (cursor < gate) {
                gate = cursor;
            }

        } else if (state == SLUICE_RING_DETACHED) {
            stats->detached++;
        }
    }

    stats->size = ring->size;
    stats->used = stats->tail - gate;
    stats->frame_limit = ring->limit;
    stats->stall_ms = atomic_load(&c->stall_ms);
    stats->generation = atomic_load(&c->generation);
}


int
sluice_ring_slot_stats(const sluice_ring_t *ring, uint32_t index,
    sluice_ring_slot_stats_t *stats)
{
    int                     i;
    uint64_t                cursor, passed, seq, tail;
    sluice_ring_slot_t     *slot;
    sluice_ring_control_t  *c;

    memset(stats, 0, sizeof(sluice_ring_slot_stats_t));

    if (index >= ring->count) {
        return SLUICE_NONE;
    }

    c = ring->control;
    slot = &ring->slots[index];

    stats->state = (uint8_t) atomic_load(&slot->state);

    if (stats->state == SLUICE_RING_FREE) {
        return SLUICE_NONE;
    }

    for (i = 0; i < SLUICE_RING_COUNTERS; i++) {
        stats->count[i] = atomic_load(&slot->count[i]);
    }

    /* the reader's first, so that it cannot be ahead */

    cursor = atomic_load(&slot->cursor);
    passed = atomic_load(&slot->seq);
    tail = atomic_load(&c->tail);
    seq = sluice_ring_tail_seq(ring, tail);

    stats->lag = seq > passed ? seq - passed : 0;
    stats->lag_bytes = tail > cursor ? tail - cursor : 0;
    stats->pid = atomic_load(&slot->pid);
    stats->epoch = atomic_load(&slot->epoch);
    stats->generation = atomic_load(&slot->generation);
    stats->worker = (uint16_t) atomic_load(&slot->worker);
    stats->asleep = (uint8_t) (atomic_load(&c->sleep[index]) & 1);

    return SLUICE_OK;
}


uint32_t
sluice_ring_payload_limit(const sluice_ring_t *ring, size_t source_length,
    size_t event_length)
{
    size_t  n;

    if (source_length > SLUICE_RING_NAME_MAX
        || event_length > SLUICE_RING_NAME_MAX)
    {
        return 0;
    }

    n = sizeof(sluice_ring_header_t) + source_length + event_length;

    return n < ring->limit ? ring->limit - (uint32_t) n : 0;
}


static uint64_t
sluice_ring_mix(uint64_t a, uint64_t b)
{
    sluice_ring_u128_t  product;

    product = (sluice_ring_u128_t) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}


/*
 * Multiply and fold, eight bytes at a time: a few ns for a name.  Not for
 * keeping out an attacker who sees hashes; he does not, and the seed differs
 * with every log.
 */

static uint64_t
sluice_ring_hash_more(uint64_t hash, const void *data, size_t length)
{
    size_t          left;
    uint64_t        word;
    const uint8_t  *p;

    p = data;

    for (left = length; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        hash = sluice_ring_mix(hash ^ word, SLUICE_RING_K1);
    }

    word = 0;

    if (left) {
        memcpy(&word, p, left);
    }

    return sluice_ring_mix(hash ^ word, SLUICE_RING_K2 ^ length);
}


uint64_t
sluice_ring_hash(const sluice_ring_t *ring, const void *data, size_t length)
{
    uint64_t  hash;

    hash = sluice_ring_hash_more(ring->seed, data, length);

    return hash ? hash : 1;
}


uint64_t
sluice_ring_name_hash(const sluice_ring_t *ring, const char *source,
    size_t source_length, const char *event, size_t event_length)
{
    uint64_t  hash;

    hash = sluice_ring_hash_more(ring->seed, source, source_length);
    hash = sluice_ring_hash_more(hash, event, event_length);

    return hash ? hash : 1;
}


const char *
sluice_ring_word(int rc)
{
    switch (rc) {

    case SLUICE_OK:
        return "ok";

    case SLUICE_NONE:
        return "none";

    case SLUICE_FULL:
        return "full";

    case SLUICE_BUSY:
        return "busy";

    case SLUICE_REPEAT:
        return "repeat";

    case SLUICE_OVERRUN:
        return "overrun";

    case SLUICE_BAD:
        return "damaged";

    case SLUICE_LARGE:
        return "payload too large";

    case SLUICE_CROWDED:
        return "too many unique keys";

    case SLUICE_NOSLOT:
        return "no slot";

    case SLUICE_VERSION:
        return "another layout";

    default:
        return "system error";
    }
}
