
/*
 * Look-ups in an image and the delta on it.
 */


#include "chain.h"
#include "hash.h"
#include "delta.h"


/* What is looked for: an id, or a key. */

typedef struct {
    int          kind;
    uint32_t     length;
    const void  *data;
    uint8_t      by_id;
    uint8_t      has_of;
    uint32_t     of;             /* the number that it has to have */
} core_wanted_t;


static uint64_t core_hash_slot(uint32_t kind, uint32_t slot);
static uint32_t core_newest(const sluice_core_view_t *view, uint32_t kind,
    uint32_t slot);
static sluice_core_found_t core_find(const sluice_core_view_t *view,
    uint64_t hash, const core_wanted_t *wanted);
static int core_is_it(const sluice_core_found_t *found,
    const core_wanted_t *wanted);
static int core_has_key(const sluice_core_found_t *found,
    const core_wanted_t *wanted);


static const sluice_core_found_t  nothing;


/* In an image: the items of up to eight lines with this tag. */

void
sluice_core_walk(sluice_core_walk_t *walk, const sluice_core_space_t *space,
    uint64_t hash, uint32_t to)
{
    const sluice_core_section_t  *lines;

    lines = &sluice_core_header(space)->lines[sluice_core_table(to)];

    walk->lines = (const sluice_core_line_t *) (space->base + lines->offset);
    walk->count = lines->count;
    walk->line = (hash >> 32) * walk->count >> 32;
    walk->tag = ((uint32_t) hash & ~SLUICE_CORE_TO_MASK) | to;
    walk->probe = 0;
    walk->item = 0;
}


uint32_t
sluice_core_walk_next(sluice_core_walk_t *walk)
{
    const sluice_core_item_t  *item;

    for ( ;; ) {

        if (walk->item == SLUICE_CORE_ITEMS) {

            if (++walk->probe == SLUICE_CORE_PROBES) {
                break;
            }

            walk->item = 0;
            walk->line = (walk->line + 1 == walk->count) ? 0 : walk->line + 1;
        }

        item = &walk->lines[walk->line].items[walk->item++];

        if (item->ref == 0) {
            break;
        }

        if (item->tag == walk->tag) {
            return item->ref;
        }
    }

    /* and no further, should it be asked again */

    walk->item = SLUICE_CORE_ITEMS;
    walk->probe = SLUICE_CORE_PROBES - 1;

    return 0;
}


static uint64_t
core_hash_slot(uint32_t kind, uint32_t slot)
{
    uint32_t  key[2];

    key[0] = kind;
    key[1] = slot;

    return sluice_core_hash(SLUICE_CORE_HASH_SLOT, key, sizeof(key));
}


/* The delta's record of a slot: its reference, 0 if it has none. */

static uint32_t
core_newest(const sluice_core_view_t *view, uint32_t kind, uint32_t slot)
{
    uint32_t                     ref;
    sluice_core_chain_t          chain;
    const sluice_core_record_t  *record;

    if (view->delta.base == NULL) {
        return 0;
    }

    sluice_core_chain(&chain, view, core_hash_slot(kind, slot),
                      SLUICE_CORE_TO_SLOT);

    while ((ref = sluice_core_chain_next(&chain)) != 0) {
        record = sluice_core_at(&view->delta, ref);

        if (record->kind == kind && record->slot == slot) {
            return ref;
        }
    }

    return 0;
}


/* Is this record what its slot holds? */

int
sluice_core_is_alive(const sluice_core_view_t *view,
    const sluice_core_found_t *found)
{
    uint32_t  ref;

    if (view->delta.base == NULL) {
        return 1;
    }

    ref = core_newest(view, found->record->kind, found->record->slot);

    if (found->space.base != view->delta.base) {
        return ref == 0;
    }

    return ref != 0 && found->record == sluice_core_at(&view->delta, ref);
}


sluice_core_found_t
sluice_core_by_slot(const sluice_core_view_t *view, int kind, uint32_t slot)
{
    uint32_t                    ref;
    const uint32_t             *slots;
    sluice_core_found_t         found;
    const sluice_core_image_t  *image;

    if (kind < 0 || kind >= SLUICE_CORE_KINDS) {
        return nothing;
    }

    ref = core_newest(view, (uint32_t) kind, slot);

    if (ref) {
        found.space = view->delta;
        found.record = sluice_core_at(&found.space, ref);

        return found.record->gone ? nothing : found;
    }

    image = sluice_core_header(&view->base);

    if (slot >= image->slots[kind].count) {
        return nothing;
    }

    slots = (const uint32_t *) (view->base.base + image->slots[kind].offset);

    if (slots[slot] == 0) {
        return nothing;
    }

    found.space = view->base;
    found.record = sluice_core_at(&found.space, slots[slot]);

    return found;
}


sluice_core_found_t
sluice_core_by_id(const sluice_core_view_t *view, int kind, const uint8_t *id)
{
    core_wanted_t  wanted = { kind, 16, id, 1, 0, 0 };

    return core_find(view, sluice_core_hash(SLUICE_CORE_HASH_ID
                                            + (uint64_t) kind, id, 16),
                     &wanted);
}


sluice_core_found_t
sluice_core_of_kind(const sluice_core_view_t *view, int kind, uint32_t of,
    const uint8_t *id)
{
    core_wanted_t  wanted = { kind, 16, id, 1, 1, of };

    if (kind != SLUICE_CORE_CREDENTIAL && kind != SLUICE_CORE_ENTITY) {
        return nothing;
    }

    return core_find(view, sluice_core_hash(SLUICE_CORE_HASH_ID
                                            + (uint64_t) kind, id, 16),
                     &wanted);
}


sluice_core_found_t
sluice_core_by_key(const sluice_core_view_t *view, int kind, const void *data,
    uint32_t length)
{
    core_wanted_t  wanted = { kind, length, data, 0, 0, 0 };

    return core_find(view, sluice_core_hash(SLUICE_CORE_HASH_KEY
                                            + (uint64_t) kind, data, length),
                     &wanted);
}


static sluice_core_found_t
core_find(const sluice_core_view_t *view, uint64_t hash,
    const core_wanted_t *wanted)
{
    uint32_t             ref;
    sluice_core_walk_t   walk;
    sluice_core_chain_t  chain;
    sluice_core_found_t  found;

    if (wanted->kind < 0 || wanted->kind >= SLUICE_CORE_KINDS) {
        return nothing;
    }

    if (view->delta.base) {
        found.space = view->delta;
        sluice_core_chain(&chain, view, hash, SLUICE_CORE_TO_RECORD);

        while ((ref = sluice_core_chain_next(&chain)) != 0) {
            found.record = sluice_core_at(&found.space, ref);

            if (core_is_it(&found, wanted)
                && sluice_core_is_alive(view, &found))
            {
                return found;
            }
        }
    }

    found.space = view->base;
    sluice_core_walk(&walk, &view->base, hash, SLUICE_CORE_TO_RECORD);

    while ((ref = sluice_core_walk_next(&walk)) != 0) {
        found.record = sluice_core_at(&found.space, ref);

        if (core_is_it(&found, wanted) && sluice_core_is_alive(view, &found)) {
            return found;
        }
    }

    return nothing;
}


static int
core_is_it(const sluice_core_found_t *found, const core_wanted_t *wanted)
{
    if (found->record->kind != wanted->kind || found->record->gone) {
        return 0;
    }

    if (!wanted->by_id) {
        return core_has_key(found, wanted);
    }

    return memcmp(found->record->id, wanted->data, 16) == 0
           && (!wanted->has_of
               || found->record->fields[SLUICE_CORE_CREDENTIAL_OF]
                  == wanted->of);
}


static int
core_has_key(const sluice_core_found_t *found, const core_wanted_t *wanted)
{
    int                 i;
    uint32_t            n;
    sluice_core_text_t  text;

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        for (n = 0; sluice_core_key(found, i, n, &text); n++) {

            if (text.length == wanted->length
                && memcmp(text.data, wanted->data, text.length) == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


int
sluice_core_key(const sluice_core_found_t *found, int field, uint32_t n,
    sluice_core_text_t *key)
{
    switch (sluice_core_schemas[found->record->kind].types[field]) {

    case SLUICE_CORE_KEY:

        if (n || found->record->fields[field] == 0) {
            return 0;
        }

        *key = sluice_core_text(found, field);

        return 1;

    case SLUICE_CORE_KEYS:

        if (n >= sluice_core_list(found, field)) {
            return 0;
        }

        *key = sluice_core_list_item(found, field, n);

        return key->data != NULL;

    default:
        return 0;
    }
}


uint32_t
sluice_core_needs(const sluice_core_view_t *view)
{
    uint32_t              needs;
    sluice_core_delta_t  *delta;

    needs = sluice_core_header(&view->base)->needs;

    if (view->delta.base) {
        delta = (sluice_core_delta_t *) (uintptr_t) view->delta.base;
        needs |= (uint32_t) atomic_load_explicit(&delta->needs,
                                                 memory_order_acquire);
    }

    return needs;
}


uint64_t
sluice_core_dependents(const sluice_core_view_t *view)
{
    sluice_core_delta_t  *delta;

    if (view->delta.base == NULL) {
        return 0;
    }

    delta = (sluice_core_delta_t *) (uintptr_t) view->delta.base;

    return atomic_load_explicit(&delta->dependents, memory_order_acquire);
}


void
sluice_core_identity(const sluice_core_space_t *space,
    sluice_core_identity_t *identity)
{
    const sluice_core_image_t  *image;

    image = sluice_core_header(space);

    memcpy(identity->store, image->store, sizeof(identity->store));
    identity->revision = image->revision;
}


uint32_t
sluice_core_number(const sluice_core_found_t *found, int field)
{
    return found->record->fields[field];
}


sluice_core_text_t
sluice_core_text_at(const sluice_core_space_t *space, uint32_t ref)
{
    sluice_core_text_t          text;
    const sluice_core_chars_t  *chars;

    text.data = NULL;
    text.length = 0;

    if (ref) {
        chars = sluice_core_chars(space, ref);
        text.data = chars->data;
        text.length = chars->length;
    }

    return text;
}


sluice_core_text_t
sluice_core_text(const sluice_core_found_t *found, int field)
{
    return sluice_core_text_at(&found->space, found->record->fields[field]);
}


uint32_t
sluice_core_list(const sluice_core_found_t *found, int field)
{
    uint32_t  ref;

    ref = found->record->fields[field];

    return ref ? sluice_core_refs(&found->space, ref)->count : 0;
}


sluice_core_text_t
sluice_core_list_item(const sluice_core_found_t *found, int field,
    uint32_t index)
{
    uint32_t  ref;

    ref = 0;

    if (index < sluice_core_list(found, field)) {
        ref = sluice_core_refs(&found->space,
                               found->record->fields[field])->items[index];
    }

    return sluice_core_text_at(&found->space, ref);
}


void
sluice_core_head(const sluice_core_found_t *found, sluice_core_entity_t *head)
{
    const sluice_core_record_t  *record;

    record = found->record;

    memcpy(head->id, record->id, sizeof(head->id));
    head->revision = record->revision;
    head->created_at = record->created_at;
    head->sequence = record->sequence;
    head->slot = record->slot;
    head->generation = record->generation;
    head->body = sluice_core_body(found).data;
    head->body_length = record->body_length;
    head->kind = record->kind;
    head->gone = record->gone;
}


sluice_core_text_t
sluice_core_body(const sluice_core_found_t *found)
{
    sluice_core_text_t  body;

    body.data = NULL;
    body.length = found->record->body_length;

    if (found->record->body) {
        body.data = sluice_core_at(&found->space, found->record->body);
    }

    return body;
}
