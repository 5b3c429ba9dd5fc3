
/*
 * The checker: any bytes are taken, and what it passes every reader can use.
 * Long on purpose: a check for each structure, none of use without the rest.
 *
 * Each reference is followed once; lists may not have more items in all than
 * the image has room for, so hostile ones that share their lists end early.
 */


#include "layout.h"
#include "hash.h"


typedef struct {
    sluice_core_space_t         space;
    const sluice_core_image_t  *image;
    uint64_t                    budget;    /* items of lists that may come */
} core_check_t;


static int core_check_sections(const core_check_t *c);
static int core_check_section(const core_check_t *c,
    const sluice_core_section_t *section, uint64_t size, uint64_t align);
static int core_check_slots(core_check_t *c);
static int core_check_record(core_check_t *c, uint32_t kind, uint32_t slot,
    uint32_t ref);
static int core_check_entries(core_check_t *c);
static int core_check_entry(core_check_t *c, const sluice_core_entry_t *entry);
static int core_check_lines(core_check_t *c);
static int core_check_item(core_check_t *c, uint32_t to, uint32_t ref);
static int core_check_rooms(core_check_t *c);
static int core_check_lengths(core_check_t *c, uint32_t ref);
static int core_check_headers(core_check_t *c, uint32_t ref);
static int core_check_list(core_check_t *c, uint32_t ref, int of_regexes);
static int core_check_regex(core_check_t *c, uint32_t ref);
static int core_check_text(const core_check_t *c, uint32_t ref);
static int core_is_inside(const core_check_t *c, uint32_t ref, uint64_t size);


/* Four sums beside each other: multiplications overlap. */

uint64_t
sluice_core_checksum(const void *image, uint64_t size)
{
    uint64_t        sums[4], words[4], sum, offset;
    const uint8_t  *p;

    p = image;
    offset = offsetof(sluice_core_image_t, layout);

    for (sum = 0; sum < 4; sum++) {
        sums[sum] = (SLUICE_CORE_HASH_SUM + sum) * SLUICE_CORE_K3;
    }

    for ( /* void */ ; size - offset >= sizeof(words);
         offset += sizeof(words))
    {
        memcpy(words, p + offset, sizeof(words));

        sums[0] = sluice_core_fold(sums[0] ^ words[0], SLUICE_CORE_K3);
        sums[1] = sluice_core_fold(sums[1] ^ words[1], SLUICE_CORE_K3);
        sums[2] = sluice_core_fold(sums[2] ^ words[2], SLUICE_CORE_K3);
        sums[3] = sluice_core_fold(sums[3] ^ words[3], SLUICE_CORE_K3);
    }

    sum = sluice_core_hash(SLUICE_CORE_HASH_SUM, p + offset, size - offset);

    return sum ^ sluice_core_fold(sums[0] ^ (sums[1] << 1),
                                  sums[2] ^ (sums[3] << 1));
}


int
sluice_core_check_header(const void *image, uint64_t size)
{
    sluice_core_image_t  head;

    if (size < sizeof(head) || size > SLUICE_CORE_SIZE_MAX || size % 8) {
        return SLUICE_CORE_BAD;
    }

    memcpy(&head, image, sizeof(head));

    if (head.magic != SLUICE_CORE_MAGIC) {
        return SLUICE_CORE_BAD;
    }

    if (head.layout != SLUICE_CORE_LAYOUT) {
        return SLUICE_CORE_VERSION;
    }

    return head.size == size ? SLUICE_CORE_OK : SLUICE_CORE_BAD;
}


int
sluice_core_check(const void *image, uint64_t size)
{
    int           rc;
    core_check_t  c;

    rc = sluice_core_check_header(image, size);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    c.image = image;
    c.space.base = image;
    c.space.size = size;
    c.budget = size / 4;

    if ((uintptr_t) image % 8
        || c.image->checksum != sluice_core_checksum(image, size)
        || !core_check_sections(&c)
        || !core_check_slots(&c)
        || !core_check_entries(&c)
        || !core_check_rooms(&c)
        || !core_check_lines(&c))
    {
        return SLUICE_CORE_BAD;
    }

    return SLUICE_CORE_OK;
}


static int
core_check_sections(const core_check_t *c)
{
    int                         kind;
    const sluice_core_image_t  *image;

    image = c->image;

    if (image->arena_end < sizeof(sluice_core_image_t)
        || image->arena_end > c->space.size)
    {
        return 0;
    }

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {

        if (!core_check_section(c, &image->slots[kind], 4, 8)
            || image->slots[kind].count > SLUICE_CORE_SLOTS_MAX)
        {
            return 0;
        }
    }

    return core_check_section(c, &image->entries, sizeof(sluice_core_entry_t),
                              8)
           && core_check_section(c, &image->rooms, 1, 8)
           && core_check_section(c, &image->lines, sizeof(sluice_core_line_t),
                                 8)
           && image->lines.count > 0
           && image->lines.count < UINT32_MAX;
}


static int
core_check_section(const core_check_t *c, const sluice_core_section_t *section,
    uint64_t size, uint64_t align)
{
    return section->offset % align == 0
           && section->offset >= sizeof(sluice_core_image_t)
           && section->offset <= c->space.size
           && section->count <= (c->space.size - section->offset) / size;
}


static int
core_check_slots(core_check_t *c)
{
    uint32_t         kind, slot;
    const uint32_t  *slots;

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {
        slots = (const uint32_t *) (c->space.base
                                    + c->image->slots[kind].offset);

        for (slot = 0; slot < c->image->slots[kind].count; slot++) {

            if (slots[slot] && !core_check_record(c, kind, slot, slots[slot]))
            {
                return 0;
            }
        }
    }

    return 1;
}


static int
core_check_record(core_check_t *c, uint32_t kind, uint32_t slot, uint32_t ref)
{
    int                          i, ok;
    uint32_t                     field;
    const sluice_core_record_t  *record;

    if (!core_is_inside(c, ref, sizeof(sluice_core_record_t))) {
        return 0;
    }

    record = sluice_core_at(&c->space, ref);

    if (record->kind != kind || record->slot != slot || record->gone) {
        return 0;
    }

    for (i = 0, ok = 1; i < SLUICE_CORE_FIELDS && ok; i++) {
        field = record->fields[i];

        switch (sluice_core_schemas[kind].types[i]) {

        case SLUICE_CORE_UNUSED:
            ok = (field == 0);
            break;

        case SLUICE_CORE_TEXT:
        case SLUICE_CORE_KEY:
            ok = (field == 0) || core_check_text(c, field);
            break;

        case SLUICE_CORE_LIST:
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
core_check_entries(core_check_t *c)
{
    uint64_t                    i;
    const sluice_core_entry_t  *entries;

    entries = (const sluice_core_entry_t *) (c->space.base
                                             + c->image->entries.offset);

    for (i = 0; i < c->image->entries.count; i++) {

        if (!core_check_entry(c, &entries[i])) {
            return 0;
        }
    }

    return i == 0 || (entries[i - 1].flags & SLUICE_CORE_LAST);
}


/* Its route is one that has been checked: what its slot holds. */

static int
core_check_entry(core_check_t *c, const sluice_core_entry_t *entry)
{
    uint32_t                      needs;
    const uint32_t               *slots;
    const sluice_core_record_t   *route;
    const sluice_core_section_t  *routes;

    routes = &c->image->slots[SLUICE_CORE_ROUTE];
    slots = (const uint32_t *) (c->space.base + routes->offset);

    if (entry->slot >= routes->count || entry->route == 0
        || slots[entry->slot] != entry->route)
    {
        return 0;
    }

    route = sluice_core_at(&c->space, entry->route);

    if (entry->headers != route->fields[SLUICE_CORE_ROUTE_HEADERS]
        || (entry->methods != 0)
           != (route->fields[SLUICE_CORE_ROUTE_METHODS] != 0)
        || entry->stream)
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
            | (entry->headers ? SLUICE_CORE_NEEDS_HEADERS : 0);

    return (needs & ~c->image->needs) == 0
           && (entry->regex == 0 || core_check_regex(c, entry->regex));
}


static int
core_check_rooms(core_check_t *c)
{
    const sluice_core_image_t  *image;

    image = c->image;

    return core_check_lengths(c, image->paths[SLUICE_CORE_ANY])
           && (image->paths[SLUICE_CORE_EXACT] == 0
               || core_check_lengths(c, image->paths[SLUICE_CORE_EXACT]))
           && core_check_lengths(c, image->tails)
           && core_check_lengths(c, image->heads);
}


static int
core_check_lengths(core_check_t *c, uint32_t ref)
{
    uint32_t                      i;
    uint64_t                      at, end;
    const sluice_core_lengths_t  *lengths;

    at = (uint64_t) ref * 8;
    end = c->image->rooms.offset + c->image->rooms.count;

    if (at < c->image->rooms.offset
        || at + offsetof(sluice_core_lengths_t, lengths) > end)
    {
        return 0;
    }

    lengths = sluice_core_at(&c->space, ref);

    if (lengths->count > SLUICE_CORE_KEY_MAX + 1
        || at + offsetof(sluice_core_lengths_t, lengths)
           + lengths->count * sizeof(sluice_core_length_t) > end)
    {
        return 0;
    }

    for (i = 0; i < lengths->count; i++) {

        if (lengths->lengths[i].length > SLUICE_CORE_KEY_MAX) {
            return 0;
        }
    }

    return 1;
}


static int
core_check_lines(core_check_t *c)
{
    int                        n, ended;
    uint64_t                   i;
    const sluice_core_item_t  *item;
    const sluice_core_line_t  *lines;

    lines = (const sluice_core_line_t *) (c->space.base
                                          + c->image->lines.offset);

    for (i = 0; i < c->image->lines.count; i++) {

        for (n = 0, ended = 0; n < SLUICE_CORE_ITEMS; n++) {
            item = &lines[i].items[n];

            if (item->ref == 0) {
                ended = 1;

            } else if (ended
                       || !core_check_item(c, item->tag & SLUICE_CORE_TO_MASK,
                                           item->ref))
            {
                return 0;
            }
        }
    }

    return 1;
}


static int
core_check_item(core_check_t *c, uint32_t to, uint32_t ref)
{
    uint64_t                       at;
    const uint32_t                *slots;
    const sluice_core_record_t    *record;
    const sluice_core_section_t   *section;
    const sluice_core_children_t  *children;

    switch (to) {

    case SLUICE_CORE_TO_ENTRY:
        section = &c->image->entries;
        at = (uint64_t) ref * 8;

        return at >= section->offset
               && (at - section->offset) % sizeof(sluice_core_entry_t) == 0
               && (at - section->offset) / sizeof(sluice_core_entry_t)
                  < section->count;

    case SLUICE_CORE_TO_ROOM:
        return core_check_lengths(c, ref);

    case SLUICE_CORE_TO_RECORD:

        if (!core_is_inside(c, ref, sizeof(sluice_core_record_t))) {
            return 0;
        }

        /* one that has been checked */

        record = sluice_core_at(&c->space, ref);

        if (record->kind >= SLUICE_CORE_KINDS) {
            return 0;
        }

        section = &c->image->slots[record->kind];
        slots = (const uint32_t *) (c->space.base + section->offset);

        return record->slot < section->count && slots[record->slot] == ref;

    default:
        at = offsetof(sluice_core_children_t, slots);

        if (!core_is_inside(c, ref, at)) {
            return 0;
        }

        children = sluice_core_at(&c->space, ref);

        return core_is_inside(c, ref, at + 4ull * children->count);
    }
}


static int
core_check_headers(core_check_t *c, uint32_t ref)
{
    uint32_t                         i;
    uint64_t                         size;
    const sluice_core_condition_t   *condition;
    const sluice_core_conditions_t  *conditions;

    size = offsetof(sluice_core_conditions_t, conditions);

    if (!core_is_inside(c, ref, size)) {
        return 0;
    }

    conditions = sluice_core_at(&c->space, ref);

    if (!core_is_inside(c, ref, size + (uint64_t) conditions->count
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
core_check_list(core_check_t *c, uint32_t ref, int of_regexes)
{
    uint32_t                   i;
    const sluice_core_list_t  *list;

    if (!core_is_inside(c, ref, 4)) {
        return 0;
    }

    list = sluice_core_refs(&c->space, ref);

    if (!core_is_inside(c, ref, 4 + 4ull * list->count)
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
core_check_regex(core_check_t *c, uint32_t ref)
{
    const sluice_core_regex_t  *regex;

    if (!core_is_inside(c, ref, sizeof(sluice_core_regex_t))) {
        return 0;
    }

    regex = sluice_core_at(&c->space, ref);

    return core_check_text(c, regex->text)
           && regex->skip <= sluice_core_chars(&c->space, regex->text)->length;
}


static int
core_check_text(const core_check_t *c, uint32_t ref)
{
    uint64_t                    size;
    const sluice_core_chars_t  *chars;

    size = offsetof(sluice_core_chars_t, data) + 1;

    if (!core_is_inside(c, ref, size)) {
        return 0;
    }

    chars = sluice_core_chars(&c->space, ref);

    return chars->length <= SLUICE_CORE_TEXT_MAX
           && core_is_inside(c, ref, size + chars->length)
           && chars->data[chars->length] == '\0';
}


/* Between the header and the end of the arena. */

static int
core_is_inside(const core_check_t *c, uint32_t ref, uint64_t size)
{
    uint64_t  at;

    at = (uint64_t) ref * 8;

    return at >= sizeof(sluice_core_image_t)
           && at <= c->image->arena_end
           && size <= c->image->arena_end - at;
}
