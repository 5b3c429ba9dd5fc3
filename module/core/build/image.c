
/*
 * The builder: entities to an image.  A pure function but for the scratch
 * memory that it takes and gives back.
 */


#include "build.h"
#include "hash.h"

#include <stdlib.h>


typedef struct {
    uint32_t  child;               /* kind */
    uint32_t  kind;
    uint32_t  slot;                /* of the owner */
    uint32_t  of;                  /* slot of the child */
} core_child_t;


static int core_build(sluice_core_build_t *b,
    const sluice_core_identity_t *identity,
    const sluice_core_entity_t **entities, size_t count);
static int core_build_records(sluice_core_build_t *b,
    const sluice_core_entity_t **entities, size_t count, uint32_t *refs);
static int core_build_bodies(sluice_core_build_t *b,
    sluice_core_image_t *image, const sluice_core_entity_t **entities,
    size_t count, const uint32_t *refs);
static int core_note_keys(sluice_core_build_t *b,
    const sluice_core_record_t *record, uint32_t ref);
static int core_draft(void *data, const sluice_core_entry_t *entry);
static int core_build_children(sluice_core_build_t *b);
static void core_mark_owners(sluice_core_build_t *b,
    const sluice_core_image_t *image);
static int core_by_kind(const void *a, const void *b);
static int core_by_owner(const void *a, const void *b);


uint64_t
sluice_core_image_bound(const sluice_core_entity_t *entities, size_t count)
{
    size_t    i;
    uint32_t  hosts, paths, last[SLUICE_CORE_KINDS];
    uint64_t  bound, j;

    memset(last, 0, sizeof(last));
    bound = sizeof(sluice_core_image_t) + 16 * SLUICE_CORE_LINE
            + (SLUICE_CORE_HOSTS + 2) * sizeof(sluice_core_length_t)
              * (SLUICE_CORE_KEY_MAX + 2);

    for (i = 0; i < count; i++) {
        bound += sluice_core_bound_entity(&entities[i]);

        /* items of its id and keys, and as a child */

        bound += 3 * 32 + sizeof(sluice_core_children_t);
        bound += sluice_core_align((uint64_t) entities[i].body_length, 8);

        if (entities[i].kind < SLUICE_CORE_KINDS
            && entities[i].slot < SLUICE_CORE_SLOTS_MAX
            && entities[i].slot >= last[entities[i].kind])
        {
            last[entities[i].kind] = entities[i].slot + 1;
        }

        if (entities[i].kind != SLUICE_CORE_ROUTE) {
            continue;
        }

        hosts = entities[i].fields[SLUICE_CORE_ROUTE_HOSTS].count;
        paths = entities[i].fields[SLUICE_CORE_ROUTE_PATHS].count;

        /* texts of hosts and heads of patterns once more */

        bound += sluice_core_bound_entity(&entities[i]) + 64;

        /* an entry or its room, its item, a room with one length, its item */

        j = (uint64_t) (hosts ? hosts : 1) * (paths ? paths : 1);
        bound += j * (2 * sizeof(sluice_core_entry_t) + 32 + 48 + 32);
    }

    for (i = 0; i < SLUICE_CORE_KINDS; i++) {
        bound += 4ull * last[i] + SLUICE_CORE_LINE;
    }

    return bound;
}


int
sluice_core_image_build(const sluice_core_identity_t *identity,
    const sluice_core_entity_t *entities, size_t count, void *buffer,
    uint64_t size, uint64_t *used)
{
    int                           rc;
    size_t                        i;
    sluice_core_build_t           b;
    const sluice_core_entity_t  **sorted;

    if ((uintptr_t) buffer % SLUICE_CORE_LINE) {
        return SLUICE_CORE_BAD;
    }

    sorted = malloc((count + 1) * sizeof(sluice_core_entity_t *));
    if (sorted == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < count; i++) {
        sorted[i] = &entities[i];
    }

    qsort(sorted, count, sizeof(sluice_core_entity_t *), core_by_kind);

    memset(&b, 0, sizeof(b));
    b.arena.base = buffer;
    b.arena.size = size;
    b.space.base = buffer;
    b.space.size = size;
    b.drafts.size = sizeof(sluice_core_draft_t);
    b.items.size = sizeof(sluice_core_pending_t);
    b.children.size = sizeof(core_child_t);

    rc = core_build(&b, identity, sorted, count);

    *used = b.arena.used;

    free(b.drafts.data);
    free(b.items.data);
    free(b.children.data);
    free(b.order);
    free(sorted);

    return rc;
}


static int
core_build(sluice_core_build_t *b, const sluice_core_identity_t *identity,
    const sluice_core_entity_t **entities, size_t count)
{
    int                   rc;
    uint32_t             *refs;
    sluice_core_image_t  *image;

    image = sluice_core_take(&b->arena, sizeof(sluice_core_image_t), 1, NULL);
    if (image == NULL) {
        return SLUICE_CORE_FULL;
    }

    refs = malloc((count + 1) * sizeof(uint32_t));
    if (refs == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = core_build_records(b, entities, count, refs);

    if (rc == SLUICE_CORE_OK) {
        rc = core_build_children(b);
    }

    image->arena_end = b->arena.used;

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_index_entries(b, image);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_index_rooms(b, image);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_index_lines(b, image);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_index_slots(b, image, entities, count, refs);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = core_build_bodies(b, image, entities, count, refs);
    }

    free(refs);

    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    core_mark_owners(b, image);

    image->magic = SLUICE_CORE_MAGIC;
    image->layout = SLUICE_CORE_LAYOUT;
    image->needs = b->needs;
    image->size = b->arena.used;
    memcpy(image->store, identity->store, sizeof(image->store));
    image->revision = identity->revision;
    image->checksum = sluice_core_checksum(b->arena.base, b->arena.used);

    return SLUICE_CORE_OK;
}


static int
core_build_records(sluice_core_build_t *b,
    const sluice_core_entity_t **entities, size_t count, uint32_t *refs)
{
    int                          rc;
    size_t                       i;
    const sluice_core_record_t  *record;

    for (i = 0; i < count; i++) {

        if (entities[i]->gone) {
            return SLUICE_CORE_BAD;
        }

        if (i && entities[i]->kind == entities[i - 1]->kind
            && entities[i]->slot == entities[i - 1]->slot)
        {
            return SLUICE_CORE_REPEAT;
        }

        rc = sluice_core_put_entity(&b->arena, entities[i], &refs[i]);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }

        record = sluice_core_at(&b->space, refs[i]);

        rc = core_note_keys(b, record, refs[i]);

        if (rc == SLUICE_CORE_OK && record->kind == SLUICE_CORE_ROUTE) {
            rc = sluice_core_entries(&b->arena, refs[i], &b->needs, core_draft,
                                     b);
        }

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


static int
core_build_bodies(sluice_core_build_t *b, sluice_core_image_t *image,
    const sluice_core_entity_t **entities, size_t count, const uint32_t *refs)
{
    int     rc;
    size_t  i;

    image->bodies.offset = sluice_core_align(b->arena.used, 8);

    for (i = 0; i < count; i++) {
        rc = sluice_core_put_body(&b->arena, entities[i], refs[i]);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    if (sluice_core_take(&b->arena, 0, 8, NULL) == NULL) {
        return SLUICE_CORE_FULL;
    }

    image->bodies.count = b->arena.used - image->bodies.offset;

    return SLUICE_CORE_OK;
}


static int
core_note_keys(sluice_core_build_t *b, const sluice_core_record_t *record,
    uint32_t ref)
{
    int                          i, rc;
    uint32_t                     n;
    core_child_t                *child;
    sluice_core_text_t           text;
    sluice_core_found_t          found;
    const sluice_core_schema_t  *schema;

    schema = &sluice_core_schemas[record->kind];

    if (schema->by_id) {
        rc = sluice_core_note_item(b, sluice_core_hash(SLUICE_CORE_HASH_ID
                                                + record->kind,
                                                record->id, 16),
                            ref, SLUICE_CORE_TO_RECORD);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    found.record = record;
    found.space = b->space;

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        for (n = 0; sluice_core_key(&found, i, n, &text); n++) {
            rc = sluice_core_note_item(b,
                                       sluice_core_hash(SLUICE_CORE_HASH_KEY
                                                        + record->kind,
                                                        text.data,
                                                        text.length),
                                       ref, SLUICE_CORE_TO_RECORD);
            if (rc != SLUICE_CORE_OK) {
                return rc;
            }
        }
    }

    i = sluice_core_owner(record);

    if (i == SLUICE_CORE_NO_OWNER) {
        return SLUICE_CORE_OK;
    }

    child = sluice_core_push(&b->children);
    if (child == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    child->child = record->kind;
    child->kind = i < 0 ? SLUICE_CORE_KINDS : schema->refers[i];
    child->slot = i < 0 ? 0 : record->fields[i];
    child->of = record->slot;

    return SLUICE_CORE_OK;
}


static int
core_draft(void *data, const sluice_core_entry_t *entry)
{
    sluice_core_build_t  *b = data;

    sluice_core_draft_t  *draft;

    draft = sluice_core_push(&b->drafts);
    if (draft == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    if (sluice_core_take(&b->arena, sizeof(sluice_core_entry_t), 8,
                         &draft->beside)
        == NULL)
    {
        return SLUICE_CORE_FULL;
    }

    draft->entry = *entry;
    draft->host = sluice_core_hash_host(&b->space, entry);

    draft->hash = sluice_core_hash_entry(&b->space, entry, draft->host);

    return SLUICE_CORE_OK;
}


static int
core_build_children(sluice_core_build_t *b)
{
    int                      rc;
    size_t                   i, j, n;
    uint32_t                 ref;
    core_child_t            *list;
    sluice_core_children_t  *children;

    list = b->children.data;
    n = b->children.count;

    if (n == 0) {
        return SLUICE_CORE_OK;
    }

    qsort(list, n, sizeof(core_child_t), core_by_owner);

    for (i = 0; i < n; i = j) {

        for (j = i + 1; j < n && list[j].child == list[i].child
                        && list[j].kind == list[i].kind
                        && list[j].slot == list[i].slot; j++) { /* void */ }

        children = sluice_core_take(&b->arena,
                                    offsetof(sluice_core_children_t, slots)
                                    + 4 * (j - i), 8, &ref);
        if (children == NULL) {
            return SLUICE_CORE_FULL;
        }

        children->child = list[i].child;
        children->kind = list[i].kind;
        children->slot = list[i].slot;

        while (children->count < j - i) {
            children->slots[children->count] = list[i + children->count].of;
            children->count++;
        }

        rc = sluice_core_note_item(b, sluice_core_hash_children(list[i].child,
                                                         list[i].kind,
                                                         list[i].slot),
                            ref, SLUICE_CORE_TO_CHILDREN);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


/* So that one without children costs no look-up of them. */

static void
core_mark_owners(sluice_core_build_t *b, const sluice_core_image_t *image)
{
    size_t                        i;
    const uint32_t               *slots;
    const core_child_t           *list;
    sluice_core_record_t         *record;
    const sluice_core_section_t  *section;

    list = b->children.data;

    for (i = 0; i < b->children.count; i++) {

        if (list[i].kind >= SLUICE_CORE_KINDS) {
            continue;
        }

        section = &image->slots[list[i].kind];
        slots = (const uint32_t *) (b->arena.base + section->offset);

        if (list[i].slot < section->count && slots[list[i].slot]) {
            record = (sluice_core_record_t *)
                     (b->arena.base + 8 * (uint64_t) slots[list[i].slot]);
            record->is_owner = 1;
        }
    }
}


static int
core_by_kind(const void *a, const void *b)
{
    const sluice_core_entity_t  *ea, *eb;

    ea = *(const sluice_core_entity_t *const *) a;
    eb = *(const sluice_core_entity_t *const *) b;

    return ea->kind != eb->kind ? sluice_core_compare(ea->kind, eb->kind)
                                : sluice_core_compare(ea->slot, eb->slot);
}


static int
core_by_owner(const void *a, const void *b)
{
    int                  n;
    const core_child_t  *ca = a, *cb = b;

    n = sluice_core_compare(ca->child, cb->child);
    n = n ? n : sluice_core_compare(ca->kind, cb->kind);
    n = n ? n : sluice_core_compare(ca->slot, cb->slot);

    return n ? n : sluice_core_compare(ca->of, cb->of);
}
