
/*
 * Death at every instruction: a child that appends and publishes a change, or
 * writes a merge to a file, is killed before its first machine instruction,
 * the second, the third ...  After each death the chains are whole, whatever
 * is published is what a full build of that revision is, what was published
 * before is as it was, and a successor goes on.
 *
 * Verbs longer than LIMIT are sampled at random instructions; CASES=1 is the
 * change alone, CASES=2 the merge.
 */


#include "make.h"
#include "compare.h"
#include "delta.h"
#include "stepper.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


#define STEP_MOST     (SLUICE_CORE_KINDS * MAKE_SLOTS)
#define STEP_CHANGES  3


static uint64_t                  state;
static make_t                    make;
static sluice_core_entity_t      list[STEP_MOST], changes[STEP_CHANGES];
static sluice_core_regexes_t    *regexes;

static uint8_t                  *base, *after;     /* images */
static uint64_t                  base_size, after_size;
static uint8_t                  *shared, *before;  /* delta; as it was */
static sluice_core_page_t       *page;
static sluice_core_view_t        view;
static sluice_core_writer_t      writer;
static sluice_core_published_t   published;

static const char  path[] = "step-image";


static void
verb_change(void)
{
    sluice_core_published_t  next;

    if (sluice_core_delta_stage(&writer, &view, changes, STEP_CHANGES, 2)
        != SLUICE_CORE_OK)
    {
        _exit(2);
    }

    sluice_core_delta_link(&writer);

    next = published;
    next.revision = 2;
    sluice_core_publish(page, &next);
}


/* What is live is the old or the new, and each is as it has to be. */

static void
after_change(int whole)
{
    sluice_core_view_t        other;
    sluice_core_writer_t      successor;
    sluice_core_identity_t    identity;
    sluice_core_published_t   now;

    test_check(sluice_core_delta_check(shared, SLUICE_CORE_DELTA_MIN)
               == SLUICE_CORE_OK, "the delta is damaged");
    test_check(sluice_core_published(page, &now) == SLUICE_CORE_OK, "page");
    test_check(now.base == published.base && now.delta == published.delta
               && (now.revision == 2 || (now.revision == 1 && !whole)),
               "published: %lu", now.revision);

    memset(&other, 0, sizeof(other));
    other.base.base = now.revision == 2 ? after : base;
    other.base.size = now.revision == 2 ? after_size : base_size;
    view.revision = now.revision;
    compare_views(&view, &other, &state, regexes, 4);

    /* who has not looked again */

    other.base.base = base;
    other.base.size = base_size;
    view.revision = 1;
    compare_views(&view, &other, &state, regexes, 2);

    /* a successor repairs nothing: another image, another delta */

    memset(&identity, 0, sizeof(identity));
    memset(shared, 0, SLUICE_CORE_DELTA_MIN);
    test_check(sluice_core_delta_init(shared, SLUICE_CORE_DELTA_MIN, &identity,
                                      &successor) == SLUICE_CORE_OK, "init");

    now.base++;
    now.delta++;
    now.revision = 3;
    sluice_core_publish(page, &now);
    test_check(sluice_core_published(page, &now) == SLUICE_CORE_OK
               && now.revision == 3, "a successor's: %lu", now.revision);

    other.base.base = after;
    other.base.size = after_size;
    other.delta = successor.space;
    other.revision = 3;
    test_check(sluice_core_delta_stage(&successor, &other, changes,
                                       STEP_CHANGES, 4) == SLUICE_CORE_OK,
               "a successor's change");
}


static void
verb_merge(void)
{
    uint8_t                 *image;
    uint64_t                 size, bound;
    sluice_core_live_t       live;
    sluice_core_identity_t   identity;

    memset(&identity, 7, sizeof(identity));
    identity.revision = 2;

    if (sluice_core_live(&view, changes, STEP_CHANGES, &live)
        != SLUICE_CORE_OK)
    {
        _exit(2);
    }

    bound = sluice_core_image_bound(live.entities, live.count);
    image = aligned_alloc(64, (bound + 63) & ~63ull);

    if (image == NULL
        || sluice_core_image_build(&identity, live.entities, live.count, image,
                                   bound, &size) != SLUICE_CORE_OK
        || sluice_core_file_write(path, image, size, 0) != SLUICE_CORE_OK)
    {
        _exit(2);
    }
}


static void
after_merge(int whole)
{
    int                   is_new;
    sluice_core_space_t   space;

    test_check(sluice_core_file_open(path, (uint32_t) geteuid(),
                                     SLUICE_CORE_CHECK, &space)
               == SLUICE_CORE_OK, "no file, or a torn one");

    is_new = space.size == after_size
             && memcmp(space.base, after, after_size) == 0;

    test_check(is_new || (!whole && space.size == base_size
                          && memcmp(space.base, base, base_size) == 0),
               "neither the old nor the new one");
    sluice_core_file_close(&space);

    test_check(memcmp(shared, before, SLUICE_CORE_DELTA_MIN) == 0,
               "a merge has changed the delta");
}


/* As before the verb: memory that both share, and the file. */

static void
reset(void)
{
    memcpy(shared, before, SLUICE_CORE_DELTA_MIN);
    memset((void *) page, 0, sluice_core_page_size());
    sluice_core_publish(page, &published);
    view.revision = 1;

    test_check(sluice_core_file_write(path, base, base_size, 0)
               == SLUICE_CORE_OK, "write");
}


static const stepper_case_t  cases[] = {
    { "stage, link, publish", reset, verb_change, after_change },
    { "merge, write", reset, verb_merge, after_merge },
};


static void
prepare(void)
{
    int                      kind;
    uint32_t                 slot;
    uint64_t                 i;
    sluice_core_identity_t   identity;
    static const int         kinds[STEP_CHANGES] = {
        SLUICE_CORE_ROUTE, SLUICE_CORE_PLUGIN, SLUICE_CORE_CREDENTIAL
    };

    make_start(&make, &state);

    for (i = 0; i < 60; i++) {
        kind = (int) test_below(&state, SLUICE_CORE_KINDS);
        make_entity(&make, kind, (uint32_t) test_below(&state, MAKE_SLOTS), 1);
    }

    base = make_image(list, make_list(&make, list), 1, &base_size);

    for (i = 0; i < STEP_CHANGES; i++) {
        slot = (uint32_t) test_below(&state, MAKE_SLOTS);

        if (i == 0 || make.entities[kinds[i]][slot].gone
            || test_below(&state, 2))
        {
            make_entity(&make, kinds[i], slot, 2);

        } else {
            make.entities[kinds[i]][slot].gone = 1;
        }

        changes[i] = make.entities[kinds[i]][slot];
    }

    after = make_image(list, make_list(&make, list), 2, &after_size);

    memset(&identity, 7, sizeof(identity));
    identity.revision = 1;
    memset(shared, 0, SLUICE_CORE_DELTA_MIN);
    test_check(sluice_core_delta_init(shared, SLUICE_CORE_DELTA_MIN, &identity,
                                      &writer) == SLUICE_CORE_OK, "init");
    memcpy(before, shared, SLUICE_CORE_DELTA_MIN);

    memset(&view, 0, sizeof(view));
    view.base.base = base;
    view.base.size = base_size;
    view.delta = writer.space;
    published.base = published.delta = published.revision = 1;
}


int
main(void)
{
    char    folder[] = "/tmp/sluice-step-XXXXXX";
    size_t  i;

    state = test_seed("step");
    regexes = sluice_core_regexes_create(1 << 20);
    test_check(mkdtemp(folder) != NULL && chdir(folder) == 0, "folder");

    shared = mmap(NULL, SLUICE_CORE_DELTA_MIN, PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    page = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);
    before = make_memory(SLUICE_CORE_DELTA_MIN);
    prepare();

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        if (test_env("CASES", 3) >> i & 1) {
            stepper_run(&cases[i], test_env("LIMIT", 1000), &state);
        }
    }

    test_check(system("rm -rf \"$PWD\"") == 0, "folder");

    return 0;
}
