
/*
 * The writers' lock, and the repair of what its holder died over.
 */


#include "ring_layout.h"
#include "ring_mutex.h"

#include <errno.h>


static void sluice_ring_entry_repair(sluice_ring_t *ring);


/*
 * The lock is held for the copy of one frame; a robust mutex hands it on with
 * EOWNERDEAD when its holder dies.
 */

int
sluice_ring_lock(sluice_ring_t *ring, uint32_t patience_us)
{
    int  rc;

    rc = sluice_ring_mutex_try(&ring->control->mutex, patience_us);

    if (rc == EOWNERDEAD) {
        sluice_ring_entry_repair(ring);
        rc = pthread_mutex_consistent(&ring->control->mutex);
    }

    return rc == 0 ? SLUICE_OK : SLUICE_BUSY;
}


void
sluice_ring_unlock(sluice_ring_t *ring)
{
    (void) pthread_mutex_unlock(&ring->control->mutex);
}


/* Called with the lock of a publisher that died. */

static void
sluice_ring_entry_repair(sluice_ring_t *ring)
{
    uint64_t                note, seq, tail;
    sluice_ring_entry_t    *e;
    sluice_ring_control_t  *c;

    c = ring->control;
    note = atomic_load_explicit(&c->note, memory_order_relaxed);

    if (note == 0 || note > (ring->buckets + 1) * SLUICE_RING_BUCKET) {
        return;
    }

    e = &ring->entries[note - 1];
    tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
    seq = sluice_ring_tail_seq(ring, tail) + 1;

    if (atomic_load_explicit(&e->claim, memory_order_relaxed) >> 16
        == sluice_ring_tag(seq) >> 16)
    {
        /* claim last: until it is gone this runs again */
        atomic_store_explicit(&e->hash, 0, memory_order_release);
        atomic_store_explicit(&e->expiry_ms, 0, memory_order_release);
        atomic_store_explicit(&e->claim, 0, memory_order_release);
    }
}
