
/*
 * Random transactions on an image and its delta, with merges at random
 * moments: what they answer, at this revision and at earlier ones, is what a
 * full build of the same entities answers, and a merge is its very bytes.
 */


#include "make.h"
#include "compare.h"
#include "delta.h"

#include <stdlib.h>


#define DELTA_MOST     (SLUICE_CORE_KINDS * MAKE_SLOTS)
#define DELTA_CHANGES  8
#define DELTA_KEPT     6           /* earlier revisions that are asked again */


typedef struct {
    uint8_t   *image;
    uint64_t   size;
    uint64_t   revision;
} kept_t;


static uint64_t                state, revision, merges, full, transactions;
static make_t                  make;
static sluice_core_entity_t    list[DELTA_MOST];
static sluice_core_view_t      view;
static sluice_core_writer_t    writer;
static sluice_core_regexes_t  *regexes;
static uint8_t                *base, *memory;
static kept_t                  kept[DELTA_KEPT];
static unsigned                kept_count;


static void
compare(const kept_t *k, int requests)
{
    sluice_core_view_t  other;

    memset(&other, 0, sizeof(other));
    other.base.base = k->image;
    other.base.size = k->size;

    view.revision = k->revision;
    compare_views(&view, &other, &state, regexes, requests);
}


static void
keep(void)
{
    kept_t  *k;

    if (kept_count == DELTA_KEPT) {
        free(kept[0].image);
        memmove(&kept[0], &kept[1], (DELTA_KEPT - 1) * sizeof(kept_t));
        kept_count--;
    }

    k = &kept[kept_count++];
    k->revision = revision;
    k->image = make_image(list, make_list(&make, list), revision, &k->size);
}


static void
forget(void)
{
    while (kept_count) {
        free(kept[--kept_count].image);
    }
}


static void
new_delta(void)
{
    uint64_t                 size;
    sluice_core_identity_t   identity;

    free(memory);
    size = SLUICE_CORE_DELTA_MIN;
    memory = make_memory(size);
    memset(memory, 0, size);
    identity.revision = revision;

    test_check(sluice_core_delta_init(memory, size, &identity, &writer)
               == SLUICE_CORE_OK, "init");
    view.delta = writer.space;
    view.revision = revision;
}


/* The merge of what is live, and changes, is what a full build makes. */

static void
merge(const sluice_core_entity_t *changes, size_t count)
{
    uint8_t             *image, *whole;
    uint64_t             size, whole_size;
    sluice_core_live_t   live;

    test_check(sluice_core_live(&view, changes, count, &live)
               == SLUICE_CORE_OK, "live");

    image = make_image(live.entities, live.count, revision, &size);
    whole = make_image(list, make_list(&make, list), revision, &whole_size);

    test_check(size == whole_size && memcmp(image, whole, size) == 0,
               "a merge of %zu entities is no full build", live.count);

    sluice_core_live_free(&live);
    free(whole);
    free(base);

    base = image;
    view.base.base = base;
    view.base.size = size;
    merges++;

    forget();
    new_delta();
    keep();
}


/* What is live at an earlier revision is what was built of it. */

static void
live_at(const kept_t *k)
{
    uint8_t             *image;
    uint64_t             size;
    sluice_core_live_t   live;

    view.revision = k->revision;
    test_check(sluice_core_live(&view, NULL, 0, &live) == SLUICE_CORE_OK,
               "live");
    image = make_image(live.entities, live.count, k->revision, &size);
    test_check(size == k->size && memcmp(image, k->image, size) == 0,
               "live at %lu", k->revision);

    sluice_core_live_free(&live);
    free(image);
}


static size_t
change(sluice_core_entity_t *changes)
{
    int                    kind;
    size_t                 i, j, count;
    uint32_t               slot;
    sluice_core_entity_t  *entity;

    count = 1 + test_below(&state, DELTA_CHANGES);

    for (i = 0; i < count; i++) {
        kind = test_below(&state, 2) ? SLUICE_CORE_ROUTE
                                     : (int) test_below(&state,
                                                        SLUICE_CORE_KINDS);
        slot = (uint32_t) test_below(&state, MAKE_SLOTS);
        entity = &make.entities[kind][slot];

        for (j = 0; j < i && !(changes[j].kind == kind
                               && changes[j].slot == slot); j++) { /* void */ }

        if (j < i) {
            i--;
            continue;
        }

        if (!entity->gone && test_below(&state, 3) == 0) {
            entity->gone = 1;

        } else {
            make_entity(&make, kind, slot, revision + 1);
        }

        changes[i] = *entity;
    }

    return count;
}


static void
transaction(void)
{
    int                            rc;
    size_t                         count;
    uint64_t                       room;
    sluice_core_entity_t           changes[DELTA_CHANGES];
    static sluice_core_entity_t    before[SLUICE_CORE_KINDS][MAKE_SLOTS];

    memcpy(before, make.entities, sizeof(before));
    count = change(changes);
    view.revision = revision;
    transactions++;

    room = sluice_core_delta_room(&writer);
    rc = sluice_core_delta_stage(&writer, &view, changes, count, revision + 1);

    if (rc == SLUICE_CORE_FULL) {
        full++;
        revision++;
        merge(changes, count);
        return;
    }

    test_check(rc == SLUICE_CORE_OK, "stage: %s", sluice_core_word(rc));
    test_check(sluice_core_delta_stage(&writer, &view, changes, count,
                                       revision + 1) == SLUICE_CORE_STALE,
               "two at a time");

    /* staged, then linked: not seen */

    compare(&kept[kept_count - 1], 3);

    if (test_below(&state, 8) == 0) {
        sluice_core_delta_abandon(&writer);
        test_check(sluice_core_delta_room(&writer) == room, "space is lost");
        memcpy(make.entities, before, sizeof(before));
        compare(&kept[kept_count - 1], 3);
        return;
    }

    sluice_core_delta_link(&writer);
    compare(&kept[kept_count - 1], 5);

    revision++;
    keep();

    rc = sluice_core_delta_check(memory, SLUICE_CORE_DELTA_MIN);
    test_check(rc == SLUICE_CORE_OK, "check: %s", sluice_core_word(rc));

    compare(&kept[kept_count - 1], 20);
    compare(&kept[test_below(&state, kept_count)], 5);

    if (test_below(&state, 10) == 0) {
        live_at(&kept[test_below(&state, kept_count)]);
    }

    if (test_below(&state, 20) == 0) {
        view.revision = revision;
        merge(NULL, 0);
    }
}


static void
refusals(void)
{
    sluice_core_entity_t  changes[2];

    memset(changes, 0, sizeof(changes));
    changes[0].kind = changes[1].kind = SLUICE_CORE_SERVICE;
    view.revision = revision;

    test_check(sluice_core_delta_stage(&writer, &view, changes, 2,
                                       revision + 1) == SLUICE_CORE_REPEAT,
               "one entity twice");
    test_check(sluice_core_delta_stage(&writer, &view, changes, 1, revision)
               == SLUICE_CORE_STALE, "an old revision");

    changes[0].slot = SLUICE_CORE_SLOTS_MAX;
    test_check(sluice_core_delta_stage(&writer, &view, changes, 1,
                                       revision + 1) == SLUICE_CORE_LARGE,
               "a large slot");
    compare(&kept[kept_count - 1], 3);
}


int
main(void)
{
    uint64_t  i, j, n, size;

    state = test_seed("delta");
    n = test_env("OPS", 60);
    regexes = sluice_core_regexes_create(64);

    for (i = 0; i < n; i++) {
        make_start(&make, &state);
        revision = 1 + test_below(&state, 100);

        for (j = test_below(&state, 80); j > 0; j--) {
            make_entity(&make, (int) test_below(&state, SLUICE_CORE_KINDS),
                        (uint32_t) test_below(&state, MAKE_SLOTS), revision);
        }

        base = make_image(list, make_list(&make, list), revision, &size);
        view.base.base = base;
        view.base.size = size;
        new_delta();
        keep();
        refusals();

        for (j = 0; j < 60; j++) {
            transaction();
        }

        forget();
        free(base);
        make_end(&make);
    }

    free(memory);
    sluice_core_regexes_destroy(regexes);

    printf("delta: %lu transactions, %lu merges, %lu since it was full\n",
           transactions, merges, full);
    test_check(merges > full, "none of its own");

    return 0;
}
