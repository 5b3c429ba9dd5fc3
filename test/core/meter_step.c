
/*
 * Counters and positions where a process dies at any instruction, and where
 * three take turns at instructions drawn at random.
 *
 * A death leaves at most its own request counted, and blocks nobody.  Of what
 * three processes ask at once exactly as much passes as may, also where the
 * lines of others come free under way, for some of them before others.
 */


#include "make.h"
#include "balance.h"
#include "meter_layout.h"
#include "stepper.h"

#include <stdlib.h>
#include <sys/mman.h>


#define HOUR      (1770000000ull / 3600 * 3600)
#define CHILDREN  3
#define ASKS      2
#define LIMIT     4


typedef struct {
    uint64_t                now[CHILDREN];
    uint64_t                passed[CHILDREN];
    sluice_core_position_t  position;
} shared_t;


static uint64_t               state;
static uint8_t               *area, *before;
static uint64_t               asked;           /* before the verb */
static shared_t              *shared;
static sluice_core_meter_t    meter;
static sluice_core_rule_t     rule, filler;
static int                    child;           /* of the next verb */
static uint8_t                rotation[64] __attribute__((aligned(8)));


static int
ask(sluice_core_rule_t *of, const char *name, uint64_t now)
{
    int                   full;
    sluice_core_taken_t   taken;

    full = sluice_core_meter_take(&meter, of, name, strlen(name), 0, now,
                                  &taken);
    test_check(full >= 0, "%s: no line", name);

    return full;
}


static void
reset(void)
{
    memcpy(area, before, SLUICE_CORE_METER_MIN);
    memset(shared, 0, sizeof(*shared));
}


static void
verb_take(void)
{
    (void) ask(&rule, "one", HOUR + 5);
}


/* Of the hour's limit, and then of the day's, all is left but one at most. */

static void
after_take(int whole)
{
    uint64_t  i, passed, next;

    for (i = 0, passed = asked; i < LIMIT + 2; i++) {
        passed += ask(&rule, "one", HOUR + 5) == 0;
    }

    for (i = 0, next = 0; i < 3; i++) {
        next += ask(&rule, "one", HOUR + 3600) == 0;
    }

    if (asked == LIMIT || (!whole && passed == LIMIT)) {
        test_check(passed == LIMIT && next == 1, "%lu, %lu", passed, next);

    } else {
        test_check(passed == LIMIT - 1 && (next == 1 || (next == 2 && !whole)),
                   "%lu, %lu", passed, next);
    }

    test_check(ask(&rule, "two", HOUR + 5) == 0, "another");
    test_check(ask(&filler, "filler 1", HOUR + 5) == 0, "a filler");
}


/* Of a refused one nothing stays; of one that died, one of the hour's. */

static void
after_refusal(int whole)
{
    uint64_t  i, passed;

    for (i = 0, passed = 0; i < 4; i++) {
        passed += ask(&filler, "one", HOUR + 86400) == 0;
    }

    test_check(passed == 2, "%lu the next day", passed);

    (void) whole;
}


static void
verb_refusal(void)
{
    (void) ask(&filler, "one", HOUR + 7);
}


static void
verb_turn(void)
{
    (void) sluice_core_balance((const void *) rotation, &shared->position, 5,
                               NULL, NULL);
}


static void
after_turn(int whole)
{
    int  i, target, counts[3] = { 0, 0, 0 };

    (void) whole;

    for (i = 0; i < 6; i++) {
        target = sluice_core_balance((const void *) rotation,
                                     &shared->position, 5, NULL, NULL);
        counts[target]++;
    }

    test_check(counts[0] == 3 && counts[1] == 2 && counts[2] == 1,
               "%d %d %d", counts[0], counts[1], counts[2]);
}


static const stepper_case_t  first = {
    "a first request", reset, verb_take, after_take
};

static const stepper_case_t  later = {
    "a later one", reset, verb_take, after_take
};

static const stepper_case_t  refused = {
    "one refused by the day", reset, verb_refusal, after_refusal
};

static const stepper_case_t  turn = {
    "a turn", reset, verb_turn, after_turn
};


/* Other lines all over, some of them free and some soon to be. */

static void
fill(uint64_t lines)
{
    char      name[40];
    uint64_t  i;

    memset(area, 0, SLUICE_CORE_METER_MIN);
    test_check(sluice_core_meter_init(area, SLUICE_CORE_METER_MIN,
                                      (const uint8_t *) "fedcba9876543210")
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(&meter, area, SLUICE_CORE_METER_MIN)
               == SLUICE_CORE_OK, "attach");

    for (i = 0; i < lines; i++) {
        (void) snprintf(name, sizeof(name), "%lu %lu", i, test_random(&state));
        (void) ask(&filler, name, HOUR - test_below(&state, 3));
    }
}


static void
deaths(uint64_t limit)
{
    uint64_t         i;
    const uint64_t   limits[SLUICE_CORE_PERIODS] = { 0, 0, LIMIT, LIMIT + 1 };
    const uint64_t   of_filler[SLUICE_CORE_PERIODS] = { 0, 0, 9, 2 };

    sluice_core_rule_set(&rule, 1, 1, limits, 5);
    sluice_core_rule_set(&filler, 2, 1, of_filler, 5);

    for (asked = 0; asked <= LIMIT; asked += 2) {
        fill(0);

        for (i = 0; i < asked; i++) {
            (void) ask(&rule, "one", HOUR + 5);
        }

        memcpy(before, area, SLUICE_CORE_METER_MIN);
        stepper_run(asked ? &later : &first, limit, &state);
    }

    fill(0);
    (void) ask(&filler, "one", HOUR + 5);
    (void) ask(&filler, "one", HOUR + 5);
    memcpy(before, area, SLUICE_CORE_METER_MIN);
    stepper_run(&refused, limit, &state);
    stepper_run(&turn, limit, &state);
}


static void
verb_asks(void)
{
    int  i;

    for (i = 0; i < ASKS; i++) {
        shared->passed[child] += ask(&rule, "one", shared->now[child]) == 0;
    }
}


static void
interleave(uint64_t number)
{
    int              i, left, done[CHILDREN];
    pid_t            pids[CHILDREN];
    uint64_t         n, limit, passed;
    uint64_t         limits[SLUICE_CORE_PERIODS] = { 0, 0, 0, 9 };
    const uint64_t   of_filler[SLUICE_CORE_PERIODS] = { 9 };

    limit = 1 + test_below(&state, CHILDREN * ASKS - 1);
    limits[SLUICE_CORE_HOUR] = limit;
    sluice_core_rule_set(&rule, 1, 1, limits, 5);
    sluice_core_rule_set(&filler, 2, 1, of_filler, 14);
    memset(shared, 0, sizeof(*shared));
    fill(test_below(&state, 13));

    for (child = 0; child < CHILDREN; child++) {
        shared->now[child] = HOUR + 2 + test_below(&state, 3);
        pids[child] = stepper_start(verb_asks);
        done[child] = 0;
    }

    for (left = CHILDREN; left > 0; ) {
        i = (int) test_below(&state, CHILDREN);
        n = 1 + test_below(&state, 1u << test_below(&state, 9));

        for ( /* void */ ; n > 0 && !done[i]; n--) {
            done[i] = stepper_step(pids[i]);
            left -= done[i];
        }
    }

    for (i = 0, passed = 0; i < CHILDREN; i++) {
        stepper_end(pids[i]);
        passed += shared->passed[i];
    }

    test_check(passed == limit, "%lu: %lu passed, not %lu", number, passed,
               limit);
}


int
main(void)
{
    uint64_t               i, ops, used;
    static const uint32_t  weights[] = { 3, 2, 1 };

    state = test_seed("meter_step");
    ops = test_env("OPS", 100);

    area = mmap(NULL, SLUICE_CORE_METER_MIN, PROT_READ|PROT_WRITE,
                MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    before = make_memory(SLUICE_CORE_METER_MIN);
    test_check(sluice_core_rotation_build(weights, 3, 8, rotation,
                                          sizeof(rotation), &used)
               == SLUICE_CORE_OK, "build");

    deaths(test_env("LIMIT", 3000));

    for (i = 0; i < ops; i++) {
        interleave(i);
    }

    printf("meter_step: %lu interleavings of %d\n", ops, CHILDREN);

    return 0;
}
