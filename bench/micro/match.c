
/*
 * What the core costs with so many routes (the argument): building, checking,
 * mapping, matching with caches swept, changing.  Lines "name value", medians
 * of one run; the lab's scenario "match" repeats it.
 */


#include "make.h"
#include "delta.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


#define BENCH_SWEEP    (64u << 20)
#define BENCH_BATCH    16
#define BENCH_ROUNDS   60
#define BENCH_CHANGES  1000
#define BENCH_RANDOM   2000


static uint64_t               state, texts;
static sluice_core_entity_t  *entities;
static sluice_core_text_t    *pairs;      /* host and path of each route */
static uint8_t               *sweep;


static char *
bench_text(const char *format, uint64_t n, sluice_core_text_t *text)
{
    char  *p;
    int    length;

    length = snprintf(NULL, 0, format, (unsigned long long) n);
    p = malloc((size_t) length + 1);
    test_check(p != NULL, "no memory");
    (void) snprintf(p, (size_t) length + 1, format, (unsigned long long) n);
    text->data = p;
    text->length = (uint32_t) length;
    texts += (uint64_t) length + 5;

    return p;
}


static void
bench_entities(uint64_t count)
{
    uint64_t               i;
    sluice_core_entity_t  *e;

    entities = calloc(count, sizeof(sluice_core_entity_t));
    pairs = calloc(2 * count, sizeof(sluice_core_text_t));
    test_check(entities && pairs, "no memory");
    texts = 0;

    for (i = 0; i < count; i++) {
        (void) bench_text("service-%llu.example.com", i / 4, &pairs[2 * i]);
        (void) bench_text("/api/v1/resource-%llu", i, &pairs[2 * i + 1]);

        e = &entities[i];
        e->kind = SLUICE_CORE_ROUTE;
        e->slot = (uint32_t) i;
        e->sequence = i;
        e->revision = 1;
        e->fields[SLUICE_CORE_ROUTE_SERVICE].number = 0;
        e->fields[SLUICE_CORE_ROUTE_HOSTS].data = &pairs[2 * i];
        e->fields[SLUICE_CORE_ROUTE_HOSTS].count = 1;
        e->fields[SLUICE_CORE_ROUTE_PATHS].data = &pairs[2 * i + 1];
        e->fields[SLUICE_CORE_ROUTE_PATHS].count = 1;
    }
}


static void
bench_say(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
}


static int
bench_order(const void *a, const void *b)
{
    double  da = *(const double *) a, db = *(const double *) b;

    return (da > db) - (da < db);
}


static void
bench_sweep(void)
{
    size_t  i;

    for (i = 0; i < BENCH_SWEEP; i += 64) {
        sweep[i]++;
    }
}


/* Cold are the caches, not the pages: a first touch of one is a fault. */

static void
bench_touch(const sluice_core_space_t *space)
{
    uint64_t                i;
    volatile const uint8_t *p;

    for (i = 0, p = space->base; i < space->size; i += 4096) {
        (void) p[i];
    }
}


static double
bench_match(const sluice_core_view_t *view, uint64_t count)
{
    int                     i, j;
    double                  begun, spent[BENCH_ROUNDS];
    uint64_t                n, sum;
    sluice_core_match_t     match;
    sluice_core_request_t   requests[BENCH_BATCH];

    sum = 0;

    for (i = 0; i < BENCH_ROUNDS; i++) {
        memset(requests, 0, sizeof(requests));

        for (j = 0; j < BENCH_BATCH; j++) {
            n = test_below(&state, count);
            requests[j].host = pairs[2 * n];
            requests[j].path = pairs[2 * n + 1];
            requests[j].method.data = "GET";
            requests[j].method.length = 3;
            requests[j].port = 80;
        }

        bench_sweep();

        /* what a request has just read is in the cache */

        for (j = 0; j < BENCH_BATCH; j++) {
            n = (uint64_t) requests[j].host.data[0]
                + (uint64_t) requests[j].path.data[0];
            sum += n;
        }

        begun = test_now();

        for (j = 0; j < BENCH_BATCH; j++) {
            test_check(sluice_core_match(view, &requests[j], NULL, &match)
                       == SLUICE_CORE_OK, "no match");
            sum += match.slot;
        }

        spent[i] = test_now() - begun;
    }

    test_check(sum != 0, "sum");
    qsort(spent, BENCH_ROUNDS, sizeof(double), bench_order);

    return spent[BENCH_ROUNDS / 2] / BENCH_BATCH * 1e9;
}


/* One after the other at random: what is shared stays in the caches. */

static double
bench_random(const sluice_core_view_t *view, uint64_t count)
{
    int                     i, j;
    double                  begun, spent[BENCH_ROUNDS];
    uint64_t                n;
    sluice_core_match_t     match;
    sluice_core_request_t   request;

    memset(&request, 0, sizeof(request));
    request.port = 80;

    for (i = 0; i < BENCH_ROUNDS; i++) {
        begun = test_now();

        for (j = 0; j < BENCH_RANDOM; j++) {
            n = test_below(&state, count);
            request.host = pairs[2 * n];
            request.path = pairs[2 * n + 1];
            test_check(sluice_core_match(view, &request, NULL, &match)
                       == SLUICE_CORE_OK, "no match");
        }

        spent[i] = test_now() - begun;
    }

    qsort(spent, BENCH_ROUNDS, sizeof(double), bench_order);

    return spent[BENCH_ROUNDS / 2] / BENCH_RANDOM * 1e9;
}


static void
bench_changes(sluice_core_view_t *view, uint64_t count)
{
    int                       i;
    void                     *memory;
    double                    begun, spent[BENCH_CHANGES];
    uint64_t                  size;
    sluice_core_page_t       *page;
    sluice_core_entity_t      change;
    sluice_core_writer_t      writer;
    sluice_core_identity_t    identity;
    sluice_core_published_t   published;

    size = 8u << 20;
    memory = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                  -1, 0);
    page = make_memory(4096);
    memset((void *) page, 0, 4096);
    memset(&identity, 0, sizeof(identity));
    memset(&published, 0, sizeof(published));
    (void) sluice_core_delta_init(memory, size, &identity, &writer);
    view->delta = writer.space;

    for (i = 0; i < BENCH_CHANGES; i++) {
        change = entities[test_below(&state, count)];
        change.revision = view->revision + 1;

        begun = test_now();
        test_check(sluice_core_delta_stage(&writer, view, &change, 1,
                                           view->revision + 1)
                   == SLUICE_CORE_OK, "stage");
        sluice_core_delta_link(&writer);
        published.revision = ++view->revision;
        sluice_core_publish(page, &published);
        spent[i] = (test_now() - begun) * 1e6;
    }

    qsort(spent, BENCH_CHANGES, sizeof(double), bench_order);
    bench_say("publish_us_p50", spent[BENCH_CHANGES / 2]);
    bench_say("publish_us_p99", spent[BENCH_CHANGES * 99 / 100]);
    bench_say("bytes_per_change",
              (double) (writer.linked
                        - ((sluice_core_delta_t *) memory)->arena)
              / BENCH_CHANGES);

    free((void *) page);
}


static void
bench(uint64_t count)
{
    int                      rc;
    double                   begun, build, check, map;
    uint8_t                 *image;
    uint64_t                 bound, used;
    sluice_core_view_t       view;
    sluice_core_live_t       live;
    sluice_core_space_t      space;
    sluice_core_identity_t   identity;
    static const char        path[] = "/dev/shm/sluice-core-bench";

    bench_entities(count);
    memset(&identity, 0, sizeof(identity));

    bound = sluice_core_image_bound(entities, count);
    image = mmap(NULL, bound, PROT_READ|PROT_WRITE,
                 MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    test_check(image != MAP_FAILED, "no memory");

    begun = test_now();
    rc = sluice_core_image_build(&identity, entities, count, image, bound,
                                 &used);
    build = test_now() - begun;
    test_check(rc == SLUICE_CORE_OK, "build: %s", sluice_core_word(rc));

    begun = test_now();
    rc = sluice_core_check(image, used);
    check = test_now() - begun;
    test_check(rc == SLUICE_CORE_OK, "check: %s", sluice_core_word(rc));

    test_check(sluice_core_file_write(path, image, used, 0) == SLUICE_CORE_OK,
               "write");
    munmap(image, bound);

    begun = test_now();
    rc = sluice_core_file_open(path, (uint32_t) geteuid(),
                               SLUICE_CORE_HEADER_ONLY, &space);
    map = test_now() - begun;
    test_check(rc == SLUICE_CORE_OK, "open: %s", sluice_core_word(rc));

    bench_say("build_ms", build * 1e3);
    bench_say("check_ms", check * 1e3);
    bench_say("map_us", map * 1e6);
    bench_say("image_bytes_per_route",
              (double) (used - texts) / (double) count);

    memset(&view, 0, sizeof(view));
    view.base = space;
    view.revision = 1;
    bench_touch(&space);

    bench_say("match_ns_without_delta", bench_match(&view, count));
    bench_changes(&view, count);
    bench_say("match_ns", bench_match(&view, count));
    bench_say("match_ns_at_random", bench_random(&view, count));

    begun = test_now();
    rc = sluice_core_live(&view, NULL, 0, &live);
    test_check(rc == SLUICE_CORE_OK, "live");
    bench_say("live_ms", (test_now() - begun) * 1e3);

    sluice_core_live_free(&live);
    sluice_core_file_close(&space);
    (void) unlink(path);
}


int
main(int argc, char **argv)
{
    state = test_seed("bench");
    sweep = calloc(1, BENCH_SWEEP);
    test_check(sweep != NULL, "no memory");

    bench(argc > 1 ? strtoull(argv[1], NULL, 10) : 100000);

    return 0;
}
