
/*
 * What both halves of the builder collect.
 */


#include "build.h"

#include <stdlib.h>


int
sluice_core_note_item(sluice_core_build_t *b, uint64_t hash, uint32_t ref,
    uint32_t to)
{
    sluice_core_pending_t  *item;

    item = sluice_core_push(&b->items);
    if (item == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    item->hash = hash;
    item->ref = ref;
    item->to = to;

    return SLUICE_CORE_OK;
}


void *
sluice_core_push(sluice_core_array_t *array)
{
    void   *data;
    size_t  room;

    if (array->count == array->room) {
        room = array->room ? array->room * 2 : 64;

        data = realloc(array->data, room * array->size);
        if (data == NULL) {
            return NULL;
        }

        array->data = data;
        array->room = room;
    }

    return (uint8_t *) array->data + array->count++ * array->size;
}
