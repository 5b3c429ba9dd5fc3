
/*
 * One writer, many readers, under TSan: every transaction changes all routes
 * and services at once, and a reader that has loaded a revision finds each of
 * them as that revision left it, by slot and by match.  The writer waits for
 * them now and then, whichever thread has the CPU: each has something to read.
 */


#include "make.h"
#include "delta.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>


#define THREADS_READERS  4
#define THREADS_PAIRS    6
#define THREADS_DELTAS   4096

/* Transactions to a read of all, at most. */
#define THREADS_FOR_A_READ  100


typedef struct {
    sluice_core_space_t  base;
    sluice_core_space_t  delta;
} generation_t;


static uint64_t             transactions;
static sluice_core_page_t  *page;
static generation_t         generations[THREADS_DELTAS];
static sluice_core_text_t   paths[THREADS_PAIRS];
static char                 texts[THREADS_PAIRS][8];
static _Atomic uint64_t     reads;


static void
fill(sluice_core_entity_t *entities, uint64_t revision)
{
    uint32_t               i;
    sluice_core_entity_t  *route, *service;

    memset(entities, 0, 2 * THREADS_PAIRS * sizeof(sluice_core_entity_t));

    for (i = 0; i < THREADS_PAIRS; i++) {
        route = &entities[2 * i];
        route->kind = SLUICE_CORE_ROUTE;
        route->slot = i;
        route->revision = revision;
        route->fields[SLUICE_CORE_ROUTE_SERVICE].number = i;
        route->fields[SLUICE_CORE_ROUTE_PATHS].data = &paths[i];
        route->fields[SLUICE_CORE_ROUTE_PATHS].count = 1;

        /* every third time every second route is not there */

        route->gone = revision % 3 == 0 && i % 2;

        service = &entities[2 * i + 1];
        service->kind = SLUICE_CORE_SERVICE;
        service->slot = i;
        service->revision = revision;
    }
}


static size_t
without_gone(sluice_core_entity_t *entities)
{
    size_t  i, n;

    for (i = 0, n = 0; i < 2 * THREADS_PAIRS; i++) {

        if (!entities[i].gone) {
            entities[n++] = entities[i];
        }
    }

    return n;
}


static void
new_generation(uint64_t number, uint64_t revision,
    sluice_core_writer_t *writer)
{
    void                    *memory;
    uint64_t                 size;
    sluice_core_entity_t     entities[2 * THREADS_PAIRS];
    sluice_core_identity_t   identity;

    test_check(number < THREADS_DELTAS, "too many deltas");
    fill(entities, revision);

    generations[number].base.base = make_image(entities,
                                               without_gone(entities),
                                               revision, &size);
    generations[number].base.size = size;

    memory = make_memory(SLUICE_CORE_DELTA_MIN);
    memset(memory, 0, SLUICE_CORE_DELTA_MIN);
    memset(&identity, 0, sizeof(identity));
    identity.revision = revision;
    test_check(sluice_core_delta_init(memory, SLUICE_CORE_DELTA_MIN, &identity,
                                      writer) == SLUICE_CORE_OK, "init");
    generations[number].delta = writer->space;
}


static void *
write_all(void *data)
{
    int                       rc;
    uint64_t                  revision;
    sluice_core_view_t        view;
    sluice_core_entity_t      entities[2 * THREADS_PAIRS];
    sluice_core_writer_t      writer;
    sluice_core_published_t   published;

    (void) data;

    memset(&published, 0, sizeof(published));
    new_generation(0, 1, &writer);

    for (revision = 1; revision <= transactions; revision++) {

        while (revision > 1 && reads < revision / THREADS_FOR_A_READ) {
            (void) sched_yield();
        }

        if (revision > 1) {
            view.base = generations[published.base].base;
            view.delta = generations[published.base].delta;
            view.revision = revision - 1;

            fill(entities, revision);
            rc = sluice_core_delta_stage(&writer, &view, entities,
                                         2 * THREADS_PAIRS, revision);

            if (rc == SLUICE_CORE_FULL) {
                published.base++;
                new_generation(published.base, revision, &writer);

            } else {
                test_check(rc == SLUICE_CORE_OK, "stage: %s",
                           sluice_core_word(rc));
                sluice_core_delta_link(&writer);
            }
        }

        published.delta = published.base;
        published.revision = revision;
        sluice_core_publish(page, &published);
    }

    return NULL;
}


static void
check_pair(const sluice_core_view_t *view, uint32_t i,
    sluice_core_regexes_t *regexes)
{
    int                     rc, gone;
    sluice_core_found_t     found;
    sluice_core_match_t     match;
    sluice_core_request_t   request;

    gone = view->revision % 3 == 0 && i % 2;

    found = sluice_core_by_slot(view, SLUICE_CORE_SERVICE, i);
    test_check(found.record && found.record->revision == view->revision,
               "service %u at %lu", i, view->revision);

    memset(&request, 0, sizeof(request));
    request.path = paths[i];
    request.port = -1;
    rc = sluice_core_match(view, &request, regexes, &match);

    test_check(rc == (gone ? SLUICE_CORE_NONE : SLUICE_CORE_OK), "%s",
               sluice_core_word(rc));
    test_check(gone || (match.slot == i && match.revision == view->revision),
               "route %u of %lu at %lu", match.slot, match.revision,
               view->revision);
}


static void *
read_all(void *data)
{
    int                       rc;
    uint32_t                  i;
    uint64_t                  last;
    sluice_core_view_t        view;
    sluice_core_regexes_t    *regexes;
    sluice_core_published_t   published;

    (void) data;
    regexes = sluice_core_regexes_create(4096);
    last = 0;

    while (last < transactions) {
        rc = sluice_core_published(page, &published);

        if (rc != SLUICE_CORE_OK) {
            continue;
        }

        test_check(published.revision >= last, "back in time");
        test_check(published.base == published.delta, "torn");
        last = published.revision;

        view.base = generations[published.base].base;
        view.delta = generations[published.delta].delta;
        view.revision = last;

        for (i = 0; i < THREADS_PAIRS; i++) {
            check_pair(&view, i, regexes);
        }

        /* as a worker does that comes after a crash */

        rc = sluice_core_delta_check(view.delta.base, SLUICE_CORE_DELTA_MIN);
        test_check(rc == SLUICE_CORE_OK, "check: %s", sluice_core_word(rc));

        atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed);
    }

    sluice_core_regexes_destroy(regexes);

    return NULL;
}


int
main(void)
{
    int        i;
    pthread_t  threads[THREADS_READERS + 1];

    (void) test_seed("threads");
    transactions = test_env("OPS", 5000);

    page = make_memory(4096);
    memset((void *) page, 0, 4096);

    for (i = 0; i < THREADS_PAIRS; i++) {
        (void) snprintf(texts[i], sizeof(texts[i]), "/%d", i);
        paths[i].data = texts[i];
        paths[i].length = 2;
    }

    for (i = 0; i <= THREADS_READERS; i++) {
        test_check(pthread_create(&threads[i], NULL,
                                  i == 0 ? write_all : read_all, NULL) == 0,
                   "thread");
    }

    for (i = 0; i <= THREADS_READERS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    printf("threads: %lu transactions, %lu reads of all\n", transactions,
           (uint64_t) reads);
    test_check(reads >= transactions / THREADS_FOR_A_READ, "too few");

    return 0;
}
