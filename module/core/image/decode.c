
/*
 * From a record back to the entity that it was made of: what a merge feeds
 * the builder.  Texts point into the image, arrays into scratch memory.
 */


#include "layout.h"

#include <stdlib.h>


#define CORE_CHUNK  (256u << 10)


struct sluice_core_scratch_s {
    sluice_core_scratch_t  *next;
    size_t                  size;
    size_t                  used;
    size_t                  zero;          /* what follows is aligned to 16 */
};


static int core_get_list(const sluice_core_space_t *space, uint32_t ref,
    sluice_core_value_t *value, sluice_core_scratch_t **scratch);
static int core_get_headers(const sluice_core_space_t *space, uint32_t ref,
    sluice_core_value_t *value, sluice_core_scratch_t **scratch);


/* *scratch is NULL at first; NULL: no memory. */

void *
sluice_core_scratch_take(sluice_core_scratch_t **scratch, size_t size)
{
    size_t                  wanted;
    uint8_t                *p;
    sluice_core_scratch_t  *chunk;

    size = sluice_core_align(size, 16);
    chunk = *scratch;

    if (chunk == NULL || chunk->size - chunk->used < size) {
        wanted = size < CORE_CHUNK ? CORE_CHUNK : size;

        chunk = malloc(sizeof(sluice_core_scratch_t) + wanted);
        if (chunk == NULL) {
            return NULL;
        }

        chunk->next = *scratch;
        chunk->size = wanted;
        chunk->used = 0;
        *scratch = chunk;
    }

    p = (uint8_t *) (chunk + 1) + chunk->used;
    chunk->used += size;

    return p;
}


void
sluice_core_scratch_free(sluice_core_scratch_t *scratch)
{
    sluice_core_scratch_t  *next;

    for ( /* void */ ; scratch; scratch = next) {
        next = scratch->next;
        free(scratch);
    }
}


int
sluice_core_decode(const sluice_core_found_t *found,
    sluice_core_entity_t *entity, sluice_core_scratch_t **scratch)
{
    int                          i, rc;
    uint32_t                     field;
    sluice_core_text_t           text;
    sluice_core_value_t         *value;
    const sluice_core_schema_t  *schema;

    memset(entity, 0, sizeof(sluice_core_entity_t));
    sluice_core_head(found, entity);

    schema = &sluice_core_schemas[entity->kind];
    rc = SLUICE_CORE_OK;

    for (i = 0; i < SLUICE_CORE_FIELDS && rc == SLUICE_CORE_OK; i++) {
        field = found->record->fields[i];
        value = &entity->fields[i];

        switch (schema->types[i]) {

        case SLUICE_CORE_NUMBER:
        case SLUICE_CORE_SLOT:
        case SLUICE_CORE_OWNER:
            value->number = field;
            break;

        case SLUICE_CORE_TEXT:
        case SLUICE_CORE_KEY:
            text = sluice_core_text_at(&found->space, field);
            value->data = text.data;
            value->count = text.length;
            break;

        case SLUICE_CORE_LIST:
        case SLUICE_CORE_KEYS:
            rc = core_get_list(&found->space, field, value, scratch);
            break;

        case SLUICE_CORE_HEADERS:
            rc = core_get_headers(&found->space, field, value, scratch);
            break;
        }
    }

    return rc;
}


static int
core_get_list(const sluice_core_space_t *space, uint32_t ref,
    sluice_core_value_t *value, sluice_core_scratch_t **scratch)
{
    uint32_t                   i;
    sluice_core_text_t        *texts;
    const sluice_core_list_t  *list;

    if (ref == 0) {
        return SLUICE_CORE_OK;
    }

    list = sluice_core_refs(space, ref);

    texts = sluice_core_scratch_take(scratch, list->count
                                              * sizeof(sluice_core_text_t));
    if (texts == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < list->count; i++) {
        texts[i] = sluice_core_text_at(space, list->items[i]);
    }

    value->data = texts;
    value->count = list->count;

    return SLUICE_CORE_OK;
}


static int
core_get_headers(const sluice_core_space_t *space, uint32_t ref,
    sluice_core_value_t *value, sluice_core_scratch_t **scratch)
{
    uint32_t                         i, j, count;
    sluice_core_text_t              *texts;
    sluice_core_header_t            *headers;
    const sluice_core_list_t        *values, *patterns;
    const sluice_core_regex_t       *regex;
    const sluice_core_condition_t   *condition;
    const sluice_core_conditions_t  *conditions;

    if (ref == 0) {
        return SLUICE_CORE_OK;
    }

    conditions = sluice_core_at(space, ref);

    headers = sluice_core_scratch_take(scratch,
                                       conditions->count
                                       * sizeof(sluice_core_header_t));
    if (headers == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < conditions->count; i++) {
        condition = &conditions->conditions[i];
        values = sluice_core_refs(space, condition->values);
        patterns = sluice_core_refs(space, condition->patterns);
        count = values->count + patterns->count;

        texts = sluice_core_scratch_take(scratch,
                                         count * sizeof(sluice_core_text_t));
        if (texts == NULL) {
            return SLUICE_CORE_MEMORY;
        }

        for (j = 0; j < values->count; j++) {
            texts[j] = sluice_core_text_at(space, values->items[j]);
        }

        for (j = 0; j < patterns->count; j++) {
            regex = sluice_core_at(space, patterns->items[j]);
            texts[values->count + j] = sluice_core_text_at(space, regex->text);
        }

        headers[i].name = sluice_core_text_at(space, condition->name);
        headers[i].values = texts;
        headers[i].count = count;
    }

    value->data = headers;
    value->count = conditions->count;

    return SLUICE_CORE_OK;
}
