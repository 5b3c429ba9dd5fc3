
/*
 * Bodies: the entities' own texts, which the core only keeps.
 */


#include "layout.h"


/* record: reference to the entity's */

int
sluice_core_put_body(sluice_core_arena_t *arena,
    const sluice_core_entity_t *entity, uint32_t record)
{
    void                  *p;
    uint32_t               ref;
    sluice_core_record_t  *of;

    if (entity->body == NULL || entity->body_length == 0 || entity->gone) {
        return SLUICE_CORE_OK;
    }

    if (entity->body_length > SLUICE_CORE_BODY_MAX) {
        return SLUICE_CORE_LARGE;
    }

    p = sluice_core_take(arena, entity->body_length, 8, &ref);
    if (p == NULL) {
        return SLUICE_CORE_FULL;
    }

    memcpy(p, entity->body, entity->body_length);

    of = (sluice_core_record_t *) (arena->base + (uint64_t) record * 8);
    of->body = ref;
    of->body_length = entity->body_length;

    return SLUICE_CORE_OK;
}
