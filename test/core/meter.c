
/*
 * Counters beside slow ones, and the calendar beside libc's.
 */


#include "meter_support.h"
#include "siphash.h"

#include <stdlib.h>
#include <time.h>


#define RULES   6
#define NAMES   40


typedef struct {
    uint64_t  start[SLUICE_CORE_PERIODS];
    uint64_t  count[SLUICE_CORE_PERIODS];
} slow_t;


static uint64_t  state;


/* The vector of the paper: SipHash-2-4 of 15 bytes. */

static void
check_hash(void)
{
    uint8_t   bytes[16];
    uint64_t  i, key[2], word;

    for (i = 0; i < 16; i++) {
        bytes[i] = (uint8_t) i;
    }

    memcpy(key, bytes, 16);
    memcpy(&word, bytes, 8);
    test_check(sluice_core_siphash(key, 2, 4, word, bytes + 8, 7)
               == 0xa129ca6149be45e5ull, "SipHash-2-4");
}


static void
check_calendar(void)
{
    int                    n, months, period;
    time_t                 now;
    uint64_t               start, finish;
    struct tm              tm;
    static const uint64_t  lengths[] = { 1, 60, 3600, 86400 };

    /* the tenth of February in 2000, 2023, 2024 and 2100 */
    static const struct {
        uint64_t  now;
        uint64_t  days;
    } februaries[] = {
        { 950140800, 29 }, { 1675987200, 28 }, { 1707523200, 29 },
        { 4105900800, 28 }
    };

    for (n = 0; n < 4; n++) {
        sluice_core_calendar(SLUICE_CORE_MONTH, februaries[n].now, &start,
                             &finish);
        test_check(finish - start == februaries[n].days * 86400, "February");
    }

    for (n = 0; n < 20000; n++) {
        now = (time_t) test_below(&state, 1ull << 33);

        if (n % 2) {
            /* at an edge */
            gmtime_r(&now, &tm);
            tm.tm_mday = 1;
            tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
            now = timegm(&tm) + (time_t) test_below(&state, 3) - 1;
            now = now < 0 ? 0 : now;
        }

        for (months = 1; months <= 12; months += 11) {
            gmtime_r(&now, &tm);
            tm.tm_mday = 1;
            tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
            tm.tm_mon = months == 1 ? tm.tm_mon : 0;
            sluice_core_calendar(months == 1 ? SLUICE_CORE_MONTH
                                 : SLUICE_CORE_YEAR, (uint64_t) now, &start,
                                 &finish);
            test_check(start == (uint64_t) timegm(&tm), "%ld", now);
            tm.tm_mon += months;
            test_check(finish == (uint64_t) timegm(&tm), "%ld", now);
        }

        for (period = 0; period <= SLUICE_CORE_DAY; period++) {
            sluice_core_calendar(period, (uint64_t) now, &start, &finish);
            test_check(start % lengths[period] == 0
                       && finish == start + lengths[period]
                       && start <= (uint64_t) now && (uint64_t) now < finish,
                       "%d at %ld", period, now);
        }
    }
}


/* One request, as the promises say it; how many windows there are. */

static uint32_t
slow_take(slow_t *slow, const uint64_t *limits, uint64_t now,
    uint64_t used[SLUICE_CORE_PERIODS], uint64_t ends[SLUICE_CORE_PERIODS],
    int *full)
{
    int       period;
    uint32_t  n;
    uint64_t  start, finish;

    *full = 0;

    for (period = 0, n = 0; period < SLUICE_CORE_PERIODS; period++) {

        if (limits[period] == 0) {
            continue;
        }

        sluice_core_calendar(period, now, &start, &finish);

        if (slow->start[period] < start || slow->start[period] > now + 2) {
            slow->start[period] = start;
            slow->count[period] = 0;
        }

        ends[n++] = finish;

        if (*full == 0 && slow->count[period] >= limits[period]) {
            *full = (int) n;
        }
    }

    for (period = 0, n = 0; period < SLUICE_CORE_PERIODS; period++) {

        if (limits[period]) {
            slow->count[period] += (*full == 0);
            used[n++] = slow->count[period];
        }
    }

    return n;
}


/* Mostly slowly; sometimes to where a window ends. */

static uint64_t
step_time(uint64_t now)
{
    int       period;
    uint64_t  start, finish;

    period = (int) test_below(&state, SLUICE_CORE_PERIODS);

    if (test_below(&state, 200)
        || (period == SLUICE_CORE_YEAR && test_below(&state, 20)))
    {
        return now + (test_below(&state, 8) == 0);
    }

    sluice_core_calendar(period, now, &start, &finish);

    return finish - test_below(&state, 2);
}


/* Against slow ones, with room for all; rules change, and have successors. */

static void
check_model(uint64_t steps)
{
    int                   full, want;
    void                 *memory;
    char                  name[80];
    uint32_t              r, i, fallback, length, count;
    uint64_t              limits[RULES][SLUICE_CORE_PERIODS], clock, now, n;
    uint64_t              used[SLUICE_CORE_PERIODS], size;
    uint64_t              ends[SLUICE_CORE_PERIODS];
    sluice_core_meter_t   meter;
    sluice_core_rule_t    rules[RULES];
    sluice_core_taken_t   taken;
    static slow_t         slow[RULES][NAMES][2];

    memset(slow, 0xff, sizeof(slow));
    size = 2u << 20;
    memory = meter_make(size, &state, &meter);
    memset(name, 'x', sizeof(name));
    clock = BEGUN + test_below(&state, 1u << 30);

    for (r = 0; r < RULES; r++) {
        sluice_core_rule_set(&rules[r], r, 0, limits[0], 0);
        rules[r].count = 0;
    }

    for (n = 0; n < steps; n++) {
        r = (uint32_t) test_below(&state, RULES);

        if (rules[r].count == 0 || test_below(&state, 3000) == 0) {

            /* other limits, or another rule in its slot */

            memset(limits[r], 0, sizeof(limits[r]));

            for (i = 0; i < 1 + test_below(&state, 4); i++) {
                limits[r][test_below(&state, SLUICE_CORE_PERIODS)] =
                    1 + test_below(&state, 9);
            }

            if (rules[r].count == 0 || test_below(&state, 2)) {
                rules[r].generation += test_below(&state, 2) ? 1 : 1 << 16;
                memset(slow[r], 0xff, sizeof(slow[r]));
            }

            sluice_core_rule_set(&rules[r], r, rules[r].generation, limits[r],
                                 sluice_core_meter_share(&meter, RULES));
        }

        if (test_below(&state, 3000) == 0) {
            test_check(sluice_core_meter_attach(&meter, memory, size)
                       == SLUICE_CORE_OK, "attached again");
        }

        i = (uint32_t) test_below(&state, NAMES);
        fallback = (uint32_t) test_below(&state, 2);
        length = i * 2;
        now = clock - test_below(&state, 3);
        full = sluice_core_meter_take(&meter, &rules[r], name, length,
                                      (int) fallback, now, &taken);

        count = slow_take(&slow[r][i][fallback], limits[r], now, used, ends,
                          &want);
        test_check(full == want, "at %lu: %d, not %d", n, full, want);
        test_check(rules[r].count == count, "at %lu: %u windows, not %u", n,
                   rules[r].count, count);
        test_check(!taken.is_shared, "no line at %lu", n);

        for (i = 0; i < rules[r].count; i++) {
            test_check(taken.used[i] == used[i], "at %lu: %lu used, not %lu",
                       n, taken.used[i], used[i]);
            test_check(rules[r].windows[i].start <= now
                       && now < rules[r].windows[i].finish
                       && rules[r].windows[i].finish == ends[i], "window");
        }

        clock = step_time(clock);
    }

    free(memory);
}


/* Who is behind by up to two seconds counts where the others do. */

static void
check_skew(void)
{
    void                 *memory;
    uint64_t              now;
    sluice_core_meter_t   meter;
    sluice_core_rule_t    one, two;
    sluice_core_taken_t   taken;
    const uint64_t        limits[SLUICE_CORE_PERIODS] = { 2, 2, 0, 0, 0, 0 };

    memory = meter_make(SLUICE_CORE_METER_MIN, &state, &meter);
    sluice_core_rule_set(&one, 1, 1, limits, 4);
    sluice_core_rule_set(&two, 1, 1, limits, 4);
    now = BEGUN / 60 * 60;

    test_check(meter_ask(&meter, &one, "a", 0, now - 1, &taken) == 0,
               "before");
    test_check(meter_ask(&meter, &one, "a", 0, now, &taken) == 0
               && taken.used[1] == 1, "a new minute");
    test_check(meter_ask(&meter, &two, "a", 0, now - 2, &taken) == 0
               && taken.used[0] == 2 && taken.used[1] == 2, "behind");
    test_check(meter_ask(&meter, &two, "a", 0, now - 1, &taken) == 1,
               "behind");
    test_check(meter_ask(&meter, &one, "a", 0, now, &taken) == 1, "both");

    /* a clock that is set back, or back to right, begins anew */

    test_check(meter_ask(&meter, &two, "a", 0, now - 3, &taken) == 0
               && taken.used[0] == 1 && taken.used[1] == 1, "set back");
    now += 10ull * 365 * 86400;
    test_check(meter_ask(&meter, &one, "a", 0, now, &taken) == 0
               && taken.used[1] == 1, "ten years on");
    now -= 10ull * 365 * 86400;
    test_check(meter_ask(&meter, &one, "a", 0, now, &taken) == 0
               && taken.used[1] == 1, "and back");

    free(memory);
}


static void
check_attach(void)
{
    void                      *memory;
    uint64_t                   size, limits[SLUICE_CORE_PERIODS];
    sluice_core_rule_t         rule;
    sluice_core_meter_t        meter;
    sluice_core_taken_t        taken;
    sluice_core_meter_head_t  *head;

    size = 4096;
    memory = meter_make(size, &state, &meter);
    head = memory;

    test_check(sluice_core_meter_attach(&meter, memory, size - 1)
               == SLUICE_CORE_BAD, "another size");
    test_check(sluice_core_meter_attach(&meter, memory, 100)
               == SLUICE_CORE_BAD, "too small");
    test_check(sluice_core_meter_init(memory, SLUICE_CORE_METER_MIN - 1,
                                      memory) == SLUICE_CORE_LARGE, "small");
    head->layout++;
    test_check(sluice_core_meter_attach(&meter, memory, size)
               == SLUICE_CORE_VERSION, "another layout");
    head->magic = 0;
    test_check(sluice_core_meter_attach(&meter, memory, size)
               == SLUICE_CORE_BAD, "no area");
    test_check(sluice_core_meter_share(&meter, 1000) == 0
               && sluice_core_meter_share(&meter, 0) > 0, "shares");

    /* greater than what a word can count; no window at all */

    memset(limits, 0, sizeof(limits));
    sluice_core_rule_set(&rule, 1, 1, limits, 1);
    test_check(meter_ask(&meter, &rule, "a", 1, BEGUN, &taken) == 0,
               "no limit");
    limits[0] = UINT64_MAX;
    sluice_core_rule_set(&rule, 1, 1, limits, 1);
    test_check(rule.windows[0].limit == UINT32_MAX
               && meter_ask(&meter, &rule, "a", 1, BEGUN, &taken) == 0
               && taken.used[0] == 1, "a great limit");

    free(memory);
}


int
main(void)
{
    uint64_t  n, ops;

    state = test_seed("meter");
    ops = test_env("OPS", 10);
    check_hash();
    check_calendar();
    check_attach();
    check_skew();

    for (n = 0; n < ops; n++) {
        check_model(30000);
    }

    printf("meter: %lu decisions beside slow ones\n", ops * 30000);

    return 0;
}
