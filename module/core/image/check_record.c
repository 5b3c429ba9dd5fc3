
/*
 * The checks of what stands in an image or a delta: records, entries, lists,
 * texts.
 */


#include "check.h"


static int core_check_body(const sluice_core_check_t *c,
    const sluice_core_record_t *record);
static int core_check_headers(sluice_core_check_t *c, uint32_t ref);
static int core_check_list(sluice_core_check_t *c, uint32_t ref,
    int of_regexes);
static int core_check_regex(const sluice_core_check_t *c, uint32_t ref);
static int core_check_text(const sluice_core_check_t *c, uint32_t ref);


/* The head is not looked at, but for its kind. */

int
sluice_core_check_record(sluice_core_check_t *c, uint32_t ref)
{
    int                          i, ok;
    uint32_t                     field;
    const sluice_core_record_t  *record;

    if (!sluice_core_check_inside(c, ref, sizeof(sluice_core_record_t))) {
        return 0;
    }

    record = sluice_core_at(&c->space, ref);

    if (record->kind >= SLUICE_CORE_KINDS || !core_check_body(c, record)) {
        return 0;
    }

    for (i = 0, ok = 1; i < SLUICE_CORE_FIELDS && ok; i++) {
        field = record->fields[i];

        switch (sluice_core_schemas[record->kind].types[i]) {

        case SLUICE_CORE_UNUSED:
            ok = (field == 0);
            break;

        case SLUICE_CORE_TEXT:
        case SLUICE_CORE_KEY:
            ok = (field == 0) || core_check_text(c, field);
            break;

        case SLUICE_CORE_LIST:
        case SLUICE_CORE_KEYS:
            ok = (field == 0) || core_check_list(c, field, 0);
            break;

        case SLUICE_CORE_HEADERS:
            ok = (field == 0) || core_check_headers(c, field);
            break;
        }
    }

    return ok;
}


static int
core_check_body(const sluice_core_check_t *c,
    const sluice_core_record_t *record)
{
    uint64_t  at;

    if (record->body == 0) {
        return record->body_length == 0;
    }

    at = (uint64_t) record->body * 8;

    return at >= c->bodies_low && at <= c->bodies_high
           && record->body_length <= c->bodies_high - at;
}


/* Its route is a record that has been checked. */

int
sluice_core_check_entry(sluice_core_check_t *c,
    const sluice_core_entry_t *entry, uint32_t allowed)
{
    uint32_t                     needs;
    const sluice_core_record_t  *route;

    route = sluice_core_at(&c->space, entry->route);

    if (route->kind != SLUICE_CORE_ROUTE || route->slot != entry->slot
        || route->gone)
    {
        return 0;
    }

    if (entry->headers != route->fields[SLUICE_CORE_ROUTE_HEADERS]
        || (entry->methods != 0)
           != (route->fields[SLUICE_CORE_ROUTE_METHODS] != 0)
        || entry->snis != route->fields[SLUICE_CORE_ROUTE_SNIS])
    {
        return 0;
    }

    if (entry->host_kind >= SLUICE_CORE_HOSTS
        || (entry->host_kind == SLUICE_CORE_ANY) != (entry->host == 0)
        || (entry->host
            && (!core_check_text(c, entry->host)
                || sluice_core_chars(&c->space, entry->host)->length
                   > SLUICE_CORE_HOST_MAX)))
    {
        return 0;
    }

    if (((entry->flags & SLUICE_CORE_HAS_PATH) != 0) != (entry->path != 0)
        || (entry->regex && entry->path == 0)
        || (entry->path == 0 && entry->key_length)
        || (entry->path
            && (!core_check_text(c, entry->path)
                || sluice_core_chars(&c->space, entry->path)->length
                   < entry->key_length)))
    {
        return 0;
    }

    needs = (entry->host ? SLUICE_CORE_NEEDS_HOST : 0)
            | (entry->flags & SLUICE_CORE_HAS_PORT ? SLUICE_CORE_NEEDS_PORT
                                                   : 0)
            | (entry->methods ? SLUICE_CORE_NEEDS_METHOD : 0)
            | (entry->headers ? SLUICE_CORE_NEEDS_HEADERS : 0)
            | (entry->snis ? SLUICE_CORE_NEEDS_SNI : 0);

    return (needs & ~allowed) == 0
           && (entry->regex == 0 || core_check_regex(c, entry->regex));
}


int
sluice_core_check_children(const sluice_core_check_t *c, uint32_t ref)
{
    uint64_t                       size;
    const sluice_core_children_t  *children;

    size = offsetof(sluice_core_children_t, slots);

    if (!sluice_core_check_inside(c, ref, size)) {
        return 0;
    }

    children = sluice_core_at(&c->space, ref);

    return sluice_core_check_inside(c, ref, size + 4ull * children->count);
}


static int
core_check_headers(sluice_core_check_t *c, uint32_t ref)
{
    uint32_t                         i;
    uint64_t                         size;
    const sluice_core_condition_t   *condition;
    const sluice_core_conditions_t  *conditions;

    size = offsetof(sluice_core_conditions_t, conditions);

    if (!sluice_core_check_inside(c, ref, size)) {
        return 0;
    }

    conditions = sluice_core_at(&c->space, ref);

    if (!sluice_core_check_inside(c, ref, size + (uint64_t) conditions->count
                                       * sizeof(sluice_core_condition_t))
        || conditions->count > c->budget)
    {
        return 0;
    }

    c->budget -= conditions->count;

    for (i = 0; i < conditions->count; i++) {
        condition = &conditions->conditions[i];

        if (!core_check_text(c, condition->name)
            || !core_check_list(c, condition->values, 0)
            || !core_check_list(c, condition->patterns, 1))
        {
            return 0;
        }
    }

    return 1;
}


static int
core_check_list(sluice_core_check_t *c, uint32_t ref, int of_regexes)
{
    uint32_t                   i;
    const sluice_core_list_t  *list;

    if (!sluice_core_check_inside(c, ref, 4)) {
        return 0;
    }

    list = sluice_core_refs(&c->space, ref);

    if (!sluice_core_check_inside(c, ref, 4 + 4ull * list->count)
        || list->count > c->budget)
    {
        return 0;
    }

    c->budget -= list->count;

    for (i = 0; i < list->count; i++) {

        if (of_regexes ? !core_check_regex(c, list->items[i])
                       : !core_check_text(c, list->items[i]))
        {
            return 0;
        }
    }

    return 1;
}


static int
core_check_regex(const sluice_core_check_t *c, uint32_t ref)
{
    const sluice_core_regex_t  *regex;

    if (!sluice_core_check_inside(c, ref, sizeof(sluice_core_regex_t))) {
        return 0;
    }

    regex = sluice_core_at(&c->space, ref);

    return core_check_text(c, regex->text)
           && regex->skip <= sluice_core_chars(&c->space, regex->text)->length;
}


static int
core_check_text(const sluice_core_check_t *c, uint32_t ref)
{
    uint64_t                    size;
    const sluice_core_chars_t  *chars;

    size = offsetof(sluice_core_chars_t, data) + 1;

    if (!sluice_core_check_inside(c, ref, size)) {
        return 0;
    }

    chars = sluice_core_chars(&c->space, ref);

    return chars->length <= SLUICE_CORE_TEXT_MAX
           && sluice_core_check_inside(c, ref, size + chars->length)
           && chars->data[chars->length] == '\0';
}


int
sluice_core_check_inside(const sluice_core_check_t *c, uint32_t ref,
    uint64_t size)
{
    uint64_t  at;

    at = (uint64_t) ref * 8;

    return at >= c->low && at <= c->high && size <= c->high - at;
}
