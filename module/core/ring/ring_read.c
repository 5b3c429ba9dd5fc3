
/*
 * Readers: no lock, no read-modify-write, nothing copied but headers.
 */


#include "ring_layout.h"


static void sluice_ring_awake(sluice_ring_t *ring);


int
sluice_ring_next_batch(sluice_ring_t *ring, sluice_ring_frame_t *frames, int n)
{
    int       i, idle, rc;
    uint64_t  tail;

    if (ring->own == NULL) {
        return SLUICE_NOSLOT;
    }

    sluice_ring_awake(ring);

    if (sluice_ring_intact(ring) != SLUICE_OK) {
        return SLUICE_OVERRUN;
    }

    if (n > SLUICE_RING_BATCH_MAX) {
        n = SLUICE_RING_BATCH_MAX;
    }

    rc = SLUICE_OK;
    idle = (ring->used >= ring->handed);
    tail = atomic_load_explicit(&ring->control->tail, memory_order_acquire);

    /* each turn passes at least a header, so tail bounds the loop */

    for (i = 0; i < n && ring->read != tail; /* void */) {
        rc = sluice_ring_frame_read(ring, ring->read, tail,
                                    ring->read_seq + 1, &frames[i]);
        if (rc != SLUICE_OK) {
            break;
        }

        ring->read = frames[i].end;
        ring->read_seq++;

        if (frames[i].kind != SLUICE_RING_WORKER
            || frames[i].worker == ring->worker)
        {
            /* the data is mapped twice: so these lie behind each other */

            frames[i].offset = (uint32_t)
                               ((frames[i].payload - frames[0].payload)
                                & ring->mask);
            ring->handed = frames[i].end;
            i++;
        }
    }

    if (i > 0) {
        return i;
    }

    if (sluice_ring_intact(ring) != SLUICE_OK) {
        return SLUICE_OVERRUN;
    }

    if (idle && ring->used != ring->read) {
        /* only frames for others: nobody will advance past them */
        (void) sluice_ring_advance(ring, NULL);
    }

    return rc;
}


int
sluice_ring_advance(sluice_ring_t *ring, const sluice_ring_frame_t *last)
{
    uint64_t             end, seq, old;
    sluice_ring_slot_t  *slot;

    slot = ring->own;

    if (slot == NULL) {
        return SLUICE_NOSLOT;
    }

    if (last && last->end == ring->handed) {
        last = NULL;
    }

    old = ring->used;
    end = last ? last->end : ring->read;
    seq = last ? last->seq : ring->read_seq;

    /* a caller's mistake would free what nobody has read */

    if (end - old > ring->read - old || seq > ring->read_seq) {
        return SLUICE_BAD;
    }

    sluice_ring_count(ring, SLUICE_RING_C_READ, seq - ring->used_seq);
    sluice_ring_count(ring, SLUICE_RING_C_READ_BYTES, end - old);

    ring->used = end;
    ring->used_seq = seq;

    atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
    atomic_store_explicit(&slot->cursor, end, memory_order_release);

    /*
     * Publishers without space are woken four times a lap, and at sleep, not
     * at each step: the first to be woken would fill it at once.
     */

    if ((old ^ end) & ~(ring->size / 4 - 1)) {
        ring->offered = end;
        sluice_ring_wake_waiting(ring);
    }

    return sluice_ring_intact(ring);
}


int
sluice_ring_intact(const sluice_ring_t *ring)
{
    if (ring->own == NULL) {
        return SLUICE_NOSLOT;
    }

    /* what was read before is read before the state; see "Space" in ring.h */
    atomic_thread_fence(memory_order_acquire);

    return atomic_load_explicit(&ring->own->state, memory_order_relaxed)
           == SLUICE_RING_ATTACHED ? SLUICE_OK : SLUICE_OVERRUN;
}


int
sluice_ring_rejoin(sluice_ring_t *ring, uint64_t *missed)
{
    uint64_t             tail, seq;
    sluice_ring_slot_t  *slot;

    *missed = 0;
    slot = ring->own;

    if (slot == NULL) {
        return SLUICE_NOSLOT;
    }

    if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    seq = sluice_ring_tail_seq(ring, tail);

    *missed = seq - ring->used_seq;

    ring->read = ring->used = ring->handed = tail;
    ring->read_seq = ring->used_seq = seq;

    atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
    atomic_store_explicit(&slot->cursor, tail, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLUICE_RING_ATTACHED,
                          memory_order_release);

    sluice_ring_unlock(ring);

    sluice_ring_count(ring, SLUICE_RING_C_OVERRUNS, 1);
    sluice_ring_count(ring, SLUICE_RING_C_MISSED, *missed);

    sluice_ring_wake_waiting(ring);

    return SLUICE_OK;
}


int
sluice_ring_sleep(sluice_ring_t *ring)
{
    uint64_t           tail;
    _Atomic uint32_t  *word;

    if (ring->own == NULL) {
        return SLUICE_NOSLOT;
    }

    if (sluice_ring_intact(ring) != SLUICE_OK) {
        return SLUICE_OVERRUN;
    }

    word = &ring->control->sleep[ring->index];

    ring->ticket = (ring->ticket + 1) | 1;

    atomic_store(word, ring->ticket);
    tail = atomic_load(&ring->control->tail);

    if (tail != ring->read) {
        sluice_ring_awake(ring);
        return SLUICE_OK;
    }

    sluice_ring_count(ring, SLUICE_RING_C_SLEEPS, 1);

    /*
     * Only if it has made room: a publisher that finds the log full wakes the
     * sleepers, so the two would wake each other for ever.
     */

    if (ring->offered != ring->used) {
        ring->offered = ring->used;
        sluice_ring_wake_waiting(ring);
    }

    return SLUICE_NONE;
}


static void
sluice_ring_awake(sluice_ring_t *ring)
{
    if (ring->ticket & 1) {
        ring->ticket++;

        /* the even number that a waking writer stores, too */
        atomic_store_explicit(&ring->control->sleep[ring->index],
                              ring->ticket, memory_order_relaxed);
    }
}
