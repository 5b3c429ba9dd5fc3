
/*
 * Space: whom a writer has to wait for, and for how long.
 */


#include "ring_layout.h"

#include <string.h>


static int sluice_ring_stuck(sluice_ring_t *ring, sluice_ring_slot_t *slot,
    uint64_t cursor);
static uint64_t sluice_ring_gates(sluice_ring_t *ring, uint64_t gate,
    uint64_t floor);
static int sluice_ring_gate_complete(const sluice_ring_gate_t *g);
static int sluice_ring_over(sluice_ring_t *ring, uint64_t since_ms,
    uint64_t now_ms);


/*
 * Called with the lock, when a frame would reach floor + size: looks again how
 * far everybody is, and detaches who has stood in the way for too long.
 */

int
sluice_ring_room(sluice_ring_t *ring, uint64_t tail, uint64_t floor)
{
    uint32_t                i, top;
    uint64_t                cursor, gate;
    sluice_ring_slot_t     *slot;
    sluice_ring_control_t  *c;

    gate = tail;
    c = ring->control;
    top = atomic_load_explicit(&c->top, memory_order_relaxed);

    for (i = 0; i < top && i < SLUICE_RING_SLOTS; i++) {
        slot = &ring->slots[i];

        if (atomic_load_explicit(&slot->state, memory_order_relaxed)
            != SLUICE_RING_ATTACHED)
        {
            continue;
        }

        cursor = atomic_load_explicit(&slot->cursor, memory_order_acquire);

        if (cursor < floor && sluice_ring_stuck(ring, slot, cursor)) {
            continue;
        }

        if (cursor < gate) {
            gate = cursor;
        }
    }

    gate = sluice_ring_gates(ring, gate, floor);

    atomic_store_explicit(&c->gate, gate, memory_order_relaxed);

    return gate >= floor;
}


static int
sluice_ring_stuck(sluice_ring_t *ring, sluice_ring_slot_t *slot,
    uint64_t cursor)
{
    uint64_t  now;

    now = ring->clock();

    if (slot->stuck_at != cursor) {
        slot->stuck_at = cursor;
        slot->stuck_since_ms = now;
        return 0;
    }

    if (!sluice_ring_over(ring, slot->stuck_since_ms, now)) {
        return 0;
    }

    atomic_store_explicit(&slot->state, SLUICE_RING_DETACHED,
                          memory_order_relaxed);

    /* the state is stored before anything is overwritten */
    atomic_thread_fence(memory_order_release);

    return 1;
}


/* Signed: another's reading of the clock may be a little ahead. */

static int
sluice_ring_over(sluice_ring_t *ring, uint64_t since_ms, uint64_t now_ms)
{
    uint32_t  stall;

    stall = atomic_load_explicit(&ring->control->stall_ms,
                                 memory_order_relaxed);

    return (int64_t) (now_ms - since_ms) >= (int64_t) stall;
}


static uint64_t
sluice_ring_gates(sluice_ring_t *ring, uint64_t gate, uint64_t floor)
{
    int                  i;
    uint32_t             born;
    uint64_t             now;
    sluice_ring_gate_t  *g;

    /* a gate of a higher number is that of a master that died making it */

    born = atomic_load_explicit(&ring->control->generation,
                                memory_order_relaxed);

    for (i = 0; i < SLUICE_RING_GATES; i++) {
        g = &ring->control->gates[i];

        if (!atomic_load_explicit(&g->open, memory_order_relaxed)
            || atomic_load_explicit(&g->number, memory_order_relaxed) > born)
        {
            continue;
        }

        if (sluice_ring_gate_complete(g)) {
            atomic_store_explicit(&g->open, 0, memory_order_relaxed);
            continue;
        }

        if (g->start < floor) {
            now = ring->clock();

            if (g->since_ms == 0) {
                g->since_ms = now;

            } else if (sluice_ring_over(ring, g->since_ms, now)) {
                atomic_store_explicit(&g->open, 0, memory_order_relaxed);
                continue;
            }
        }

        if (g->start < gate) {
            gate = g->start;
        }
    }

    return gate;
}


/* Every worker of the generation has attached; an agent is none. */

static int
sluice_ring_gate_complete(const sluice_ring_gate_t *g)
{
    uint32_t  i;

    for (i = 0; i < g->workers && i < SLUICE_RING_SLOTS; i++) {

        if (!(g->attached[i / 64] & (1ull << (i % 64)))) {
            return 0;
        }
    }

    return 1;
}


int
sluice_ring_generation(sluice_ring_t *ring, uint32_t workers,
    uint32_t *generation)
{
    int                     i;
    uint32_t                number;
    sluice_ring_gate_t     *g;
    sluice_ring_control_t  *c;

    c = ring->control;

    if (sluice_ring_lock(ring, SLUICE_RING_LONG_US) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    number = atomic_load_explicit(&c->generation, memory_order_relaxed) + 1;

    /* the oldest, or what is left of a master that died right here */

    g = &c->gates[0];

    for (i = 1; i < SLUICE_RING_GATES && g->number != number; i++) {
        if (c->gates[i].number < g->number || c->gates[i].number == number) {
            g = &c->gates[i];
        }
    }

    /* each store after the one before it, and only the last one counts */

    atomic_store_explicit(&g->number, 0, memory_order_release);
    atomic_store_explicit(&g->open, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);

    memset(g->attached, 0, sizeof(g->attached));
    g->start = atomic_load_explicit(&c->tail, memory_order_relaxed);
    g->start_seq = sluice_ring_tail_seq(ring, g->start);
    g->since_ms = 0;
    g->workers = workers;

    atomic_store_explicit(&g->number, number, memory_order_release);
    atomic_store_explicit(&g->open, 1, memory_order_release);
    atomic_store_explicit(&c->generation, number, memory_order_release);

    sluice_ring_unlock(ring);

    *generation = number;

    return SLUICE_OK;
}


sluice_ring_gate_t *
sluice_ring_gate_find(sluice_ring_t *ring, uint32_t generation)
{
    int                  i;
    sluice_ring_gate_t  *g;

    for (i = 0; i < SLUICE_RING_GATES; i++) {
        g = &ring->control->gates[i];

        if (generation && g->number == generation) {
            return g;
        }
    }

    return NULL;
}
