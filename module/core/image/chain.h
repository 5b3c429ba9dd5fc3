
/*
 * A delta's nodes by their hash, the newest first, as one revision sees them.
 */


#ifndef SLUICE_CORE_CHAIN_H_INCLUDED
#define SLUICE_CORE_CHAIN_H_INCLUDED


#include "layout.h"


typedef struct {
    const sluice_core_space_t  *space;
    uint64_t                    hash;
    uint64_t                    revision;
    uint32_t                    to;
    uint32_t                    next;
} sluice_core_chain_t;

void sluice_core_chain(sluice_core_chain_t *chain,
    const sluice_core_view_t *view, uint64_t hash, uint32_t to);
uint32_t sluice_core_chain_next(sluice_core_chain_t *chain);
void sluice_core_chain_prefetch(const sluice_core_view_t *view, uint64_t hash);

/* What a node leads to.  A damaged one ends its chain, instead of a loop. */

#define sluice_core_chain_before(node, ref)                                   \
    ((node)->next < (ref) ? (node)->next : 0)

#define sluice_core_seen_bit(hash)  ((uint32_t) ((hash) >> 49))


static inline int
sluice_core_is_seen(const sluice_core_delta_t *delta, uint64_t hash)
{
    uint64_t           bits;
    _Atomic uint64_t  *seen;

    seen = (_Atomic uint64_t *) (uintptr_t) delta->seen;
    bits = atomic_load_explicit(&seen[sluice_core_seen_bit(hash) / 64],
                                memory_order_acquire);

    return bits >> sluice_core_seen_bit(hash) % 64 & 1;
}


#define sluice_core_delta_heads(space)                                        \
    ((_Atomic uint32_t *) (uintptr_t)                                         \
     ((space)->base + sizeof(sluice_core_delta_t)))


#endif /* SLUICE_CORE_CHAIN_H_INCLUDED */
