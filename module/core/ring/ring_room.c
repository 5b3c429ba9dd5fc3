
/*
 * Space: whom a writer has to wait for, and for how long.
 */


#include "ring_layout.h"

#include <string.h>


static int sluice_ring_stuck(sluice_ring_t *ring, sluice_ring_slot_t *slot,
    uint64_t cursor);
static uint64_t sluice_ring_gates(sluice_ring_t *ring, uint64_t gate,
    uint64_t floor);
static sluice_ring_gate_t *sluice_ring_gate_of(sluice_ring_t *ring,
    uint32_t generation, uint16_t worker);
static void sluice_ring_gate_note(sluice_ring_gate_t *g, uint32_t number);
static int sluice_ring_gate_complete(const sluice_ring_gate_t *g);
static void sluice_ring_gate_close(sluice_ring_gate_t *g, uint32_t number);
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

    for (i = 0; i < top && i < ring->count; i++) {
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

    if (floor && gate > floor + ring->size / SLUICE_RING_STEPS) {
        /* marks lie there, and cost nothing until the space is needed */
        gate = floor + ring->size / SLUICE_RING_STEPS;
    }

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


/*
 * A master opens gates without the lock.  Who does not see one yet may let the
 * space behind its start be written over: such a gate keeps nothing any more,
 * and the worker that enters learns how much it missed.
 */

static uint64_t
sluice_ring_gates(sluice_ring_t *ring, uint64_t gate, uint64_t floor)
{
    int                  i;
    uint32_t             number;
    uint64_t             kept, now, start;
    sluice_ring_gate_t  *g;

    kept = atomic_load_explicit(&ring->control->gate, memory_order_relaxed);

    for (i = 0; i < SLUICE_RING_GATES; i++) {
        g = &ring->control->gates[i];

        number = atomic_load_explicit(&g->open, memory_order_acquire);

        if (number == 0) {
            continue;
        }

        sluice_ring_gate_note(g, number);
        start = atomic_load_explicit(&g->start, memory_order_relaxed);

        if (start < kept || sluice_ring_gate_complete(g)) {
            sluice_ring_gate_close(g, number);
            continue;
        }

        if (start < floor) {
            now = ring->clock();

            if (g->since_ms == 0) {
                g->since_ms = now;

            } else if (sluice_ring_over(ring, g->since_ms, now)) {
                sluice_ring_gate_close(g, number);
                continue;
            }
        }

        if (start < gate) {
            gate = start;
        }
    }

    return gate;
}


/* What is noted of a generation begins with the first to look at it. */

static void
sluice_ring_gate_note(sluice_ring_gate_t *g, uint32_t number)
{
    if (g->noted == number) {
        return;
    }

    memset(g->attached, 0, sizeof(g->attached));
    g->since_ms = 0;

    /* last: who dies before has noted nothing */
    atomic_signal_fence(memory_order_seq_cst);
    g->noted = number;
}


/* Every worker of the generation has attached; an agent is none. */

static int
sluice_ring_gate_complete(const sluice_ring_gate_t *g)
{
    uint32_t  i, workers;

    workers = atomic_load_explicit(&g->workers, memory_order_relaxed);

    for (i = 0; i < workers && i < SLUICE_RING_SLOTS; i++) {

        if (!(g->attached[i / 64] & (1ull << (i % 64)))) {
            return 0;
        }
    }

    return 1;
}


/* Unless the master has just put a younger generation in its place. */

static void
sluice_ring_gate_close(sluice_ring_gate_t *g, uint32_t number)
{
    (void) atomic_compare_exchange_strong(&g->open, &number, 0);
}


/*
 * The master calls this, and may be root: it takes no lock and follows nothing
 * that it reads here, since workers can write whatever they like.
 */

int
sluice_ring_generation(sluice_ring_t *ring, uint32_t workers,
    uint32_t *generation)
{
    uint32_t                number;
    uint64_t                start, seq;
    sluice_ring_gate_t     *g;
    sluice_ring_control_t  *c;

    c = ring->control;

    /* another master's is another one, so neither writes the other's gate */

    number = atomic_fetch_add(&c->generation, 1) + 1;
    *generation = number;

    ring->marked = 0;

    if (!sluice_ring_tail_now(ring, &start, &seq)) {
        return SLUICE_BUSY;
    }

    g = &c->gates[number % SLUICE_RING_GATES];

    atomic_store_explicit(&g->number, 0, memory_order_relaxed);
    atomic_store_explicit(&g->open, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);

    atomic_store_explicit(&g->start, start, memory_order_relaxed);
    atomic_store_explicit(&g->start_seq, seq, memory_order_relaxed);
    atomic_store_explicit(&g->workers, workers, memory_order_relaxed);

    atomic_store_explicit(&g->number, number, memory_order_release);
    atomic_store(&g->open, number);

    return SLUICE_OK;
}


/*
 * With the lock: where the first one to come for a worker id of a generation
 * begins, which is where that began, if nothing behind it can have been
 * written over.  For others, nothing.
 */

void
sluice_ring_gate_look(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker, uint64_t *start, uint64_t *seq, uint64_t *missed)
{
    uint32_t                open;
    uint64_t                first, first_seq;
    sluice_ring_gate_t     *g;
    sluice_ring_control_t  *c;

    c = ring->control;
    g = sluice_ring_gate_of(ring, generation, worker);

    if (g == NULL || (g->attached[worker / 64] & (1ull << (worker % 64)))) {
        return;
    }

    first = atomic_load_explicit(&g->start, memory_order_relaxed);
    first_seq = atomic_load_explicit(&g->start_seq, memory_order_relaxed);
    open = atomic_load_explicit(&g->open, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);

    if (atomic_load_explicit(&g->number, memory_order_relaxed) != generation) {
        return;
    }

    if (open == generation
        && atomic_load_explicit(&c->gate, memory_order_relaxed) <= first)
    {
        *start = first;
        *seq = first_seq;

    } else {
        *missed = *seq - first_seq;
    }
}


/* With the lock: one has come, and the log is not kept for it any more. */

void
sluice_ring_gate_enter(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker)
{
    sluice_ring_gate_t  *g;

    g = sluice_ring_gate_of(ring, generation, worker);

    if (g) {
        g->attached[worker / 64] |= 1ull << (worker % 64);
    }
}


/* NULL: a younger generation has its place. */

static sluice_ring_gate_t *
sluice_ring_gate_of(sluice_ring_t *ring, uint32_t generation, uint16_t worker)
{
    sluice_ring_gate_t  *g;

    g = &ring->control->gates[generation % SLUICE_RING_GATES];

    if (generation == 0 || worker >= SLUICE_RING_SLOTS
        || atomic_load_explicit(&g->number, memory_order_acquire)
           != generation)
    {
        return NULL;
    }

    sluice_ring_gate_note(g, generation);

    return g;
}
