
/*
 * Seals of deltas (seal.h): a sum of the arena's words, which each transaction
 * carries on, and the number of nodes that chains have to lead to.
 */


#include "hash.h"
#include "seal.h"


#define CORE_TRIES  100


static uint64_t core_sum(uint64_t sum, const void *data, uint64_t from,
    uint64_t to);


/*
 * The tail ends on a whole word from here on, so that nothing is written any
 * more into what was summed.
 */

void
sluice_core_seal(sluice_core_writer_t *writer, uint64_t nodes)
{
    uint64_t              n, end;
    sluice_core_seal_t   *last, *next;
    sluice_core_delta_t  *delta;

    delta = (sluice_core_delta_t *) (uintptr_t) writer->space.base;

    n = atomic_load_explicit(&delta->sealed, memory_order_relaxed);
    last = &delta->seals[n % SLUICE_CORE_SEALS];
    next = &delta->seals[(n + 1) % SLUICE_CORE_SEALS];

    end = sluice_core_align(writer->tail, 8);
    memset((uint8_t *) delta + writer->tail, 0, end - writer->tail);
    writer->tail = end;

    atomic_store_explicit(&next->nodes, last->nodes + nodes,
                          memory_order_release);
    /* from where the writer knows: what stands in the file may be damaged */

    atomic_store_explicit(&next->sum, core_sum(last->sum, delta,
                                               writer->linked, end),
                          memory_order_release);
    atomic_store_explicit(&next->used, end, memory_order_release);

    atomic_store_explicit(&delta->sealed, n + 1, memory_order_release);
}


int
sluice_core_sealed(const sluice_core_delta_t *delta,
    sluice_core_sealed_t *sealed)
{
    unsigned              i;
    uint64_t              n, again;
    sluice_core_seal_t   *seal;
    sluice_core_delta_t  *shared;

    shared = (sluice_core_delta_t *) (uintptr_t) delta;

    for (i = 0; i < CORE_TRIES; i++) {
        n = atomic_load_explicit(&shared->sealed, memory_order_acquire);
        seal = &shared->seals[n % SLUICE_CORE_SEALS];

        sealed->used = atomic_load_explicit(&seal->used, memory_order_acquire);
        sealed->nodes = atomic_load_explicit(&seal->nodes,
                                             memory_order_acquire);
        sealed->sum = atomic_load_explicit(&seal->sum, memory_order_acquire);

        again = atomic_load_explicit(&shared->sealed, memory_order_relaxed);

        /* it is written again for n + 4, behind n + 3 */

        if (again - n < SLUICE_CORE_SEALS - 1) {
            return sealed->used >= delta->arena && sealed->used <= delta->size
                   && sealed->used % 8 == 0;
        }
    }

    return 0;
}


int
sluice_core_delta_holds(const sluice_core_space_t *space,
    const sluice_core_identity_t *identity, uint64_t linked)
{
    sluice_core_sealed_t        sealed;
    const sluice_core_delta_t  *delta;

    delta = (const sluice_core_delta_t *) space->base;

    return delta->since == identity->revision
           && memcmp(delta->store, identity->store, sizeof(delta->store)) == 0
           && sluice_core_sealed(delta, &sealed)
           && sealed.used >= linked;
}


uint64_t
sluice_core_arena_sum(const sluice_core_delta_t *delta, uint64_t used)
{
    return core_sum(0, delta, delta->arena, used);
}


static uint64_t
core_sum(uint64_t sum, const void *data, uint64_t from, uint64_t to)
{
    uint64_t        word;
    const uint8_t  *p, *end;

    end = (const uint8_t *) data + to;

    for (p = (const uint8_t *) data + from; p != end; p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        sum = sluice_core_fold(sum ^ word, SLUICE_CORE_K3);
    }

    return sum;
}
