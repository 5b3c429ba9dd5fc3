
/*
 * Cache lines that a look-up touches with so many routes (the argument), of
 * which 1,000 have changed: the core is compiled as for TSan, whose callbacks
 * are ours and note each line that is read in the image or delta; texts that
 * are compared count by their first byte.  Those that are waited for are the
 * lines that were read before anybody has prefetched them, by the match or by
 * what follows it: whether the route has plugins.
 */


#include "lines.h"
#include "make.h"
#include "delta.h"

#include <stdlib.h>


#define LINES_MAX   256
#define LINES_ASKS  2000
#define LINES_CHANGES  1000
#define LINES_DELTA  (8u << 20)


static const uint8_t  *low, *high;         /* the image */
static const uint8_t  *delta;

typedef struct {
    uint64_t           lines[LINES_MAX];
    unsigned           count;
} lines_t;

static lines_t         seen, asked;        /* read, prefetched */
static unsigned        waited;


/* Was it not there before? */

static int
lines_add(lines_t *to, const void *address)
{
    unsigned        i;
    uint64_t        line;
    const uint8_t  *p = address;

    if ((p < low || p >= high)
        && (delta == NULL || p < delta || p >= delta + LINES_DELTA))
    {
        return 0;
    }

    line = (uint64_t) p / SLUICE_CORE_LINE;

    for (i = 0; i < to->count && to->lines[i] != line; i++) { /* void */ }

    if (i < to->count || i == LINES_MAX) {
        return 0;
    }

    to->lines[to->count++] = line;

    return 1;
}


static void
lines_note(const void *address)
{
    if (lines_add(&seen, address)) {
        waited += (unsigned) lines_add(&asked, address);
    }
}


void
lines_prefetch(const void *address)
{
    (void) lines_add(&asked, address);
}


#define lines_read(n)                                                         \
    void __tsan_read##n(void *p);                                             \
    void __tsan_unaligned_read##n(void *p);                                   \
    void __tsan_write##n(void *p);                                            \
    void __tsan_unaligned_write##n(void *p);                                  \
    void __tsan_read##n(void *p) { lines_note(p); }                           \
    void __tsan_unaligned_read##n(void *p) { lines_note(p); }                 \
    void __tsan_write##n(void *p) { (void) p; }                               \
    void __tsan_unaligned_write##n(void *p) { (void) p; }

lines_read(1)
lines_read(2)
lines_read(4)
lines_read(8)
lines_read(16)

void __tsan_init(void);
void __tsan_func_entry(void *p);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t n);
void __tsan_write_range(void *p, size_t n);
uint64_t __tsan_atomic64_load(const uint64_t *p, int order);
uint32_t __tsan_atomic32_load(const uint32_t *p, int order);
void __tsan_atomic64_store(uint64_t *p, uint64_t v, int order);
void __tsan_atomic32_store(uint32_t *p, uint32_t v, int order);
uint64_t __tsan_atomic64_fetch_or(uint64_t *p, uint64_t v, int order);

void __tsan_init(void) { /* void */ }
void __tsan_func_entry(void *p) { (void) p; }
void __tsan_func_exit(void) { /* void */ }
void __tsan_write_range(void *p, size_t n) { (void) p; (void) n; }


void
__tsan_read_range(void *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        lines_note((uint8_t *) p + i);
    }
}


uint64_t
__tsan_atomic64_load(const uint64_t *p, int order)
{
    (void) order;
    lines_note(p);

    return *(const volatile uint64_t *) p;
}


uint32_t
__tsan_atomic32_load(const uint32_t *p, int order)
{
    (void) order;
    lines_note(p);

    return *(const volatile uint32_t *) p;
}


void
__tsan_atomic64_store(uint64_t *p, uint64_t v, int order)
{
    (void) order;
    *p = v;
}


void
__tsan_atomic32_store(uint32_t *p, uint32_t v, int order)
{
    (void) order;
    *p = v;
}


uint64_t
__tsan_atomic64_fetch_or(uint64_t *p, uint64_t v, int order)
{
    uint64_t  old = *p;

    (void) order;
    *p = old | v;

    return old;
}


/* The delta's bytes; the view sees them. */

static uint8_t *
lines_changes(sluice_core_view_t *view, const sluice_core_entity_t *entities,
    uint64_t routes, uint64_t *state)
{
    uint64_t                 i;
    uint8_t                 *memory;
    sluice_core_entity_t     change;
    sluice_core_writer_t     writer;
    sluice_core_identity_t   identity;

    memory = make_memory(LINES_DELTA);
    memset(memory, 0, LINES_DELTA);
    memset(&identity, 0, sizeof(identity));
    test_check(sluice_core_delta_init(memory, LINES_DELTA, &identity, &writer)
               == SLUICE_CORE_OK, "delta");
    view->delta = writer.space;
    view->revision = 1;

    for (i = 0; i < LINES_CHANGES; i++) {
        change = entities[test_below(state, routes)];
        test_check(sluice_core_delta_stage(&writer, view, &change, 1,
                                           view->revision + 1)
                   == SLUICE_CORE_OK, "stage");
        sluice_core_delta_link(&writer);
        view->revision++;
    }

    return memory;
}


static void
lines_of(uint64_t routes, uint64_t *state)
{
    /* Long on purpose: one experiment, from the image to the counts. */

    char                   (*texts)[2][40];
    uint8_t                 *image, *changes;
    uint64_t                 i, n, size, total, most, waits;
    sluice_core_text_t      *pairs;
    sluice_core_view_t       view;
    sluice_core_match_t      match;
    sluice_core_entity_t    *entities;
    sluice_core_request_t    request;

    texts = calloc(routes, sizeof(*texts));
    pairs = calloc(2 * routes, sizeof(*pairs));
    entities = calloc(routes, sizeof(*entities));

    for (i = 0; i < routes; i++) {
        (void) snprintf(texts[i][0], 40, "service-%lu.example.com", i / 4);
        (void) snprintf(texts[i][1], 40, "/api/v1/resource-%lu", i);

        for (n = 0; n < 2; n++) {
            pairs[2 * i + n].data = texts[i][n];
            pairs[2 * i + n].length = (uint32_t) strlen(texts[i][n]);
        }

        entities[i].kind = SLUICE_CORE_ROUTE;
        entities[i].slot = (uint32_t) i;
        entities[i].fields[SLUICE_CORE_ROUTE_HOSTS].data = &pairs[2 * i];
        entities[i].fields[SLUICE_CORE_ROUTE_HOSTS].count = 1;
        entities[i].fields[SLUICE_CORE_ROUTE_PATHS].data = &pairs[2 * i + 1];
        entities[i].fields[SLUICE_CORE_ROUTE_PATHS].count = 1;
    }

    image = make_image(entities, routes, 1, &size);
    memset(&view, 0, sizeof(view));
    view.base.base = image;
    view.base.size = size;
    changes = lines_changes(&view, entities, routes, state);

    for (i = 0, total = 0, most = 0, waits = 0; i < LINES_ASKS; i++) {
        n = test_below(state, routes);
        memset(&request, 0, sizeof(request));
        request.host = pairs[2 * n];
        request.path = pairs[2 * n + 1];

        low = image;
        high = image + size;
        delta = changes;
        seen.count = 0;
        asked.count = 0;
        waited = 0;
        test_check(sluice_core_match(&view, &request, NULL, &match)
                   == SLUICE_CORE_OK, "no match");
        total += seen.count;
        most = seen.count > most ? seen.count : most;

        (void) sluice_core_has_children(&view, SLUICE_CORE_PLUGIN,
                                        &match.route);
        low = high;
        delta = NULL;

        waits += waited;
    }

    printf("cold_lines %.3f\nmost_lines %lu\nwaited_lines %.3f\n",
           (double) total / LINES_ASKS, most, (double) waits / LINES_ASKS);

    free(image);
    free(changes);
    free(entities);
    free(pairs);
    free(texts);
}


int
main(int argc, char **argv)
{
    uint64_t  state;

    state = test_seed("lines");
    lines_of(argc > 1 ? strtoull(argv[1], NULL, 10) : 100000, &state);

    return 0;
}
