
/*
 * Counters and positions where a process dies at any instruction: it leaves at
 * most its own request counted, and blocks nobody.
 */


#include "make.h"
#include "balancer.h"
#include "meter_layout.h"
#include "stepper.h"

#include <stdlib.h>
#include <sys/mman.h>


#define HOUR   (1770000000ull / 3600 * 3600)
#define LIMIT  4


static uint64_t                     state;
static uint8_t                     *area, *before;
static uint64_t                     asked;     /* before the verb */
static sluice_balancer_position_t  *position;
static sluice_core_meter_t          meter;
static sluice_core_rule_t           rule, other;
static uint8_t                  balancer[64] __attribute__((aligned(8)));


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
    memset(position, 0, sizeof(*position));
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
    test_check(ask(&other, "another", HOUR + 5) == 0, "another rule");
}


/* Of a refused one nothing stays; of one that died, one of the hour's. */

static void
after_refusal(int whole)
{
    uint64_t  i, passed;

    for (i = 0, passed = 0; i < 4; i++) {
        passed += ask(&other, "one", HOUR + 86400) == 0;
    }

    test_check(passed == 2, "%lu the next day", passed);

    (void) whole;
}


static void
verb_refusal(void)
{
    (void) ask(&other, "one", HOUR + 7);
}


static void
verb_turn(void)
{
    (void) sluice_balancer_pick((const void *) balancer, position, 5, NULL,
                                NULL);
}


static void
after_turn(int whole)
{
    int  i, target, counts[3] = { 0, 0, 0 };

    (void) whole;

    for (i = 0; i < 6; i++) {
        target = sluice_balancer_pick((const void *) balancer, position, 5,
                                      NULL, NULL);
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


static void
start(void)
{
    memset(area, 0, SLUICE_CORE_METER_MIN);
    test_check(sluice_core_meter_init(area, SLUICE_CORE_METER_MIN,
                                      (const uint8_t *) "fedcba9876543210")
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(&meter, area, SLUICE_CORE_METER_MIN)
               == SLUICE_CORE_OK, "attach");
}


static void
deaths(uint64_t limit)
{
    uint64_t         i;
    const uint64_t   limits[SLUICE_CORE_PERIODS] = { 0, 0, LIMIT, LIMIT + 1 };
    const uint64_t   of_other[SLUICE_CORE_PERIODS] = { 0, 0, 9, 2 };

    sluice_core_rule_set(&rule, 1, 1, limits, 5);
    sluice_core_rule_set(&other, 2, 1, of_other, 5);

    for (asked = 0; asked <= LIMIT; asked += 2) {
        start();

        for (i = 0; i < asked; i++) {
            (void) ask(&rule, "one", HOUR + 5);
        }

        memcpy(before, area, SLUICE_CORE_METER_MIN);
        stepper_run(asked ? &later : &first, limit, &state);
    }

    start();
    (void) ask(&other, "one", HOUR + 5);
    (void) ask(&other, "one", HOUR + 5);
    memcpy(before, area, SLUICE_CORE_METER_MIN);
    stepper_run(&refused, limit, &state);
    stepper_run(&turn, limit, &state);
}


int
main(void)
{
    uint64_t               used;
    static const uint32_t  weights[] = { 3, 2, 1 };

    state = test_seed("meter_step");
    area = mmap(NULL, SLUICE_CORE_METER_MIN, PROT_READ|PROT_WRITE,
                MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    position = mmap(NULL, sizeof(*position), PROT_READ|PROT_WRITE,
                    MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    before = make_memory(SLUICE_CORE_METER_MIN);
    test_check(sluice_balancer_build(weights, 3, 8, balancer,
                                     sizeof(balancer), &used)
               == SLUICE_CORE_OK, "build");

    deaths(test_env("LIMIT", 3000));

    return 0;
}
