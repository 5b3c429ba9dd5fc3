
/*
 * Which slots of a kind hold something: those of the image that the delta has
 * nothing newer of, and the delta's own.
 */


#include "chain.h"


typedef struct {
    const sluice_core_view_t  *view;
    uint32_t                  *slots;
    uint32_t                   max;
    uint32_t                   count;
    int                        kind;
} core_slots_t;


static void core_slots_base(core_slots_t *s);
static void core_slots_delta(core_slots_t *s);
static void core_slots_add(core_slots_t *s, uint32_t slot);


uint32_t
sluice_core_slots(const sluice_core_view_t *view, int kind, uint32_t *slots,
    uint32_t max)
{
    core_slots_t  s;

    if (kind < 0 || kind >= SLUICE_CORE_KINDS) {
        return 0;
    }

    s.view = view;
    s.slots = slots;
    s.max = max;
    s.count = 0;
    s.kind = kind;

    core_slots_base(&s);

    if (view->delta.base) {
        core_slots_delta(&s);
    }

    return s.count;
}


static void
core_slots_base(core_slots_t *s)
{
    uint32_t                    slot;
    sluice_core_found_t         found;
    const sluice_core_image_t  *image;

    image = sluice_core_header(&s->view->base);

    for (slot = 0; slot < image->slots[s->kind].count; slot++) {
        found = sluice_core_by_slot(s->view, s->kind, slot);

        if (found.record && found.space.base == s->view->base.base) {
            core_slots_add(s, slot);
        }
    }
}


static void
core_slots_delta(core_slots_t *s)
{
    uint32_t                    ref;
    uint64_t                    i, buckets;
    _Atomic uint32_t           *heads;
    sluice_core_found_t         found;
    const sluice_core_node_t   *node;
    const sluice_core_space_t  *space;

    space = &s->view->delta;
    heads = sluice_core_delta_heads(space);
    buckets = ((const sluice_core_delta_t *) space->base)->buckets;

    for (i = 0; i < buckets; i++) {
        ref = atomic_load_explicit(&heads[i], memory_order_acquire);

        for ( /* void */ ; ref; ref = sluice_core_chain_before(node, ref)) {
            node = sluice_core_at(space, ref);

            if (node->to != SLUICE_CORE_TO_SLOT) {
                continue;
            }

            found.space = *space;
            found.record = sluice_core_at(space, node->ref);

            if (found.record->kind == (uint32_t) s->kind
                && !found.record->gone
                && sluice_core_is_alive(s->view, &found))
            {
                core_slots_add(s, found.record->slot);
            }
        }
    }
}


static void
core_slots_add(core_slots_t *s, uint32_t slot)
{
    if (s->count < s->max) {
        s->slots[s->count] = slot;
    }

    s->count++;
}
