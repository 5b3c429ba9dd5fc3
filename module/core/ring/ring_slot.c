
/*
 * Slots: who takes part, and what becomes of the dead.
 */


#include "ring_layout.h"

#include <errno.h>
#include <unistd.h>


static int sluice_ring_slot_take(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker, uint64_t *missed);
static int sluice_ring_slot_free(sluice_ring_t *ring, uint32_t i);
static void sluice_ring_slot_start(sluice_ring_t *ring, uint32_t index,
    uint32_t generation, uint16_t worker, uint64_t *missed);
static int sluice_ring_exited(sluice_ring_t *ring, uint32_t i);


int
sluice_ring_mark(sluice_ring_t *ring, uint32_t generation, uint16_t worker)
{
    uint64_t  start, seq, missed;

    if (ring->marked) {
        return SLUICE_OK;
    }

    if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    missed = 0;
    start = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    seq = sluice_ring_tail_seq(ring, start);

    sluice_ring_gate_look(ring, generation, worker, &start, &seq, &missed);

    sluice_ring_unlock(ring);

    ring->mark = start;
    ring->mark_seq = seq;
    ring->mark_missed = missed;
    ring->marked = 1;

    return SLUICE_OK;
}


int
sluice_ring_pass(sluice_ring_t *ring, uint32_t generation, uint16_t worker)
{
    if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    sluice_ring_gate_enter(ring, generation, worker);

    sluice_ring_unlock(ring);

    return SLUICE_OK;
}


int
sluice_ring_attach(sluice_ring_t *ring, uint32_t generation, uint16_t worker,
    uint64_t *missed)
{
    int  rc;

    *missed = 0;

    if (ring->own) {
        return SLUICE_BAD;
    }

    rc = sluice_ring_slot_take(ring, generation, worker, missed);

    /*
     * The successor of a dead worker comes here, so this is where its slot is
     * freed and where those are woken that it could not wake any more.  After
     * it has a slot, so that it can own what the dead leave behind.
     */

    sluice_ring_reap(ring);

    if (rc == SLUICE_NOSLOT) {
        rc = sluice_ring_slot_take(ring, generation, worker, missed);
    }

    if (*missed) {
        sluice_ring_count(ring, SLUICE_RING_C_OVERRUNS, 1);
        sluice_ring_count(ring, SLUICE_RING_C_MISSED, *missed);
    }

    sluice_ring_wake_sleepers(ring);
    sluice_ring_wake_waiting(ring);

    return rc;
}


static int
sluice_ring_slot_take(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker, uint64_t *missed)
{
    uint32_t  i;

    if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    for (i = 0; i < ring->count; i++) {
        if (sluice_ring_slot_free(ring, i)) {
            sluice_ring_slot_start(ring, i, generation, worker, missed);
            break;
        }
    }

    sluice_ring_unlock(ring);

    return i < ring->count ? SLUICE_OK : SLUICE_NOSLOT;
}


/* If so, its life is this process's from here on. */

static int
sluice_ring_slot_free(sluice_ring_t *ring, uint32_t i)
{
    int                  rc;
    sluice_ring_slot_t  *slot;

    slot = &ring->slots[i];

    if (atomic_load_explicit(&slot->state, memory_order_relaxed)
        != SLUICE_RING_FREE)
    {
        return 0;
    }

    rc = pthread_mutex_trylock(&slot->alive);

    if (rc == EOWNERDEAD) {
        rc = pthread_mutex_consistent(&slot->alive);
    }

    return rc == 0;
}


static void
sluice_ring_slot_start(sluice_ring_t *ring, uint32_t index,
    uint32_t generation, uint16_t worker, uint64_t *missed)
{
    int                     i;
    uint64_t                seq, start;
    sluice_ring_slot_t     *slot;
    sluice_ring_control_t  *c;

    slot = &ring->slots[index];
    c = ring->control;

    start = atomic_load_explicit(&c->tail, memory_order_relaxed);
    seq = sluice_ring_tail_seq(ring, start);

    if (ring->marked) {
        *missed = ring->mark_missed;

        if (atomic_load_explicit(&c->gate, memory_order_relaxed) <= ring->mark)
        {
            start = ring->mark;
            seq = ring->mark_seq;

        } else {
            *missed += seq - ring->mark_seq;
        }
    }

    sluice_ring_gate_look(ring, generation, worker, &start, &seq, missed);
    sluice_ring_gate_enter(ring, generation, worker);

    for (i = 0; i < SLUICE_RING_COUNTERS; i++) {
        atomic_store_explicit(&slot->count[i], 0, memory_order_relaxed);
    }

    ring->epoch = atomic_fetch_add_explicit(&slot->epoch, 1,
                                            memory_order_relaxed) + 1;
    ring->own = slot;
    ring->index = index;
    ring->worker = worker;
    ring->claims = 0;

    /* continues where the one before stopped, so that no number comes twice */
    ring->ticket = atomic_load_explicit(&c->sleep[ring->index],
                                        memory_order_relaxed);

    ring->read = ring->used = ring->handed = start;
    ring->read_seq = ring->used_seq = seq;

    slot->stuck_at = UINT64_MAX;
    slot->stuck_since_ms = 0;

    atomic_store_explicit(&slot->pid, (uint32_t) getpid(),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&slot->worker, worker, memory_order_relaxed);
    atomic_store_explicit(&slot->seq, seq, memory_order_relaxed);
    atomic_store_explicit(&slot->cursor, start, memory_order_relaxed);
    atomic_store_explicit(&slot->state, SLUICE_RING_ATTACHED,
                          memory_order_release);

    if (ring->index >= atomic_load_explicit(&c->top, memory_order_relaxed)) {
        atomic_store_explicit(&c->top, ring->index + 1, memory_order_release);
    }
}


void
sluice_ring_detach(sluice_ring_t *ring)
{
    sluice_ring_slot_t  *slot;

    slot = ring->own;

    if (slot == NULL) {
        return;
    }

    if (ring->ticket & 1) {
        atomic_store_explicit(&ring->control->sleep[ring->index],
                              ring->ticket + 1, memory_order_relaxed);
    }

    /*
     * With callbacks under way that asked for it, this slot is left like one
     * whose process died: the next to reap it delivers their frames again.
     */

    if (ring->claims == 0) {
        atomic_store_explicit(&slot->state, SLUICE_RING_FREE,
                              memory_order_release);
    }

    (void) pthread_mutex_unlock(&slot->alive);

    ring->own = NULL;
    ring->index = SLUICE_RING_NOBODY;

    sluice_ring_wake_waiting(ring);
}


/* Frees the slots of the dead.  Called without the lock. */

void
sluice_ring_reap(sluice_ring_t *ring)
{
    int                     rc;
    uint32_t                i, state, top;
    uint64_t                cursor;
    sluice_ring_slot_t     *slot;
    sluice_ring_control_t  *c;

    c = ring->control;
    top = atomic_load_explicit(&c->top, memory_order_acquire);

    for (i = 0; i < top && i < ring->count; i++) {

        if (i == ring->index || !sluice_ring_exited(ring, i)) {
            continue;
        }

        slot = &ring->slots[i];

        /* the life of this slot is in this process's hands now */

        state = atomic_load_explicit(&slot->state, memory_order_relaxed);
        cursor = atomic_load_explicit(&slot->cursor, memory_order_relaxed);

        if (state != SLUICE_RING_ATTACHED) {
            cursor = UINT64_MAX;
        }

        rc = sluice_ring_entry_inherit(ring, i, cursor);

        if (rc == SLUICE_OK) {
            atomic_fetch_and(&c->sleep[i], ~1u);
            atomic_store_explicit(&slot->state, SLUICE_RING_FREE,
                                  memory_order_release);
        }

        (void) pthread_mutex_unlock(&slot->alive);
    }
}


static int
sluice_ring_exited(sluice_ring_t *ring, uint32_t i)
{
    int                  rc;
    sluice_ring_slot_t  *slot;

    slot = &ring->slots[i];

    if (atomic_load_explicit(&slot->state, memory_order_relaxed)
        == SLUICE_RING_FREE)
    {
        return 0;
    }

    rc = pthread_mutex_trylock(&slot->alive);

    if (rc == EOWNERDEAD) {
        rc = pthread_mutex_consistent(&slot->alive);
    }

    if (rc != 0) {
        return 0;
    }

    if (atomic_load_explicit(&slot->state, memory_order_relaxed)
        == SLUICE_RING_FREE)
    {
        /* detached or reaped by another meanwhile */
        (void) pthread_mutex_unlock(&slot->alive);
        return 0;
    }

    return 1;
}
