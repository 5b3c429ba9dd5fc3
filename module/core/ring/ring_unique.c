
/*
 * Unique frames: keys that repeat, claims, and what the dead leave behind.
 * Entries are taken with the lock; claims are made without.
 */


#include "ring_layout.h"


static int sluice_ring_entry_free(sluice_ring_t *ring, sluice_ring_entry_t *e,
    uint64_t now_ms);
static sluice_ring_entry_t *sluice_ring_entry_find(sluice_ring_t *ring,
    uint64_t key, uint64_t seq, uint64_t now_ms, int *repeat);
static void sluice_ring_inherit_frame(sluice_ring_t *ring,
    sluice_ring_entry_t *e, uint64_t claim, uint64_t cursor);


/*
 * Takes an entry for the frame seq at position, that is about to be published:
 * SLUICE_OK, SLUICE_REPEAT, SLUICE_CROWDED.
 *
 * A publisher that dies before it has published must not leave the key behind:
 * nobody would get the event, and repeats would be ignored.  So note comes
 * first and the claim, with its seq, next, and entry_repair() clears the entry
 * noted if the log does not reach that seq.  Each store is a release, so that
 * the compiler keeps this order, too.
 */

int
sluice_ring_entry_take(sluice_ring_t *ring, const sluice_ring_message_t *m,
    uint64_t position, uint64_t seq, uint64_t now_ms, uint32_t *entry)
{
    int                     repeat;
    uint64_t                claim;
    sluice_ring_entry_t    *e;
    sluice_ring_control_t  *c;

    c = ring->control;

    e = sluice_ring_entry_find(ring, m->key, seq, now_ms, &repeat);

    if (repeat) {
        return SLUICE_REPEAT;
    }

    if (e == NULL) {
        return SLUICE_CROWDED;
    }

    *entry = (uint32_t) (e - ring->entries);

    claim = sluice_ring_tag(seq);

    if (m->flags & SLUICE_RING_REDELIVER) {
        claim |= SLUICE_RING_REDO;
        atomic_store_explicit(&c->redeliver, 1, memory_order_relaxed);
    }

    atomic_store_explicit(&c->note, *entry + 1, memory_order_release);
    atomic_store_explicit(&e->claim, claim, memory_order_release);
    atomic_store_explicit(&e->position, position, memory_order_release);
    atomic_store_explicit(&e->expiry_ms, now_ms + m->timeout_ms,
                          memory_order_release);
    atomic_store_explicit(&e->hash, m->key, memory_order_release);

    return SLUICE_OK;
}


/*
 * Looks through both buckets of a key, for a repeat and for the entry to take:
 * a free one of the bucket that has more of them.  A key of 0 repeats nothing.
 */

static sluice_ring_entry_t *
sluice_ring_entry_find(sluice_ring_t *ring, uint64_t key, uint64_t seq,
    uint64_t now_ms, int *repeat)
{
    int                   b, i, best, vacant;
    uint64_t              hash;
    sluice_ring_entry_t  *bucket, *e, *found, *free;

    best = 0;
    found = NULL;
    *repeat = 0;

    hash = key ? key : seq * 0x9e3779b97f4a7c15u;

    for (b = 0; b < 2; b++) {
        bucket = &ring->entries[(hash & ring->buckets) * SLUICE_RING_BUCKET];
        hash = (hash >> 32) | (hash << 32);

        free = NULL;
        vacant = 0;

        for (i = 0; i < SLUICE_RING_BUCKET; i++) {
            e = &bucket[i];

            if (sluice_ring_entry_free(ring, e, now_ms)) {
                vacant++;
                free = e;
                continue;
            }

            if (key
                && atomic_load_explicit(&e->hash, memory_order_relaxed) == key
                && atomic_load_explicit(&e->expiry_ms, memory_order_relaxed)
                   > now_ms)
            {
                *repeat = 1;
                return NULL;
            }
        }

        if (vacant > best) {
            best = vacant;
            found = free;
        }
    }

    return found;
}


/*
 * An entry serves another frame when its key has expired and nobody can want
 * the claim any more: done, or read by all; where the receiver's death still
 * matters, gone from the log.
 */

static int
sluice_ring_entry_free(sluice_ring_t *ring, sluice_ring_entry_t *e,
    uint64_t now_ms)
{
    uint64_t                claim, position, tail;
    sluice_ring_control_t  *c;

    c = ring->control;
    claim = atomic_load_explicit(&e->claim, memory_order_relaxed);

    if (claim == 0) {
        return 1;
    }

    if (atomic_load_explicit(&e->expiry_ms, memory_order_relaxed) > now_ms) {
        return 0;
    }

    if ((claim & SLUICE_RING_OWNER) == SLUICE_RING_DONE) {
        return 1;
    }

    position = atomic_load_explicit(&e->position, memory_order_relaxed);

    if (position >= atomic_load_explicit(&c->gate, memory_order_relaxed)) {
        return 0;
    }

    tail = atomic_load_explicit(&c->tail, memory_order_relaxed);

    return !(claim & SLUICE_RING_REDO)
           || position + ring->size < tail + ring->limit;
}


int
sluice_ring_claim(sluice_ring_t *ring, const sluice_ring_frame_t *frame)
{
    uint64_t              open, mine;
    sluice_ring_entry_t  *e;

    if (ring->own == NULL) {
        return SLUICE_NOSLOT;
    }

    if (frame->kind != SLUICE_RING_UNIQUE
        || (frame->flags & SLUICE_RING_MORE)
        || frame->entry >= (ring->buckets + 1) * SLUICE_RING_BUCKET)
    {
        return SLUICE_BAD;
    }

    e = &ring->entries[frame->entry];

    open = sluice_ring_tag(frame->seq);

    if (frame->flags & SLUICE_RING_REDELIVER) {
        open |= SLUICE_RING_REDO;
    }

    mine = open | (ring->index + 1);

    if (!atomic_compare_exchange_strong(&e->claim, &open, mine)) {
        return SLUICE_NONE;
    }

    if (sluice_ring_intact(ring) != SLUICE_OK) {
        /* its payload may be gone for this reader, not for the others */
        open = mine & ~(uint64_t) SLUICE_RING_OWNER;
        (void) atomic_compare_exchange_strong(&e->claim, &mine, open);
        return SLUICE_OVERRUN;
    }

    if (frame->flags & SLUICE_RING_REDELIVER) {
        ring->claims++;
    }

    sluice_ring_count(ring, SLUICE_RING_C_CLAIMED, 1);

    return SLUICE_OK;
}


void
sluice_ring_done(sluice_ring_t *ring, const sluice_ring_frame_t *frame)
{
    uint64_t              mine, redo;
    sluice_ring_entry_t  *e;

    if (ring->own == NULL
        || frame->entry >= (ring->buckets + 1) * SLUICE_RING_BUCKET)
    {
        return;
    }

    redo = 0;
    e = &ring->entries[frame->entry];

    if (frame->flags & SLUICE_RING_REDELIVER) {
        redo = SLUICE_RING_REDO;

        if (ring->claims) {
            ring->claims--;
        }
    }

    mine = sluice_ring_tag(frame->seq) | redo | (ring->index + 1);

    /* fails if the entry has expired and serves another frame by now */
    (void) atomic_compare_exchange_strong(&e->claim, &mine,
                                       mine | SLUICE_RING_DONE);
}


/*
 * Hands what a dead slot, whose life the caller holds, leaves to be delivered
 * again to the redeliver handler.  SLUICE_BUSY: the lock was not free; what
 * was handed on is marked, so the rest can be done by anybody later.
 */

int
sluice_ring_entry_inherit(sluice_ring_t *ring, uint32_t slot, uint64_t cursor)
{
    uint64_t              i, n, claim, owner, position;
    sluice_ring_entry_t  *e;

    if (ring->redeliver == NULL
        || !atomic_load_explicit(&ring->control->redeliver,
                                 memory_order_relaxed))
    {
        return SLUICE_OK;
    }

    n = (ring->buckets + 1) * SLUICE_RING_BUCKET;

    for (i = 0; i < n; i++) {
        e = &ring->entries[i];

        claim = atomic_load_explicit(&e->claim, memory_order_relaxed);

        if (!(claim & SLUICE_RING_REDO)) {
            continue;
        }

        owner = claim & SLUICE_RING_OWNER;
        position = atomic_load_explicit(&e->position, memory_order_relaxed);

        if (owner != slot + 1 && (owner != 0 || position < cursor)) {
            continue;
        }

        if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
            return SLUICE_BUSY;
        }

        sluice_ring_inherit_frame(ring, e, claim, cursor);

        sluice_ring_unlock(ring);
    }

    return SLUICE_OK;
}


/*
 * The successor holds the claim until it has published the frame again and
 * says done; should it die before, the claim passes to its own successor.
 */

static void
sluice_ring_inherit_frame(sluice_ring_t *ring, sluice_ring_entry_t *e,
    uint64_t claim, uint64_t cursor)
{
    int                  rc;
    uint64_t             mine, floor, position, seq, tail;
    sluice_ring_frame_t  frame;

    position = atomic_load_explicit(&e->position, memory_order_relaxed);
    tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);

    /*
     * Space from the dead reader's cursor on is kept.  Space behind it may
     * have been written over, also by a publisher that died before the end.
     */

    floor = position >= cursor ? tail : tail + ring->limit;

    /* 48 bits of seq in the claim, the others from the tail's */

    seq = sluice_ring_tail_seq(ring, tail);
    seq -= (seq - (claim >> 16)) & 0xffffffffffffull;

    rc = position + ring->size >= floor
         ? sluice_ring_frame_read(ring, position, tail, seq, &frame)
         : SLUICE_NONE;

    mine = claim & ~(uint64_t) SLUICE_RING_OWNER;
    mine |= ring->own && rc == SLUICE_OK ? ring->index + 1 : SLUICE_RING_DONE;

    /* a live reader may claim an open one at this very moment: its luck */

    if (atomic_compare_exchange_strong(&e->claim, &claim, mine)
        && rc == SLUICE_OK)
    {
        ring->claims += (ring->own != NULL);
        ring->redeliver(ring->redeliver_data, &frame);
    }
}
