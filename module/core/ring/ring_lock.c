
/*
 * The writers' lock, and the repair of what its holder died over.
 */


#include "ring_layout.h"

#include <errno.h>
#include <sched.h>
#include <time.h>


static int sluice_ring_lock_wait(sluice_ring_t *ring, uint32_t patience_us);
static uint64_t sluice_ring_now_ns(void);
static void sluice_ring_entry_repair(sluice_ring_t *ring);


/*
 * The lock is held for the copy of one frame; a robust mutex hands it on with
 * EOWNERDEAD when its holder dies.
 */

int
sluice_ring_lock(sluice_ring_t *ring, uint32_t patience_us)
{
    int  rc;

    rc = pthread_mutex_trylock(&ring->control->mutex);

    if (rc == EBUSY) {
        rc = sluice_ring_lock_wait(ring, patience_us);
    }

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


/*
 * Never sleeps in the kernel: the holder may be stopped for as long as it
 * likes.  After the time of some publications it gives up the processor
 * between attempts, since the holder may be waiting for this very one.
 */

static int
sluice_ring_lock_wait(sluice_ring_t *ring, uint32_t patience_us)
{
    int       rc, i, spin;
    uint64_t  end;

    end = sluice_ring_now_ns() + patience_us * 1000ull;

    for (i = 0; /* bounded by time */; i++) {

        if (i < 32) {
            for (spin = 0; spin < 16; spin++) {
#if defined(__x86_64__)
                __builtin_ia32_pause();
#else
                atomic_signal_fence(memory_order_seq_cst);
#endif
            }

        } else {
            (void) sched_yield();
        }

        rc = pthread_mutex_trylock(&ring->control->mutex);

        if (rc != EBUSY || sluice_ring_now_ns() >= end) {
            return rc;
        }
    }
}


static uint64_t
sluice_ring_now_ns(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
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
