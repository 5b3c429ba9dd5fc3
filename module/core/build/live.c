
/*
 * What a view sees, as entities: with the builder this is the merge of an
 * image and its delta.
 */


#include "chain.h"
#include "delta.h"

#include <stdlib.h>


typedef struct {
    const sluice_core_view_t     *view;
    const sluice_core_entity_t  **changes;     /* sorted */
    size_t                        changes_count;
    sluice_core_live_t           *live;
    size_t                        room;
    sluice_core_scratch_t        *scratch;
} core_live_t;


static int core_live_base(core_live_t *l);
static int core_live_delta(core_live_t *l);
static int core_add(core_live_t *l, const sluice_core_found_t *found);
static sluice_core_entity_t *core_push(core_live_t *l);
static int core_by_slot(const void *a, const void *b);


#define core_compare(a, b)  (((a) > (b)) - ((a) < (b)))


int
sluice_core_live(const sluice_core_view_t *view,
    const sluice_core_entity_t *changes, size_t count,
    sluice_core_live_t *live)
{
    int                    rc;
    size_t                 i;
    core_live_t            l;
    sluice_core_entity_t  *entity;

    memset(live, 0, sizeof(sluice_core_live_t));
    memset(&l, 0, sizeof(l));
    l.view = view;
    l.live = live;
    l.changes_count = count;

    if (sluice_core_has_repeats(changes, count, &rc)) {
        return rc;
    }

    l.changes = malloc((count + 1) * sizeof(sluice_core_entity_t *));
    if (l.changes == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < count; i++) {
        l.changes[i] = &changes[i];
    }

    qsort(l.changes, count, sizeof(sluice_core_entity_t *), core_by_slot);

    rc = core_live_base(&l);

    if (rc == SLUICE_CORE_OK && view->delta.base) {
        rc = core_live_delta(&l);
    }

    for (i = 0; i < count && rc == SLUICE_CORE_OK; i++) {

        if (changes[i].gone) {
            continue;
        }

        entity = core_push(&l);

        if (entity == NULL) {
            rc = SLUICE_CORE_MEMORY;
            break;
        }

        *entity = changes[i];
    }

    free(l.changes);
    live->scratch = l.scratch;

    if (rc != SLUICE_CORE_OK) {
        sluice_core_live_free(live);
    }

    return rc;
}


void
sluice_core_live_free(sluice_core_live_t *live)
{
    sluice_core_scratch_free(live->scratch);
    free(live->entities);
    memset(live, 0, sizeof(sluice_core_live_t));
}


static int
core_live_base(core_live_t *l)
{
    int                         rc, kind;
    uint32_t                    slot;
    sluice_core_found_t         found;
    const sluice_core_image_t  *image;

    image = sluice_core_header(&l->view->base);

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < image->slots[kind].count; slot++) {
            found = sluice_core_by_slot(l->view, kind, slot);

            if (found.record == NULL
                || found.space.base != l->view->base.base)
            {
                continue;
            }

            rc = core_add(l, &found);
            if (rc != SLUICE_CORE_OK) {
                return rc;
            }
        }
    }

    return SLUICE_CORE_OK;
}


/* Each chain: the records of slots that are still what their slot holds. */

static int
core_live_delta(core_live_t *l)
{
    int                          rc;
    uint32_t                     ref;
    uint64_t                     i, buckets;
    _Atomic uint32_t            *heads;
    sluice_core_found_t          found;
    const sluice_core_node_t    *node;
    const sluice_core_space_t   *space;

    space = &l->view->delta;
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

            if (found.record->gone
                || !sluice_core_is_alive(l->view, &found))
            {
                continue;
            }

            rc = core_add(l, &found);
            if (rc != SLUICE_CORE_OK) {
                return rc;
            }
        }
    }

    return SLUICE_CORE_OK;
}


static int
core_add(core_live_t *l, const sluice_core_found_t *found)
{
    sluice_core_entity_t         key, *entity;
    const sluice_core_entity_t  *wanted;

    key.kind = found->record->kind;
    key.slot = found->record->slot;
    wanted = &key;

    if (l->changes_count
        && bsearch(&wanted, l->changes, l->changes_count,
                   sizeof(sluice_core_entity_t *), core_by_slot) != NULL)
    {
        return SLUICE_CORE_OK;
    }

    entity = core_push(l);
    if (entity == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    return sluice_core_decode(found, entity, &l->scratch);
}


static sluice_core_entity_t *
core_push(core_live_t *l)
{
    size_t                 room;
    sluice_core_entity_t  *entities;

    if (l->live->count == l->room) {
        room = l->room ? 2 * l->room : 64;

        entities = realloc(l->live->entities,
                           room * sizeof(sluice_core_entity_t));
        if (entities == NULL) {
            return NULL;
        }

        l->live->entities = entities;
        l->room = room;
    }

    return &l->live->entities[l->live->count++];
}


/* Two changes of one entity?  Or no memory to find out. */

int
sluice_core_has_repeats(const sluice_core_entity_t *changes, size_t count,
    int *rc)
{
    size_t                        i;
    const sluice_core_entity_t  **sorted;

    if (count < 2) {
        return 0;
    }

    sorted = malloc(count * sizeof(sluice_core_entity_t *));
    if (sorted == NULL) {
        *rc = SLUICE_CORE_MEMORY;
        return 1;
    }

    for (i = 0; i < count; i++) {
        sorted[i] = &changes[i];
    }

    qsort(sorted, count, sizeof(sluice_core_entity_t *), core_by_slot);

    for (i = 1; i < count && core_by_slot(&sorted[i - 1], &sorted[i]); i++) {
        /* void */
    }

    free(sorted);
    *rc = SLUICE_CORE_REPEAT;

    return i < count;
}


static int
core_by_slot(const void *a, const void *b)
{
    const sluice_core_entity_t  *ea, *eb;

    ea = *(const sluice_core_entity_t *const *) a;
    eb = *(const sluice_core_entity_t *const *) b;

    return ea->kind != eb->kind ? core_compare(ea->kind, eb->kind)
                                : core_compare(ea->slot, eb->slot);
}
