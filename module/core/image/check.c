
/*
 * The checker: any bytes are taken, and what it passes every reader can use.
 *
 * Each reference is followed once; lists may not have more items in all than
 * the image has room for, so hostile ones that share their lists end early.
 */


#include "check.h"
#include "hash.h"


typedef struct {
    sluice_core_check_t         common;
    const sluice_core_image_t  *image;
} core_check_t;


static int core_check_sections(const core_check_t *c);
static int core_check_section(const core_check_t *c,
    const sluice_core_section_t *section, uint64_t size, uint64_t align);
static int core_check_table(const core_check_t *c,
    const sluice_core_section_t *lines);
static int core_check_slots(core_check_t *c);
static int core_check_entries(core_check_t *c);
static int core_check_entry(core_check_t *c, const sluice_core_entry_t *entry);
static int core_check_lines(core_check_t *c, int table);
static int core_check_item(core_check_t *c, uint32_t to, uint32_t ref);
static int core_check_rooms(core_check_t *c);
static int core_check_lengths(core_check_t *c, uint32_t ref);


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
    c.common.space.base = image;
    c.common.space.size = size;
    c.common.low = sizeof(sluice_core_image_t);
    c.common.high = c.image->arena_end;
    c.common.bodies_low = c.image->bodies.offset;
    c.common.bodies_high = c.image->bodies.offset + c.image->bodies.count;
    c.common.budget = size / 4;

    if ((uintptr_t) image % 8
        || c.image->checksum != sluice_core_checksum(image, size)
        || !core_check_sections(&c)
        || !core_check_slots(&c)
        || !core_check_entries(&c)
        || !core_check_rooms(&c)
        || !core_check_lines(&c, 0)
        || !core_check_lines(&c, 1))
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
        || image->arena_end > c->common.space.size)
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
           && core_check_section(c, &image->bodies, 1, 8)
           && core_check_table(c, &image->lines[0])
           && core_check_table(c, &image->lines[1]);
}


static int
core_check_table(const core_check_t *c, const sluice_core_section_t *lines)
{
    return core_check_section(c, lines, sizeof(sluice_core_line_t), 8)
           && lines->count > 0
           && lines->count < UINT32_MAX;
}


static int
core_check_section(const core_check_t *c, const sluice_core_section_t *section,
    uint64_t size, uint64_t align)
{
    return section->offset % align == 0
           && section->offset >= sizeof(sluice_core_image_t)
           && section->offset <= c->common.space.size
           && section->count
              <= (c->common.space.size - section->offset) / size;
}


static int
core_check_slots(core_check_t *c)
{
    uint32_t                     kind, slot;
    const uint32_t              *slots;
    const sluice_core_record_t  *record;

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {
        slots = (const uint32_t *) (c->common.space.base
                                    + c->image->slots[kind].offset);

        for (slot = 0; slot < c->image->slots[kind].count; slot++) {

            if (slots[slot] == 0) {
                continue;
            }

            if (!sluice_core_check_record(&c->common, slots[slot])) {
                return 0;
            }

            record = sluice_core_at(&c->common.space, slots[slot]);

            if (record->kind != kind || record->slot != slot || record->gone) {
                return 0;
            }
        }
    }

    return 1;
}


static int
core_check_entries(core_check_t *c)
{
    uint64_t                    i;
    const sluice_core_entry_t  *entries;

    entries = (const sluice_core_entry_t *) (c->common.space.base
                                             + c->image->entries.offset);

    for (i = 0; i < c->image->entries.count; i++) {

        if (!core_check_entry(c, &entries[i])) {
            return 0;
        }
    }

    return i == 0 || (entries[i - 1].flags & SLUICE_CORE_LAST);
}


static int
core_check_entry(core_check_t *c, const sluice_core_entry_t *entry)
{
    const uint32_t               *slots;
    const sluice_core_section_t  *routes;

    routes = &c->image->slots[SLUICE_CORE_ROUTE];
    slots = (const uint32_t *) (c->common.space.base + routes->offset);

    return entry->slot < routes->count && slots[entry->slot] != 0
           && slots[entry->slot] == entry->route
           && sluice_core_check_entry(&c->common, entry, c->image->needs);
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

    lengths = sluice_core_at(&c->common.space, ref);

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
core_check_lines(core_check_t *c, int table)
{
    int                           n, ended;
    uint32_t                      to;
    uint64_t                      i;
    const sluice_core_item_t     *item;
    const sluice_core_line_t     *lines;
    const sluice_core_section_t  *section;

    section = &c->image->lines[table];
    lines = (const sluice_core_line_t *) (c->common.space.base
                                          + section->offset);

    for (i = 0; i < section->count; i++) {

        for (n = 0, ended = 0; n < SLUICE_CORE_ITEMS; n++) {
            item = &lines[i].items[n];

            if (item->ref == 0) {
                ended = 1;
                continue;
            }

            to = item->tag & SLUICE_CORE_TO_MASK;

            if (ended || sluice_core_table(to) != table
                || !core_check_item(c, to, item->ref))
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
    uint64_t                      at;
    const uint32_t               *slots;
    const sluice_core_entry_t    *entry;
    const sluice_core_record_t   *record;
    const sluice_core_section_t  *section;

    switch (to) {

    case SLUICE_CORE_TO_ENTRY:

        if (sluice_core_check_inside(&c->common, ref,
                                     sizeof(sluice_core_entry_t)))
        {
            /* beside its route: it is the only one of its key */

            entry = sluice_core_at(&c->common.space, ref);

            return (entry->flags & SLUICE_CORE_LAST)
                   && core_check_entry(c, entry);
        }

        section = &c->image->entries;
        at = (uint64_t) ref * 8;

        return at >= section->offset
               && (at - section->offset) % sizeof(sluice_core_entry_t) == 0
               && (at - section->offset) / sizeof(sluice_core_entry_t)
                  < section->count;

    case SLUICE_CORE_TO_ROOM:
        return core_check_lengths(c, ref);

    case SLUICE_CORE_TO_RECORD:

        if (!sluice_core_check_inside(&c->common, ref,
                                      sizeof(sluice_core_record_t)))
        {
            return 0;
        }

        /* one that has been checked */

        record = sluice_core_at(&c->common.space, ref);

        if (record->kind >= SLUICE_CORE_KINDS) {
            return 0;
        }

        section = &c->image->slots[record->kind];
        slots = (const uint32_t *) (c->common.space.base + section->offset);

        return record->slot < section->count && slots[record->slot] == ref;

    default:
        return sluice_core_check_children(&c->common, ref);
    }
}
