
/*
 * Many threads under TSan, each as a process: values that all meet at once
 * have one line, sums are exact, and texts that are made meanwhile are whole.
 */


#include "make.h"
#include "series_layout.h"

#include <pthread.h>


#define THREADS  8
#define NAMES    400
#define LINES    300


static void               *area;
static uint64_t            size, seed, rounds;
static uint32_t            lines[THREADS][NAMES];
static pthread_barrier_t   barrier;

/* Who loses a race leaves its text behind: there is room for all of them. */

static const sluice_series_shape_t  shape = {
    { LINES, 1, 1 }, { 1, 1, 1 }, THREADS - 2, 256
};


static void
scrape(const sluice_series_t *series)
{
    char                        text[65536];
    uint32_t                    next;
    sluice_core_text_t          piece;
    sluice_series_row_t         row;
    sluice_exposition_row_t     samples;
    sluice_exposition_sample_t  sample;

    memset(&sample, 0, sizeof(sample));
    memset(&row, 0, sizeof(row));
    samples.samples = &sample;
    samples.count = 1;
    piece.data = "a=";
    piece.length = 2;
    row.row = &samples;
    row.pieces = &piece;
    row.count = 1;
    next = 0;

    do {
        (void) sluice_series_write(series, &row, &next, text, sizeof(text));
    } while (next);
}


static void *
run(void *data)
{
    char                 name[40];
    uint64_t             i, n, thread, state;
    uint32_t             line;
    sluice_series_t      series;
    sluice_core_text_t   value;

    thread = (uint64_t) (uintptr_t) data;
    state = seed + thread;

    test_check(sluice_series_attach(&series, area, size) == SLUICE_CORE_OK,
               "attach");
    sluice_series_use(&series, (uint32_t) thread);

    for (i = 0; i < NAMES; i++) {
        value.data = name;
        value.length = (uint32_t) sprintf(name, "name %lu", i);

        if (i % 16 == 0) {
            (void) pthread_barrier_wait(&barrier);
        }

        for (n = 0; n < rounds; n++) {
            line = sluice_series_find(&series, 0, &value, 1);
            sluice_series_add(sluice_series_numbers(&series, 0, line), 1);

            test_check(n == 0 || line == lines[thread][i] || line == 0
                       || lines[thread][i] == 0, "%u", line);
            lines[thread][i] = line;
        }

        if (test_below(&state, 20) == 0) {
            scrape(&series);
        }
    }

    return NULL;
}


static void
check(void)
{
    uint32_t         i, j, named;
    uint64_t         number, all, sums[LINES + 1];
    sluice_series_t  series;

    test_check(sluice_series_attach(&series, area, size) == SLUICE_CORE_OK,
               "attach");

    for (i = 0, named = 0; i < NAMES; i++) {
        for (j = 1; j < THREADS; j++) {
            test_check(lines[j][i] == lines[0][i] || i >= LINES - THREADS,
                       "name %u: lines %u and %u", i, lines[0][i],
                       lines[j][i]);
        }

        named += lines[0][i] != 0;
    }

    /*
     * Each thread may hold one line in reserve, an early one too, and name
     * it after the others found no room: only the first names are exact.
     */

    for (i = 0, all = 0; i <= LINES; i++) {
        for (j = 0, number = 0; j < shape.stripes; j++) {
            series.stripe = j;
            number += *sluice_series_numbers(&series, 0, i);
        }

        sums[i] = number;
        all += number;

        test_check(i == 0 || number <= THREADS * rounds, "line %u: %lu", i,
                   number);
    }

    for (i = 0; i < LINES - THREADS; i++) {
        number = sums[lines[0][i]];

        test_check(lines[0][i] && number == THREADS * rounds,
                   "name %u, line %u: %lu", i, lines[0][i], number);
    }

    test_check(all == (uint64_t) THREADS * NAMES * rounds, "%lu in all", all);
    test_check(named >= LINES - THREADS, "%u named", named);

    printf("series_threads: %u of %u lines have a name\n", named, LINES);
}


int
main(void)
{
    int        i;
    pthread_t  threads[THREADS];

    seed = test_seed("series_threads");
    rounds = test_env("OPS", 50);
    (void) pthread_barrier_init(&barrier, NULL, THREADS);

    size = sluice_series_size(&shape);
    area = make_memory(size);
    memset(area, 0, size);
    test_check(sluice_series_init(area, size, &shape,
                                  (const uint8_t *) "0123456789abcdef")
               == SLUICE_CORE_OK, "init");

    for (i = 0; i < THREADS; i++) {
        test_check(pthread_create(&threads[i], NULL, run,
                                  (void *) (uintptr_t) i) == 0, "thread");
    }

    for (i = 0; i < THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    check();

    return 0;
}
