
/*
 * Look-ups in a delta: chains of nodes, the newest first.
 *
 * Most look-ups are of what has not changed.  The heads of all chains are too
 * many for a cache; a bit for each 15 bits of a hash is not.
 */


#include "chain.h"


static _Atomic uint32_t *core_head(const sluice_core_view_t *view,
    uint64_t hash);


void
sluice_core_chain(sluice_core_chain_t *chain, const sluice_core_view_t *view,
    uint64_t hash, uint32_t to)
{
    const sluice_core_delta_t  *delta;

    delta = (const sluice_core_delta_t *) view->delta.base;

    chain->space = &view->delta;
    chain->hash = hash;
    chain->revision = view->revision;
    chain->to = to;
    chain->next = 0;

    if (to == SLUICE_CORE_TO_RECORD || sluice_core_is_seen(delta, hash)) {
        chain->next = atomic_load_explicit(core_head(view, hash),
                                           memory_order_acquire);
    }
}


static _Atomic uint32_t *
core_head(const sluice_core_view_t *view, uint64_t hash)
{
    const sluice_core_delta_t  *delta;

    delta = (const sluice_core_delta_t *) view->delta.base;

    return &sluice_core_delta_heads(&view->delta)[hash
                                                  & (delta->buckets - 1)];
}


/* What that reads of the heads. */

void
sluice_core_chain_prefetch(const sluice_core_view_t *view, uint64_t hash)
{
    const sluice_core_delta_t  *delta;

    delta = (const sluice_core_delta_t *) view->delta.base;

    if (delta && sluice_core_is_seen(delta, hash)) {
        sluice_core_prefetch(core_head(view, hash));
    }
}


/* 0: none left that this revision can see. */

uint32_t
sluice_core_chain_next(sluice_core_chain_t *chain)
{
    const sluice_core_node_t  *node;

    while (chain->next) {
        node = sluice_core_at(chain->space, chain->next);
        chain->next = sluice_core_chain_before(node, chain->next);

        if (node->hash == chain->hash && node->to == chain->to
            && node->revision <= chain->revision)
        {
            return node->ref;
        }
    }

    return 0;
}
