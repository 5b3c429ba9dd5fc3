
/*
 * Publishing.
 */


#include "ring_layout.h"

#include <unistd.h>


static uint32_t sluice_ring_epoch(const sluice_ring_t *ring);
static int sluice_ring_header(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m);
static int sluice_ring_try(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m);
static int sluice_ring_append_locked(sluice_ring_t *ring,
    sluice_ring_header_t *h, const sluice_ring_message_t *m);
static int sluice_ring_entry(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m, uint64_t tail);
static void sluice_ring_commit(sluice_ring_t *ring, uint64_t tail,
    uint64_t end, uint64_t seq);


int
sluice_ring_publish(sluice_ring_t *ring, const sluice_ring_message_t *m)
{
    int  rc;

    rc = sluice_ring_append(ring, m);

    if (rc == SLUICE_OK) {
        sluice_ring_wake_sleepers(ring);
    }

    return rc;
}


int
sluice_ring_append(sluice_ring_t *ring, const sluice_ring_message_t *m)
{
    int                   rc;
    sluice_ring_header_t  h;

    rc = sluice_ring_header(ring, &h, m);
    if (rc != SLUICE_OK) {
        return rc;
    }

    rc = sluice_ring_try(ring, &h, m);

    if (rc == SLUICE_FULL) {
        /*
         * First ask to be woken, then try once more, or the last reader might
         * make room in between and wake nobody.  The readers in the way might
         * be dead, or asleep since someone died who was to wake them.
         */
        sluice_ring_wait(ring);
        sluice_ring_reap(ring);
        sluice_ring_wake_sleepers(ring);

        rc = sluice_ring_try(ring, &h, m);
    }

    switch (rc) {

    case SLUICE_OK:
        sluice_ring_count(ring, SLUICE_RING_C_PUBLISHED, 1);
        sluice_ring_count(ring, SLUICE_RING_C_PUBLISHED_BYTES, h.length);
        break;

    case SLUICE_FULL:
        sluice_ring_count(ring, SLUICE_RING_C_FULL, 1);
        break;

    case SLUICE_BUSY:
        sluice_ring_count(ring, SLUICE_RING_C_BUSY, 1);
        break;

    case SLUICE_REPEAT:
        sluice_ring_count(ring, SLUICE_RING_C_REPEATS, 1);
        break;
    }

    return rc;
}


void
sluice_ring_sign(const sluice_ring_t *ring, sluice_ring_message_t *m)
{
    m->epoch = sluice_ring_epoch(ring);
    m->sender = (uint16_t) ring->index;
}


static uint32_t
sluice_ring_epoch(const sluice_ring_t *ring)
{
    return ring->index == SLUICE_RING_NOBODY ? (uint32_t) getpid()
                                             : ring->epoch;
}


/* All that can be done before the lock. */

static int
sluice_ring_header(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m)
{
    uint32_t  length;

    length = sluice_ring_frame_size(m);

    if (length == 0 || length > ring->limit
        || m->source_length > SLUICE_RING_NAME_MAX
        || m->event_length > SLUICE_RING_NAME_MAX)
    {
        return SLUICE_LARGE;
    }

    if (m->kind > SLUICE_RING_UNIQUE) {
        return SLUICE_BAD;
    }

    h->length = length;
    h->check = 0;
    h->seq = 0;
    h->sent_ms = ring->clock();
    h->name_hash = m->name_hash;
    h->message = m->message;
    h->piece = m->piece;
    h->payload = m->length[0] + m->length[1];
    h->entry = 0;
    h->epoch = m->message ? m->epoch : sluice_ring_epoch(ring);
    h->sender = m->message ? m->sender : (uint16_t) ring->index;
    h->worker = m->worker;
    h->source = m->source_length;
    h->event = m->event_length;
    h->kind = m->kind;
    h->flags = m->flags;
    h->zero = 0;

    if (h->name_hash == 0) {
        h->name_hash = sluice_ring_name_hash(ring, m->source, h->source,
                                             m->event, h->event);
    }

    return SLUICE_OK;
}


static int
sluice_ring_try(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m)
{
    int  rc;

    if (sluice_ring_lock(ring, SLUICE_RING_SHORT_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    rc = sluice_ring_append_locked(ring, h, m);

    sluice_ring_unlock(ring);

    return rc;
}


static int
sluice_ring_append_locked(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m)
{
    int                     rc;
    uint64_t                end, gate, tail;
    sluice_ring_control_t  *c;

    c = ring->control;
    gate = atomic_load_explicit(&c->gate, memory_order_relaxed);
    tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
    end = tail + h->length;

    if (end - gate > ring->size
        && !sluice_ring_room(ring, tail, end - ring->size))
    {
        return SLUICE_FULL;
    }

    h->seq = sluice_ring_tail_seq(ring, tail) + 1;

    if (h->kind == SLUICE_RING_UNIQUE && !(h->flags & SLUICE_RING_MORE)) {
        rc = sluice_ring_entry(ring, h, m, tail);
        if (rc != SLUICE_OK) {
            return rc;
        }
    }

    sluice_ring_frame_write(ring, tail, h, m);
    sluice_ring_commit(ring, tail, end, h->seq);

    return SLUICE_OK;
}


static int
sluice_ring_entry(sluice_ring_t *ring, sluice_ring_header_t *h,
    const sluice_ring_message_t *m, uint64_t tail)
{
    int  rc;

    rc = sluice_ring_entry_take(ring, m, tail, h->seq, h->sent_ms, &h->entry);

    if (rc == SLUICE_CROWDED) {
        /* the gate in memory is that of the last time there was no space */
        (void) sluice_ring_room(ring, tail, 0);
        rc = sluice_ring_entry_take(ring, m, tail, h->seq, h->sent_ms,
                                    &h->entry);
    }

    return rc;
}


static void
sluice_ring_commit(sluice_ring_t *ring, uint64_t tail, uint64_t end,
    uint64_t seq)
{
    int                     i;
    sluice_ring_control_t  *c;

    c = ring->control;
    i = (atomic_load_explicit(&c->commit[0].tail, memory_order_relaxed)
         == tail);

    atomic_store_explicit(&c->commit[i].seq, seq, memory_order_relaxed);
    atomic_store_explicit(&c->commit[i].tail, end, memory_order_relaxed);

    /* seq_cst, not just release: the sleep words are loaded after it */
    atomic_store(&c->tail, end);
}
