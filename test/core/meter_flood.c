
/*
 * Floods of invented identifiers, lines that are used again, and areas that
 * hold another worker's garbage.
 */


#include "meter_support.h"

#include <stdlib.h>


#define FLOOD_RULES  8


static uint64_t  state;
static uint64_t  hostile_passed, hostile_full;


/* Who invents identifiers resets nothing, and leaves others their share. */

static void
check_flood(void)
{
    int                   full;
    void                 *memory;
    uint32_t              share, r;
    uint64_t              i, now, lines, passed, unlucky;
    sluice_core_meter_t   meter;
    sluice_core_rule_t    flooded, other, late;
    sluice_core_taken_t   taken;
    const uint64_t        limits[SLUICE_CORE_PERIODS] = { 0, 0, 2, 2, 0, 0 };

    now = BEGUN / 86400 * 86400;
    memory = meter_make(256u << 10, &state, &meter);
    lines = meter.groups * SLUICE_CORE_OWNERS;
    share = sluice_core_meter_share(&meter, FLOOD_RULES);
    test_check(share + 1 == lines / 4 / FLOOD_RULES, "a share of %u", share);
    sluice_core_rule_set(&flooded, 1, 1, limits, share);
    sluice_core_rule_set(&other, 2, 1, limits, share);

    for (i = 0; i < 3; i++) {
        test_check(meter_ask(&meter, &other, "early", 0, now, &taken)
                   == (i == 2), "early");
        test_check(meter_ask(&meter, &flooded, "early", 0, now, &taken)
                   == (i == 2), "early");
    }

    /* those without a line count together: two pass */

    for (i = 0, unlucky = 0, passed = 0; i < 5 * lines; i++) {
        full = meter_ask(&meter, &flooded, "flood", i, now, &taken);
        test_check(full == 0 || (full == 1 && taken.is_shared), "%d", full);
        unlucky += taken.is_shared;
        passed += full == 0 && taken.is_shared;
    }

    test_check(passed == 2, "%lu passed of those without a line", passed);
    test_check(5 * lines - unlucky > lines / 2 - lines / 50
               && 5 * lines - unlucky < lines / 2 + lines / 4,
               "%lu of %lu lines", 5 * lines - unlucky, lines);

    for (i = 0; i < 3; i++) {
        test_check(meter_ask(&meter, &other, "early", 0, now, &taken) == 1,
                   "reset");
        test_check(meter_ask(&meter, &flooded, "early", 0, now, &taken) == 1,
                   "reset");
    }

    /* the others' shares are there, all of them */

    for (r = 0, unlucky = 0; r < FLOOD_RULES - 1; r++) {
        sluice_core_rule_set(&late, 3 + r, 1, limits, share);

        for (i = 0; i < share; i++) {
            full = meter_ask(&meter, &late, "late", i, now, &taken);
            unlucky += taken.is_shared;
            test_check(full == 0 || taken.is_shared, "%d", full);
        }
    }

    test_check(unlucky * 50 < lines / 4, "%lu of %lu without a line", unlucky,
               lines / 4);

    /* what has ended makes room, three seconds later */

    now += 86400 + 3;

    for (i = 0, unlucky = 0; i < lines / 3; i++) {
        (void) meter_ask(&meter, &other, "next day", i, now, &taken);
        unlucky += taken.is_shared;
    }

    test_check(unlucky * 100 < lines, "%lu of %lu without a line", unlucky,
               lines / 3);

    free(memory);
}


/* Each second others, many more than there are lines. */

static void
check_reuse(void)
{
    void                 *memory;
    uint64_t              i, now;
    sluice_core_meter_t   meter;
    sluice_core_rule_t    rule, daily;
    sluice_core_taken_t   taken;
    const uint64_t        limits[SLUICE_CORE_PERIODS] = { 1, 0, 0, 0, 0, 0 };
    const uint64_t        days[SLUICE_CORE_PERIODS] = { 0, 0, 0, 1, 0, 0 };

    memory = meter_make(64u << 10, &state, &meter);
    sluice_core_rule_set(&rule, 1, 1, limits, 200);
    sluice_core_rule_set(&daily, 2, 1, days, 200);
    now = BEGUN / 86400 * 86400;
    test_check(meter_ask(&meter, &daily, "a", 0, now, &taken) == 0, "first");

    for (i = 0; i < 20000; i++) {
        test_check(meter_ask(&meter, &rule, "n", i, now, &taken) == 0
                   && !taken.is_shared, "no line for %lu", i);
        test_check(meter_ask(&meter, &rule, "n", i, now, &taken) == 1, "%lu",
                   i);
        now += (i % 60 == 0);
    }

    test_check(meter_ask(&meter, &daily, "a", 0, now, &taken) == 1, "dropped");
    free(memory);
}


/* Another worker's garbage: memory ends where the area does. */

static void
check_hostile(void)
{
    int                    full;
    uint8_t               *memory;
    uint64_t               size, at, n, now, word, groups;
    sluice_core_meter_t    meter;
    sluice_core_rule_t     rule;
    sluice_core_taken_t    taken;
    sluice_core_group_t   *group;
    const uint64_t         limits[SLUICE_CORE_PERIODS] = { 5, 0, 9, 0, 1, 0 };

    size = SLUICE_CORE_METER_MIN + test_below(&state, 4096);
    memory = meter_make(size, &state, &meter);
    groups = meter.groups;
    sluice_core_rule_set(&rule, 1, 1, limits, 5);
    now = BEGUN + test_below(&state, 1u << 20);

    for (n = 0; n < 20; n++) {
        (void) meter_ask(&meter, &rule, "a", test_below(&state, 10), now,
                         &taken);
    }

    for (n = 0; n < 200; n++) {
        group = (sluice_core_group_t *) (memory
                                         + sizeof(sluice_core_meter_head_t))
                + test_below(&state, groups);

        switch (test_below(&state, 5)) {

        case 0:
            /* all that follows */
            at = test_below(&state, size);
            memset(memory + at, (int) test_below(&state, 256), size - at);
            break;

        case 1:
            /* an owner once more, pending or not */
            word = group->owners[test_below(&state, SLUICE_CORE_OWNERS)];
            group->owners[test_below(&state, SLUICE_CORE_OWNERS)] =
                word ^ (test_below(&state, 2) ? 1 : 0);
            break;

        case 2:
            for (at = 0; at < SLUICE_CORE_OWNERS; at++) {
                group->owners[at] = group->owners[0] | 1;
            }
            break;

        default:
            at = test_below(&state, size / 8) * 8;
            word = test_random(&state);
            memcpy(memory + at, &word, 8);
        }

        now += test_below(&state, 4) ? 0
               : test_random(&state) >> test_below(&state, 64);
        full = meter_ask(&meter, &rule, "a", test_below(&state, 10), now,
                         &taken);
        test_check((full >= 0 && full <= 3) || full == SLUICE_CORE_FULL, "%d",
                   full);
        hostile_passed += full == 0;
        hostile_full += full == SLUICE_CORE_FULL;
    }

    free(memory);
}


int
main(void)
{
    uint64_t  n, ops;

    state = test_seed("meter_flood");
    ops = test_env("OPS", 200);
    check_flood();
    check_reuse();

    for (n = 0; n < ops; n++) {
        check_hostile();
    }

    printf("meter_flood: in %lu hostile areas %lu passed, %lu found no line\n",
           ops, hostile_passed, hostile_full);
    test_check(hostile_passed, "hostile areas of no use");

    return 0;
}
