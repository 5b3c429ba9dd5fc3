
/*
 * Whose children an entity has: lists of slots by their owner, of which the
 * delta's go before the image's.
 */


#include "chain.h"
#include "hash.h"


/* Whose children, and of which kind. */

typedef struct {
    uint64_t  hash;
    uint32_t  child;
    uint32_t  kind;
    uint32_t  slot;
} core_owner_t;


static const sluice_core_children_t *core_children_now(
    const sluice_core_view_t *view, const core_owner_t *owner);
static const sluice_core_children_t *core_children_before(
    const sluice_core_view_t *view, const core_owner_t *owner);
static int core_is_owner(const sluice_core_children_t *children,
    const core_owner_t *owner);


const sluice_core_children_t *
sluice_core_find_children(const sluice_core_view_t *view, uint32_t child,
    uint32_t kind, uint32_t slot, sluice_core_space_t *space)
{
    core_owner_t                   owner;
    const sluice_core_children_t  *children;

    owner.child = child;
    owner.kind = kind;
    owner.slot = slot;
    owner.hash = sluice_core_hash_children(child, kind, slot);

    *space = view->delta;
    children = core_children_now(view, &owner);

    if (children == NULL) {
        *space = view->base;
        children = core_children_before(view, &owner);
    }

    return children;
}


/* In the delta. */

static const sluice_core_children_t *
core_children_now(const sluice_core_view_t *view, const core_owner_t *owner)
{
    uint32_t                       ref;
    sluice_core_chain_t            chain;
    const sluice_core_children_t  *children;

    if (view->delta.base == NULL) {
        return NULL;
    }

    sluice_core_chain(&chain, view, owner->hash, SLUICE_CORE_TO_CHILDREN);

    while ((ref = sluice_core_chain_next(&chain)) != 0) {
        children = sluice_core_at(&view->delta, ref);

        if (core_is_owner(children, owner)) {
            return children;
        }
    }

    return NULL;
}


/* In the image. */

static const sluice_core_children_t *
core_children_before(const sluice_core_view_t *view, const core_owner_t *owner)
{
    uint32_t                       ref;
    sluice_core_walk_t             walk;
    const sluice_core_children_t  *children;

    sluice_core_walk(&walk, &view->base, owner->hash, SLUICE_CORE_TO_CHILDREN);

    while ((ref = sluice_core_walk_next(&walk)) != 0) {
        children = sluice_core_at(&view->base, ref);

        if (core_is_owner(children, owner)) {
            return children;
        }
    }

    return NULL;
}


static int
core_is_owner(const sluice_core_children_t *children,
    const core_owner_t *owner)
{
    return children->child == owner->child && children->kind == owner->kind
           && children->slot == owner->slot;
}


uint32_t
sluice_core_children(const sluice_core_view_t *view, int child, int kind,
    uint32_t slot, const uint32_t **slots)
{
    sluice_core_space_t            space;
    const sluice_core_children_t  *children;

    children = sluice_core_find_children(view, (uint32_t) child,
                                         (uint32_t) kind, slot, &space);

    *slots = children ? children->slots : NULL;

    return children ? children->count : 0;
}


int
sluice_core_has_children(const sluice_core_view_t *view, int child,
    const sluice_core_found_t *found)
{
    core_owner_t                   owner;
    const sluice_core_children_t  *children;

    owner.child = (uint32_t) child;
    owner.kind = found->record->kind;
    owner.slot = found->record->slot;
    owner.hash = sluice_core_hash_children(owner.child, owner.kind,
                                           owner.slot);

    children = core_children_now(view, &owner);

    /*
     * A record of this image tells.  One of a delta does not know what the
     * image has, and one of an earlier view what was merged since.
     */

    if (children == NULL && (found->record->is_owner
                             || found->space.base != view->base.base))
    {
        children = core_children_before(view, &owner);
    }

    return children && children->count;
}
