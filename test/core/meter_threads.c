
/*
 * Many threads under TSan: of an identifier that all meet at once exactly as
 * many pass as its limit says, also where lines end, come free and are taken
 * meanwhile and clocks differ; and turns are shared exactly.
 */


#include "make.h"
#include "balancer.h"
#include "meter.h"

#include <pthread.h>
#include <stdlib.h>


#define THREADS   8
#define TARGETS   5


static uint64_t                 rounds, seed;
static pthread_barrier_t        barrier;
static sluice_core_meter_t      meter;
static _Atomic uint64_t         passed, fillers, shared;
static _Atomic uint64_t         turns[TARGETS];
static uint8_t                    *balancer;
static sluice_balancer_position_t  position;
static const uint32_t              weights[TARGETS] = { 7, 1, 0, 4, 3 };


/* An hour's limit is what counts; seconds go on under way. */

static void
take_round(uint64_t number, uint64_t *state)
{
    int                   full;
    char                  name[40];
    uint64_t              i, now, limit;
    sluice_core_rule_t    rule, filler;
    sluice_core_taken_t   taken;
    uint64_t              limits[SLUICE_CORE_PERIODS] = { 9, 0, 7, 0, 0, 0 };
    const uint64_t        short_ones[SLUICE_CORE_PERIODS] = { 9 };

    /* most of 16 lines go to fillers, and come free meanwhile, for some */

    limit = 1 + number % 7;
    limits[SLUICE_CORE_HOUR] = limit;
    now = 1770000000 / 3600 * 3600 + 7200 * number;
    sluice_core_rule_set(&rule, 1, (uint32_t) number, limits, 16);
    sluice_core_rule_set(&filler, 2, (uint32_t) number, short_ones, 16);

    for (i = 0; i < 4 + limit; i++) {

        if (test_below(state, 2)) {
            (void) snprintf(name, sizeof(name), "filler %lu",
                            test_below(state, 9));
            (void) sluice_core_meter_take(&meter, &filler, name, 8, 0,
                                          now + test_below(state, 2), &taken);
            atomic_fetch_add(&fillers, 1);
        }

        full = sluice_core_meter_take(&meter, &rule, "one", 3, 0,
                                      now + 3 + test_below(state, 2), &taken);
        test_check(full >= 0, "%d", full);
        atomic_fetch_add(&passed, full == 0);
        atomic_fetch_add(&shared, taken.is_shared);
    }
}


static void *
run(void *data)
{
    int       target;
    uint64_t  n, i, thread, state;

    thread = (uint64_t) (uintptr_t) data;
    state = seed + thread;

    for (n = 0; n < rounds; n++) {
        (void) pthread_barrier_wait(&barrier);
        for (i = 0; i < 15; i++) {
            /* a new generation each time: all begin it at once */

            target = sluice_balancer_pick((const void *) balancer, &position,
                                          (uint32_t) n + 1, NULL, NULL);
            atomic_fetch_add(&turns[target], 1);
        }

        take_round(n, &state);

        (void) pthread_barrier_wait(&barrier);

        if (thread == 0) {
            test_check(passed == 1 + n % 7, "round %lu: %lu passed, not %lu",
                       n, passed, 1 + n % 7);
            atomic_store(&passed, 0);
        }
    }

    return NULL;
}


int
main(void)
{
    int         i;
    void       *memory;
    uint64_t    size;
    pthread_t   threads[THREADS];

    seed = test_seed("meter_threads");
    rounds = test_env("OPS", 3000);
    (void) pthread_barrier_init(&barrier, NULL, THREADS);

    memory = make_memory(SLUICE_CORE_METER_MIN);
    memset(memory, 0, SLUICE_CORE_METER_MIN);
    test_check(sluice_core_meter_init(memory, SLUICE_CORE_METER_MIN,
                                      (const uint8_t *) "0123456789abcdef")
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(&meter, memory, SLUICE_CORE_METER_MIN)
               == SLUICE_CORE_OK, "attach");

    balancer = make_memory(sluice_balancer_bound(TARGETS, 100));
    test_check(sluice_balancer_build(weights, TARGETS, 100, balancer,
                                sluice_balancer_bound(TARGETS, 100),
                                &size) == SLUICE_CORE_OK, "build");

    for (i = 0; i < THREADS; i++) {
        test_check(pthread_create(&threads[i], NULL, run,
                                  (void *) (uintptr_t) i) == 0, "thread");
    }

    for (i = 0; i < THREADS; i++) {
        (void) pthread_join(threads[i], NULL);
    }

    for (i = 0; i < TARGETS; i++) {
        test_check(turns[i] == rounds * THREADS * weights[i],
                   "%lu turns of %d", turns[i], i);
    }

    printf("meter_threads: %lu rounds, %lu requests by others, %lu of the "
           "identifier had no line\n", rounds, fillers, shared);

    return 0;
}
