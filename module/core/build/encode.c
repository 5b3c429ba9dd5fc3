
/*
 * From an entity to its record, lists and texts in an arena.  Names of
 * headers, and their values without a pattern, are brought into one spelling
 * and order: a record that is decoded and encoded again is the same bytes.
 */


#include "layout.h"
#include "hash.h"

#include <stdlib.h>


static int core_put_list(sluice_core_arena_t *arena,
    const sluice_core_text_t *texts, uint32_t count, uint32_t *ref);
static int core_put_headers(sluice_core_arena_t *arena,
    const sluice_core_header_t *headers, uint32_t count, uint32_t *ref);
static int core_put_condition(sluice_core_arena_t *arena, uint32_t at,
    const sluice_core_header_t *header);
static int core_put_lower(sluice_core_arena_t *arena,
    const sluice_core_text_t *text, int is_name, uint32_t *ref);
static int core_put_regex(sluice_core_arena_t *arena,
    const sluice_core_text_t *text, uint32_t *ref);
static int core_order(const void *a, const void *b, void *data);
static uint64_t core_bound_text(uint32_t length);
static uint64_t core_bound_headers(const sluice_core_header_t *headers,
    uint32_t count);


#define core_is_pattern(text)                                                 \
    ((text)->length >= 2 && (text)->data[0] == '~' && (text)->data[1] == '*')


/* Zeroed bytes; NULL: the arena is full, or beyond what references reach. */

void *
sluice_core_take(sluice_core_arena_t *arena, uint64_t size, uint64_t align,
    uint32_t *ref)
{
    uint8_t   *p;
    uint64_t   at;

    at = sluice_core_align(arena->used, align);

    if (at > arena->size || size > arena->size - at
        || at + size > SLUICE_CORE_SIZE_MAX - SLUICE_CORE_LINE)
    {
        return NULL;
    }

    p = arena->base + at;
    memset(arena->base + arena->used, 0, at + size - arena->used);
    arena->used = at + size;

    if (ref) {
        *ref = (uint32_t) (at / 8);
    }

    return p;
}


int
sluice_core_put_text(sluice_core_arena_t *arena, const void *data,
    uint32_t length, uint32_t *ref)
{
    sluice_core_chars_t  *chars;

    *ref = 0;

    if (data == NULL) {
        return SLUICE_CORE_OK;
    }

    if (length > SLUICE_CORE_TEXT_MAX) {
        return SLUICE_CORE_LARGE;
    }

    chars = sluice_core_take(arena, offsetof(sluice_core_chars_t, data)
                                    + length + 1ull, 8, ref);
    if (chars == NULL) {
        return SLUICE_CORE_FULL;
    }

    chars->length = length;
    memcpy(chars->data, data, length);

    return SLUICE_CORE_OK;
}


int
sluice_core_put_entity(sluice_core_arena_t *arena,
    const sluice_core_entity_t *entity, uint32_t *ref)
{
    int                         i, rc;
    sluice_core_record_t       *record;
    const sluice_core_value_t  *value;

    if (entity->kind >= SLUICE_CORE_KINDS
        || entity->slot >= SLUICE_CORE_SLOTS_MAX)
    {
        return SLUICE_CORE_LARGE;
    }

    record = sluice_core_take(arena, sizeof(sluice_core_record_t), 32, ref);
    if (record == NULL) {
        return SLUICE_CORE_FULL;
    }

    memcpy(record->id, entity->id, sizeof(record->id));
    record->revision = entity->revision;
    record->created_at = entity->created_at;
    record->sequence = entity->sequence;
    record->kind = entity->kind;
    record->gone = entity->gone != 0;
    record->slot = entity->slot;
    record->generation = entity->generation;

    if (entity->gone) {
        return SLUICE_CORE_OK;
    }

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {
        value = &entity->fields[i];
        rc = SLUICE_CORE_OK;

        switch (sluice_core_schemas[entity->kind].types[i]) {

        case SLUICE_CORE_NUMBER:
        case SLUICE_CORE_SLOT:
        case SLUICE_CORE_OWNER:
            record->fields[i] = value->number;
            break;

        case SLUICE_CORE_TEXT:
        case SLUICE_CORE_KEY:
            rc = sluice_core_put_text(arena, value->data, value->count,
                                      &record->fields[i]);
            break;

        case SLUICE_CORE_LIST:
        case SLUICE_CORE_KEYS:
            rc = core_put_list(arena, value->data, value->count,
                               &record->fields[i]);
            break;

        case SLUICE_CORE_HEADERS:
            rc = core_put_headers(arena, value->data, value->count,
                                  &record->fields[i]);
            break;
        }

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


static int
core_put_list(sluice_core_arena_t *arena, const sluice_core_text_t *texts,
    uint32_t count, uint32_t *ref)
{
    int                  rc;
    uint32_t             i;
    sluice_core_list_t  *list;

    *ref = 0;

    if (count == 0) {
        return SLUICE_CORE_OK;
    }

    if (count > SLUICE_CORE_LIST_MAX) {
        return SLUICE_CORE_LARGE;
    }

    list = sluice_core_take(arena, 4 + 4ull * count, 8, ref);
    if (list == NULL) {
        return SLUICE_CORE_FULL;
    }

    list->count = count;

    for (i = 0; i < count; i++) {
        rc = sluice_core_put_text(arena, texts[i].data ? texts[i].data : "",
                                  texts[i].length, &list->items[i]);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


static int
core_put_headers(sluice_core_arena_t *arena,
    const sluice_core_header_t *headers, uint32_t count, uint32_t *ref)
{
    int                        rc;
    uint32_t                   i, at, *order;
    sluice_core_conditions_t  *conditions;

    *ref = 0;

    if (count == 0) {
        return SLUICE_CORE_OK;
    }

    if (count > SLUICE_CORE_LIST_MAX) {
        return SLUICE_CORE_LARGE;
    }

    conditions = sluice_core_take(arena,
                                  offsetof(sluice_core_conditions_t,
                                           conditions)
                                  + count * sizeof(sluice_core_condition_t),
                                  8, ref);
    if (conditions == NULL) {
        return SLUICE_CORE_FULL;
    }

    conditions->count = count;

    order = malloc(count * sizeof(uint32_t));
    if (order == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < count; i++) {
        order[i] = i;
    }

    qsort_r(order, count, sizeof(uint32_t), core_order, (void *) headers);

    at = *ref + offsetof(sluice_core_conditions_t, conditions) / 8;
    rc = SLUICE_CORE_OK;

    for (i = 0; i < count && rc == SLUICE_CORE_OK; i++) {
        rc = core_put_condition(arena,
                                at + i * (uint32_t)
                                     (sizeof(sluice_core_condition_t) / 8),
                                &headers[order[i]]);
    }

    free(order);

    return rc;
}


/* at: reference to the condition */

static int
core_put_condition(sluice_core_arena_t *arena, uint32_t at,
    const sluice_core_header_t *header)
{
    int                         rc, pass;
    uint32_t                    i, counts[2];
    const sluice_core_text_t   *value;
    sluice_core_list_t         *lists[2];
    sluice_core_condition_t    *condition;

    condition = (sluice_core_condition_t *) (arena->base + (uint64_t) at * 8);

    if (header->count > SLUICE_CORE_LIST_MAX) {
        return SLUICE_CORE_LARGE;
    }

    rc = core_put_lower(arena, &header->name, 1, &condition->name);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    counts[0] = 0;
    counts[1] = 0;

    for (i = 0; i < header->count; i++) {
        counts[core_is_pattern(&header->values[i])]++;
    }

    for (pass = 0; pass < 2; pass++) {
        lists[pass] = sluice_core_take(arena, 4 + 4ull * counts[pass], 8,
                                       pass ? &condition->patterns
                                            : &condition->values);
        if (lists[pass] == NULL) {
            return SLUICE_CORE_FULL;
        }
    }

    /* values, then patterns: the order in which they are read back */

    for (i = 0; i < header->count && rc == SLUICE_CORE_OK; i++) {
        value = &header->values[i];

        if (!core_is_pattern(value)) {
            rc = core_put_lower(arena, value, 0,
                                &lists[0]->items[lists[0]->count++]);
        }
    }

    for (i = 0; i < header->count && rc == SLUICE_CORE_OK; i++) {
        value = &header->values[i];

        if (core_is_pattern(value)) {
            rc = core_put_regex(arena, value,
                                &lists[1]->items[lists[1]->count++]);
        }
    }

    return rc;
}


static int
core_put_regex(sluice_core_arena_t *arena, const sluice_core_text_t *text,
    uint32_t *ref)
{
    sluice_core_regex_t  *regex;

    regex = sluice_core_take(arena, sizeof(sluice_core_regex_t), 8, ref);
    if (regex == NULL) {
        return SLUICE_CORE_FULL;
    }

    regex->skip = 2;

    return sluice_core_put_text(arena, text->data, text->length, &regex->text);
}


static int
core_put_lower(sluice_core_arena_t *arena, const sluice_core_text_t *text,
    int is_name, uint32_t *ref)
{
    int                   rc;
    char                 *p;
    uint32_t              i;
    sluice_core_chars_t  *chars;

    rc = sluice_core_put_text(arena, text->data ? text->data : "",
                              text->length, ref);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    chars = (sluice_core_chars_t *) (arena->base + (uint64_t) *ref * 8);

    for (i = 0, p = chars->data; i < text->length; i++) {
        p[i] = sluice_core_lower(p[i]);

        if (is_name && p[i] == '_') {
            p[i] = '-';
        }
    }

    return SLUICE_CORE_OK;
}


/* By the one spelling of the names, then as they came. */

static int
core_order(const void *a, const void *b, void *data)
{
    char                         ca, cb;
    uint32_t                     i, ia, ib;
    const sluice_core_text_t    *ta, *tb;
    const sluice_core_header_t  *headers;

    headers = data;
    ia = *(const uint32_t *) a;
    ib = *(const uint32_t *) b;
    ta = &headers[ia].name;
    tb = &headers[ib].name;

    for (i = 0; i < ta->length && i < tb->length; i++) {
        ca = sluice_core_lower(ta->data[i]);
        cb = sluice_core_lower(tb->data[i]);
        ca = (ca == '_') ? '-' : ca;
        cb = (cb == '_') ? '-' : cb;

        if (ca != cb) {
            return (uint8_t) ca < (uint8_t) cb ? -1 : 1;
        }
    }

    if (ta->length != tb->length) {
        return ta->length < tb->length ? -1 : 1;
    }

    return ia < ib ? -1 : 1;
}


/* Bytes that an entity needs in an arena at most, without its entries. */

uint64_t
sluice_core_bound_entity(const sluice_core_entity_t *entity)
{
    int                         i;
    uint32_t                    j;
    uint64_t                    bound;
    const sluice_core_text_t   *texts;
    const sluice_core_value_t  *value;

    bound = sizeof(sluice_core_record_t) + 32;

    if (entity->gone || entity->kind >= SLUICE_CORE_KINDS) {
        return bound;
    }

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {
        value = &entity->fields[i];

        switch (sluice_core_schemas[entity->kind].types[i]) {

        case SLUICE_CORE_TEXT:
        case SLUICE_CORE_KEY:
            bound += core_bound_text(value->count);
            break;

        case SLUICE_CORE_LIST:
        case SLUICE_CORE_KEYS:
            texts = value->data;
            bound += 16 + 4ull * value->count;

            for (j = 0; j < value->count; j++) {
                bound += core_bound_text(texts[j].length);
            }

            break;

        case SLUICE_CORE_HEADERS:
            bound += core_bound_headers(value->data, value->count);
            break;
        }
    }

    return bound;
}


static uint64_t
core_bound_text(uint32_t length)
{
    return 16 + (uint64_t) length;
}


static uint64_t
core_bound_headers(const sluice_core_header_t *headers, uint32_t count)
{
    uint32_t  i, j;
    uint64_t  bound;

    bound = 16;

    for (i = 0; i < count; i++) {
        bound += sizeof(sluice_core_condition_t) + 32
                 + core_bound_text(headers[i].name.length);

        for (j = 0; j < headers[i].count; j++) {
            bound += 4 + sizeof(sluice_core_regex_t)
                     + core_bound_text(headers[i].values[j].length);
        }
    }

    return bound;
}
