
/*
 * Waking: readers that sleep, publishers that wait for space.
 */


#include "ring_layout.h"

#include <errno.h>
#include <unistd.h>


static void sluice_ring_wake(sluice_ring_t *ring, uint32_t i);
static int sluice_ring_behind(sluice_ring_t *ring, uint32_t i);


_Atomic uint64_t *
sluice_ring_alarm(sluice_ring_t *ring)
{
    return &ring->control->alarm;
}


/* Asks for a wake-up when there is space again. */

void
sluice_ring_wait(sluice_ring_t *ring)
{
    if (ring->own) {
        atomic_fetch_or(&ring->control->waiting[ring->index / 64],
                        1ull << (ring->index % 64));
    }
}


void
sluice_ring_wake_waiting(sluice_ring_t *ring)
{
    int                i;
    uint64_t           bits;
    _Atomic uint64_t  *word;

    for (i = 0; i < SLUICE_RING_SLOTS / 64; i++) {
        word = &ring->control->waiting[i];

        if (atomic_load_explicit(word, memory_order_relaxed) == 0) {
            continue;
        }

        /*
         * A death right here loses these wakes: hence the timer that a
         * publisher with a queue must have anyway.
         */

        for (bits = atomic_exchange(word, 0); bits; bits &= bits - 1) {
            sluice_ring_wake(ring,
                             (uint32_t) (i * 64 + __builtin_ctzll(bits)));
        }
    }
}


/*
 * Wakes all who sleep and have something to read; see "Sleep" in ring.h: the
 * wake first, then the word.  After a publication that is everybody asleep;
 * otherwise only those whose wake was lost with the one who owed it to them.
 */

void
sluice_ring_wake_sleepers(sluice_ring_t *ring)
{
    uint32_t                i, top, word;
    sluice_ring_control_t  *c;

    c = ring->control;
    top = atomic_load_explicit(&c->top, memory_order_relaxed);

    for (i = 0; i < top && i < ring->count; i++) {
        word = atomic_load(&c->sleep[i]);

        if ((word & 1) && sluice_ring_behind(ring, i)) {
            sluice_ring_wake(ring, i);
            (void) atomic_compare_exchange_strong(&c->sleep[i], &word,
                                                  word + 1);
        }
    }
}


static int
sluice_ring_behind(sluice_ring_t *ring, uint32_t i)
{
    return atomic_load_explicit(&ring->slots[i].cursor, memory_order_relaxed)
           != atomic_load(&ring->control->tail);
}


static void
sluice_ring_wake(sluice_ring_t *ring, uint32_t i)
{
    if (ring->wake) {
        sluice_ring_count(ring, SLUICE_RING_C_WAKES, 1);
        ring->wake(ring->wake_data, i);
    }
}


void
sluice_ring_wake_fds(void *data, uint32_t slot)
{
    int       fd;
    ssize_t   n;
    uint64_t  one;

    one = 1;
    fd = ((int *) data)[slot];

    if (fd < 0) {
        return;
    }

    /* EAGAIN: it has been woken 2^64 times and not looked, so it will */

    do {
        n = write(fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}
