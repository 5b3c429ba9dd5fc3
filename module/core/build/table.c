
/*
 * The builder's hash tables: items in their lines.
 */


#include "build.h"


#define CORE_PER_LINE    4         /* items of a line at first, on average */
#define CORE_GROWTHS     4         /* of a table, an eighth each */


static int core_put_lines(sluice_core_build_t *b, int table,
    sluice_core_section_t *section);
static int core_fill_lines(sluice_core_line_t *lines, uint64_t count,
    const sluice_core_array_t *items, int table);


int
sluice_core_index_lines(sluice_core_build_t *b, sluice_core_image_t *image)
{
    int  rc;

    rc = core_put_lines(b, 0, &image->lines[0]);

    return rc == SLUICE_CORE_OK ? core_put_lines(b, 1, &image->lines[1]) : rc;
}


static int
core_put_lines(sluice_core_build_t *b, int table,
    sluice_core_section_t *section)
{
    int                     growths;
    size_t                  i;
    uint32_t                ref;
    uint64_t                count, used;
    sluice_core_line_t     *lines;
    sluice_core_pending_t  *items;

    items = b->items.data;

    for (i = 0, count = 0; i < b->items.count; i++) {
        count += (sluice_core_table(items[i].to) == table);
    }

    count = count / CORE_PER_LINE + 1;

    for (growths = 0; growths < CORE_GROWTHS; growths++) {
        used = b->arena.used;

        lines = sluice_core_take(&b->arena, count * sizeof(sluice_core_line_t),
                                 SLUICE_CORE_LINE, &ref);
        if (lines == NULL) {
            return SLUICE_CORE_FULL;
        }

        if (core_fill_lines(lines, count, &b->items, table)
            == SLUICE_CORE_OK)
        {
            section->offset = 8 * (uint64_t) ref;
            section->count = count;

            return SLUICE_CORE_OK;
        }

        b->arena.used = used;
        count += count / 8 + 1;
    }

    return SLUICE_CORE_CROWDED;
}


static int
core_fill_lines(sluice_core_line_t *lines, uint64_t count,
    const sluice_core_array_t *items, int table)
{
    size_t                  i;
    uint32_t                probe, place;
    uint64_t                line;
    sluice_core_pending_t  *item;
    sluice_core_item_t     *to;

    for (i = 0, item = items->data; i < items->count; i++, item++) {

        if (sluice_core_table(item->to) != table) {
            continue;
        }

        line = (item->hash >> 32) * count >> 32;

        for (probe = 0, to = NULL; to == NULL; probe++) {

            if (probe == SLUICE_CORE_PROBES) {
                return SLUICE_CORE_CROWDED;
            }

            for (place = 0; place < SLUICE_CORE_ITEMS; place++) {

                if (lines[line].items[place].ref == 0) {
                    to = &lines[line].items[place];
                    break;
                }
            }

            line = (line + 1 == count) ? 0 : line + 1;
        }

        to->ref = item->ref;
        to->tag = ((uint32_t) item->hash & ~SLUICE_CORE_TO_MASK) | item->to;
    }

    return SLUICE_CORE_OK;
}
