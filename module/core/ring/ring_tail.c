
/*
 * The tail and the seq of the last frame, as they were published.
 */


#include "ring_layout.h"


/*
 * The seq of the last frame below tail, if that is the log's tail: of the two
 * records one is valid and the other being written.
 */

uint64_t
sluice_ring_tail_seq(const sluice_ring_t *ring, uint64_t tail)
{
    int                     i;
    sluice_ring_control_t  *c;

    c = ring->control;
    i = (atomic_load_explicit(&c->commit[0].tail, memory_order_relaxed)
         != tail);

    return atomic_load_explicit(&c->commit[i].seq, memory_order_relaxed);
}


/*
 * Both without the lock: they belong together if the tail is the same after.
 * 0: it was another each time.
 */

int
sluice_ring_tail_now(const sluice_ring_t *ring, uint64_t *tail, uint64_t *seq)
{
    int                     turn;
    sluice_ring_control_t  *c;

    c = ring->control;

    for (turn = 0; turn < 100; turn++) {
        *tail = atomic_load(&c->tail);
        *seq = sluice_ring_tail_seq(ring, *tail);
        atomic_thread_fence(memory_order_acquire);

        if (*tail == atomic_load(&c->tail)) {
            return 1;
        }
    }

    return 0;
}
