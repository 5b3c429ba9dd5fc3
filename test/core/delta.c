
/*
 * Long on purpose: what one delta is asked, and what is broken in it.
 *
 * Random transactions on an image and its delta, with merges at random
 * moments: what they answer, at this revision and at earlier ones, is what a
 * full build of the same entities answers, and a merge is its very bytes.
 */


#include "make.h"
#include "compare.h"
#include "delta.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>


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
    size_t                         i, count;
    uint64_t                       room, dependents;
    sluice_core_entity_t           changes[DELTA_CHANGES];
    static sluice_core_entity_t    before[SLUICE_CORE_KINDS][MAKE_SLOTS];

    memcpy(before, make.entities, sizeof(before));
    count = change(changes);
    view.revision = revision;
    transactions++;

    dependents = sluice_core_dependents(&view);
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
        test_check(sluice_core_dependents(&view) == dependents, "abandoned");
        memcpy(make.entities, before, sizeof(before));
        compare(&kept[kept_count - 1], 3);
        return;
    }

    sluice_core_delta_link(&writer);
    compare(&kept[kept_count - 1], 5);

    revision++;
    keep();

    for (i = 0; i < count; i++) {

        if (changes[i].kind != SLUICE_CORE_ROUTE
            && changes[i].kind != SLUICE_CORE_CONSUMER
            && changes[i].kind != SLUICE_CORE_CREDENTIAL
            && changes[i].kind != SLUICE_CORE_GROUP
            && changes[i].kind != SLUICE_CORE_MEMBERSHIP
            && changes[i].kind != SLUICE_CORE_LABEL
            && changes[i].kind != SLUICE_CORE_ENTITY
            && changes[i].kind != SLUICE_CORE_SNI)
        {
            dependents = revision;
        }
    }

    test_check(sluice_core_dependents(&view) == dependents, "dependents");

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


/* A file that both map; what is wrong with one is said, and leaves nothing. */

static void
files(void)
{
    int                      rc;
    char                     folder[] = "/tmp/sluice-delta-XXXXXX";
    uint8_t                 *image;
    uint64_t                 size;
    struct rlimit            limit, old;
    sluice_core_view_t       writes, reads;
    sluice_core_entity_t     change;
    sluice_core_writer_t     w;
    sluice_core_identity_t   identity;

    test_check(mkdtemp(folder) != NULL && chdir(folder) == 0, "folder");
    memset(&identity, 0, sizeof(identity));
    identity.revision = 1;

    rc = sluice_core_delta_create("delta", 1 << 20, &identity, &w);
    test_check(rc == SLUICE_CORE_OK, "create: %s", sluice_core_word(rc));

    memset(&writes, 0, sizeof(writes));
    image = make_image(NULL, 0, 1, &size);
    writes.base.base = image;
    writes.base.size = size;
    writes.revision = 1;
    reads = writes;
    writes.delta = w.space;

    rc = sluice_core_delta_open("delta", (uint32_t) geteuid(),
                                SLUICE_CORE_CHECK, &reads.delta);
    test_check(rc == SLUICE_CORE_OK, "open: %s", sluice_core_word(rc));

    memset(&change, 0, sizeof(change));
    change.kind = SLUICE_CORE_SERVICE;
    change.slot = 5;
    test_check(sluice_core_delta_stage(&w, &writes, &change, 1, 2)
               == SLUICE_CORE_OK, "stage");
    sluice_core_delta_link(&w);
    test_check(sluice_core_by_slot(&reads, SLUICE_CORE_SERVICE, 5).record
               == NULL, "too early");
    reads.revision = 2;
    test_check(sluice_core_by_slot(&reads, SLUICE_CORE_SERVICE, 5).record
               != NULL, "not there");
    sluice_core_file_close(&reads.delta);
    sluice_core_file_close(&w.space);

    rc = sluice_core_delta_create("delta", 1 << 20, &identity, &w);
    test_check(rc == SLUICE_CORE_SYSTEM && errno == EEXIST, "twice: %s",
               sluice_core_word(rc));
    rc = sluice_core_delta_open("delta", (uint32_t) geteuid() + 1,
                                SLUICE_CORE_CHECK, &reads.delta);
    test_check(rc == SLUICE_CORE_FOREIGN, "another's: %s",
               sluice_core_word(rc));
    test_check(truncate("delta", 1 << 19) == 0, "truncate");
    rc = sluice_core_delta_open("delta", (uint32_t) geteuid(),
                                SLUICE_CORE_CHECK, &reads.delta);
    test_check(rc == SLUICE_CORE_BAD, "cut: %s", sluice_core_word(rc));

    /* no room is known at once, not when it is written to */

    signal(SIGXFSZ, SIG_IGN);
    test_check(getrlimit(RLIMIT_FSIZE, &old) == 0, "limit");
    limit = old;
    limit.rlim_cur = 1 << 18;
    test_check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    rc = sluice_core_delta_create("other", 1 << 20, &identity, &w);
    test_check(rc == SLUICE_CORE_SYSTEM && errno == EFBIG, "no room: %s",
               sluice_core_word(rc));
    test_check(setrlimit(RLIMIT_FSIZE, &old) == 0, "limit");
    test_check(access("other", F_OK) == -1, "something was left behind");

    rc = sluice_core_delta_create("other", 1000, &identity, &w);
    test_check(rc == SLUICE_CORE_LARGE, "size: %s", sluice_core_word(rc));

    test_check(unlink("delta") == 0 && chdir("/") == 0 && rmdir(folder) == 0,
               "folder");
    free(image);
}


/* An image of some entities, and the least delta on it, at revision 1. */

static uint8_t *
begin(const sluice_core_entity_t *entities, size_t count,
    sluice_core_view_t *on, sluice_core_writer_t *w)
{
    void                    *delta;
    uint8_t                 *image;
    uint64_t                 size;
    sluice_core_identity_t   identity;

    memset(&identity, 0, sizeof(identity));
    identity.revision = 1;

    delta = make_memory(SLUICE_CORE_DELTA_MIN);
    memset(delta, 0, SLUICE_CORE_DELTA_MIN);
    test_check(sluice_core_delta_init(delta, SLUICE_CORE_DELTA_MIN, &identity,
                                      w) == SLUICE_CORE_OK, "init");

    image = make_image(entities, count, 1, &size);

    memset(on, 0, sizeof(sluice_core_view_t));
    on->base.base = image;
    on->base.size = size;
    on->delta = w->space;
    on->revision = 1;

    return image;
}


/* A node that look-ups would pass over. */

static void
unseen(void)
{
    uint8_t                 *image;
    sluice_core_view_t       writes;
    sluice_core_delta_t     *delta;
    sluice_core_entity_t     change;
    sluice_core_writer_t     w;

    image = begin(NULL, 0, &writes, &w);
    delta = (sluice_core_delta_t *) (uintptr_t) w.space.base;

    memset(&change, 0, sizeof(change));
    change.kind = SLUICE_CORE_SERVICE;
    test_check(sluice_core_delta_stage(&w, &writes, &change, 1, 2)
               == SLUICE_CORE_OK, "stage");
    sluice_core_delta_link(&w);
    test_check(sluice_core_delta_check(delta, SLUICE_CORE_DELTA_MIN)
               == SLUICE_CORE_OK, "check");

    memset(delta->seen, 0, sizeof(delta->seen));
    test_check(sluice_core_delta_check(delta, SLUICE_CORE_DELTA_MIN)
               == SLUICE_CORE_BAD, "unseen");

    free(delta);
    free(image);
}


/*
 * A match finds a route; before its plugins are asked for, its worker maps
 * what was merged meanwhile.
 */

static void
earlier(int is_changed)
{
    int                      i;
    uint8_t                 *image, *merged;
    uint64_t                 size;
    sluice_core_live_t       live;
    sluice_core_view_t       old, new;
    sluice_core_found_t      found;
    sluice_core_entity_t     changes[2], *route, *plugin;
    sluice_core_writer_t     w;

    memset(changes, 0, sizeof(changes));

    plugin = &changes[0];
    plugin->kind = SLUICE_CORE_PLUGIN;

    for (i = SLUICE_CORE_PLUGIN_CONSUMER; i <= SLUICE_CORE_PLUGIN_SERVICE;
         i++)
    {
        plugin->fields[i].number = SLUICE_CORE_NOBODY;
    }

    route = &changes[1];
    route->kind = SLUICE_CORE_ROUTE;
    plugin->fields[SLUICE_CORE_PLUGIN_ROUTE].number = route->slot;

    image = begin(route, 1, &old, &w);

    test_check(sluice_core_delta_stage(&w, &old, changes,
                                       is_changed ? 2 : 1, 2)
               == SLUICE_CORE_OK, "stage");
    sluice_core_delta_link(&w);
    old.revision = 2;

    found = sluice_core_by_slot(&old, SLUICE_CORE_ROUTE, route->slot);
    test_check(sluice_core_has_children(&old, SLUICE_CORE_PLUGIN, &found),
               "before the merge");

    test_check(sluice_core_live(&old, NULL, 0, &live) == SLUICE_CORE_OK,
               "live");
    merged = make_image(live.entities, live.count, 2, &size);

    memset(&new, 0, sizeof(new));
    new.base.base = merged;
    new.base.size = size;
    new.revision = 2;

    test_check(sluice_core_has_children(&new, SLUICE_CORE_PLUGIN, &found),
               "a plugin is passed over");

    sluice_core_live_free(&live);
    free(merged);
    free((void *) (uintptr_t) w.space.base);
    free(image);
}


int
main(void)
{
    uint64_t  i, j, n, size;

    state = test_seed("delta");
    n = test_env("OPS", 60);
    regexes = sluice_core_regexes_create(1 << 20);
    files();
    unseen();
    earlier(0);
    earlier(1);

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
