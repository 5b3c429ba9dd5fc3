
/*
 * What a request may cost: handed from pattern to pattern, and used up by a
 * refusal; patterns that are kept; both forms of a pattern beside each other.
 * Long on purpose: what one router is asked, and what of it is bounded.
 *
 * The clocks are ours (the linker's --wrap): work has a price, in which a slow
 * machine, or one that has no time for us, changes nothing.  check_long() asks
 * those of the system.
 */


#include "make.h"
#include "pattern.h"

#include <stdlib.h>
#include <time.h>


#define PATTERNS_MAX  4000
#define PATTERN_MAX   64
#define LIMIT         (32u << 20)

/* Prices, in ns; and of SLUICE_CORE_UNITS, which end with a look. */
#define COMPILE_NS    5000
#define TURN_NS       250000
#define UNPAID_NS     50000
#define MACHINE_NS    20000
#define MATCH_NS      500
#define UNITS_NS      25000

#define MS            1000000


typedef struct {
    sluice_core_entity_t    routes[PATTERNS_MAX];
    sluice_core_text_t      texts[PATTERNS_MAX];
    char                    patterns[PATTERNS_MAX][PATTERN_MAX];
    uint8_t                *image;
    sluice_core_view_t      view;
    sluice_core_request_t   request;
    sluice_core_regexes_t  *regexes;
    sluice_core_match_t     match;
} budget_t;


/* What the clocks say. */

typedef struct {
    uint64_t               wall;
    uint64_t               cpu;
    int                    is_system;
    sluice_core_budget_t  *watched;      /* NULL: none */
    uint32_t               steps;        /* of it, at the last look */
    uint32_t               most_steps;   /* between two looks */
} clocks_t;


static budget_t  budget;
static uint64_t  compile_ns = COMPILE_NS;
static clocks_t  clocks = { 1000 * MS, MS, 0, NULL, 0, 0 };


/* The linker sends every call of these here (--wrap). */

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
pcre2_code *__real_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length,
    uint32_t options, int *err, PCRE2_SIZE *offset,
    pcre2_compile_context *context);
pcre2_code *__wrap_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length,
    uint32_t options, int *err, PCRE2_SIZE *offset,
    pcre2_compile_context *context);
int __real_pcre2_jit_compile_8(pcre2_code *code, uint32_t options);
int __wrap_pcre2_jit_compile_8(pcre2_code *code, uint32_t options);
int __real_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR subject,
    PCRE2_SIZE length, PCRE2_SIZE start, uint32_t options,
    pcre2_match_data *data, pcre2_match_context *context);
int __wrap_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR subject,
    PCRE2_SIZE length, PCRE2_SIZE start, uint32_t options,
    pcre2_match_data *data, pcre2_match_context *context);
void __real_sluice_core_budget_read(sluice_core_budget_t *spent);
void __wrap_sluice_core_budget_read(sluice_core_budget_t *spent);


int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    uint64_t  now;

    if (clocks.is_system) {
        return __real_clock_gettime(id, ts);
    }

    test_check(id == CLOCK_MONOTONIC || id == CLOCK_THREAD_CPUTIME_ID,
               "clock %d", (int) id);

    now = id == CLOCK_MONOTONIC ? clocks.wall : clocks.cpu;
    ts->tv_sec = (time_t) (now / (1000 * MS));
    ts->tv_nsec = (long) (now % (1000 * MS));

    return 0;
}


/* Time in which we have the CPU. */

static void
work(uint64_t ns)
{
    clocks.wall += ns;
    clocks.cpu += ns;
}


pcre2_code *
__wrap_pcre2_compile_8(PCRE2_SPTR text, PCRE2_SIZE length, uint32_t options,
    int *err, PCRE2_SIZE *offset, pcre2_compile_context *context)
{
    work(compile_ns);

    return __real_pcre2_compile_8(text, length, options, err, offset, context);
}


int
__wrap_pcre2_jit_compile_8(pcre2_code *code, uint32_t options)
{
    work(MACHINE_NS);

    return __real_pcre2_jit_compile_8(code, options);
}


int
__wrap_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR subject,
    PCRE2_SIZE length, PCRE2_SIZE start, uint32_t options,
    pcre2_match_data *data, pcre2_match_context *context)
{
    work(MATCH_NS);

    return __real_pcre2_match_8(code, subject, length, start, options, data,
                                context);
}


/* Of the units that were not used up, the price as well. */

void
__wrap_sluice_core_budget_read(sluice_core_budget_t *spent)
{
    uint32_t  steps;

    if (spent->units < SLUICE_CORE_UNITS) {
        work((uint64_t) (SLUICE_CORE_UNITS - spent->units) * UNITS_NS
             / SLUICE_CORE_UNITS);
    }

    if (spent == clocks.watched) {
        steps = clocks.steps - spent->steps;
        clocks.most_steps = clocks.steps >= spent->steps
                            && steps > clocks.most_steps
                            ? steps : clocks.most_steps;
        clocks.steps = spent->steps;
    }

    __real_sluice_core_budget_read(spent);
}


/* Routes of a pattern each: format has its number. */

static void __attribute__((format(printf, 2, 0)))
begin(unsigned count, const char *format, const char *path, uint64_t limit)
{
    char                  *text;
    unsigned               i;
    uint64_t               size;
    sluice_core_entity_t  *route;

    memset(&budget, 0, sizeof(budget));

    for (i = 0; i < count; i++) {
        text = budget.patterns[i];
        budget.texts[i].data = text;
        budget.texts[i].length = (uint32_t) snprintf(text, PATTERN_MAX, format,
                                                     i);
        route = &budget.routes[i];
        route->kind = SLUICE_CORE_ROUTE;
        route->slot = i;
        route->sequence = i;
        route->fields[SLUICE_CORE_ROUTE_PATHS].data = &budget.texts[i];
        route->fields[SLUICE_CORE_ROUTE_PATHS].count = 1;
    }

    budget.image = make_image(budget.routes, count, 1, &size);
    budget.view.base.base = budget.image;
    budget.view.base.size = size;
    budget.request.path.data = path;
    budget.request.path.length = (uint32_t) strlen(path);
    budget.regexes = sluice_core_regexes_create(limit);
    test_check(budget.regexes, "no memory");
}


static void
end(void)
{
    sluice_core_regexes_destroy(budget.regexes);
    free(budget.image);
}


/* As a worker asks; turns: how often it was to ask again. */

static int
ask(unsigned *turns)
{
    int  rc;

    *turns = 0;

    do {
        rc = sluice_core_match(&budget.view, &budget.request, budget.regexes,
                               &budget.match);
    } while (rc == SLUICE_CORE_AGAIN && ++*turns < SLUICE_CORE_TURNS);

    return rc;
}


/* More patterns than a cache by number would hold are compiled once. */

static void
check_kept(void)
{
    int       rc, i;
    unsigned  turns;
    uint64_t  compiled;

    begin(1100, "~/api/[^/]+/x%u$", "/api/a/none", LIMIT);

    for (i = 0; i < 20; i++) {
        rc = ask(&turns);
        test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));
        test_check(i == 0 || turns == 0, "compiles again");
    }

    test_check(sluice_core_regexes_count(budget.regexes, &compiled) == 1100
               && compiled == 1100, "%lu compiled", compiled);
    end();
}


/* Where not all are kept a request does not go on for ever. */

static void
check_full(void)
{
    int       rc, i;
    unsigned  turns;

    begin(2000, "~/api/[^/]+/(?:some|other|words)/%u$",
          "/api/a/some/none", 16384);

    for (i = 0; i < 5; i++) {
        rc = ask(&turns);
        test_check(rc == SLUICE_CORE_LIMIT, "%s", sluice_core_word(rc));
        test_check(turns <= 1, "asked again %u times", turns);
    }

    end();
}


/* A cache that is full of others' patterns keeps nobody from compiling. */

static void
check_evicted(void)
{
    int       rc, i, reason;
    char      text[32];
    unsigned  turns;
    uint64_t  compiled;

    begin(2000, "~/api/[^/]+/(?:some|other|words)/%u$",
          "/api/a/some/none", 4u << 20);

    for (i = 0; i < 20000; i++) {
        (void) snprintf(text, sizeof(text), "/others/[^/]+/%d$", i);
        rc = sluice_core_regex_try(budget.regexes, text,
                                   (uint32_t) strlen(text), 1, "/", 1, 1,
                                   &reason);
        test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));
    }

    test_check(sluice_core_regexes_count(budget.regexes, &compiled) < 20000,
               "it is not full");

    rc = ask(&turns);
    test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));
    end();
}


/* Who has to compile much is to ask again: a turn has time for little. */

static void
check_turns(void)
{
    int                 rc;
    unsigned            turns, before, count;
    uint64_t            compiled;
    volatile uintptr_t  clock;

    clock = 1000;
    begin(1000, "~/api/[^/]+/x%u$", "/api/a/none", LIMIT);
    sluice_core_regexes_bound(budget.regexes, &clock);

    before = 0;
    turns = 0;

    do {
        rc = sluice_core_match(&budget.view, &budget.request, budget.regexes,
                               &budget.match);
        count = sluice_core_regexes_count(budget.regexes, &compiled);
        test_check(count > before
                   && count - before <= (TURN_NS + UNPAID_NS) / COMPILE_NS + 2,
                   "%u in turn %u", count - before, turns);

        if (rc == SLUICE_CORE_AGAIN) {
            test_check(!sluice_core_regexes_has_time(budget.regexes)
                       && budget.match.reason == SLUICE_CORE_BY_COMPILING,
                       "put off, with %d", budget.match.reason);
        }

        before = count;
        clock++;
    } while (rc == SLUICE_CORE_AGAIN && ++turns < SLUICE_CORE_TURNS);

    test_check(rc == SLUICE_CORE_NONE && turns > 10 && turns < 45,
               "%s after %u turns", sluice_core_word(rc), turns);

    rc = ask(&turns);
    test_check(rc == SLUICE_CORE_NONE && turns == 0, "compiles again");
    end();
}


/* Where others have used up a turn, what is short and little is compiled. */

static void
check_unpaid(void)
{
    int                 rc, reason;
    char                text[300];
    unsigned            i;
    uint64_t            compiled;
    sluice_core_run_t   run;
    volatile uintptr_t  clock;

    clock = 1;
    begin(100, "~/api/[^/]+/x%u$", "/api/a/none", LIMIT);
    sluice_core_regexes_bound(budget.regexes, &clock);
    memset(text, 'a', sizeof(text));
    text[0] = '/';

    /* one that takes more than a turn has: the next ones pay for it */

    compile_ns = 4 * TURN_NS;
    rc = sluice_core_regex_try(budget.regexes, text, sizeof(text), 1, "/", 1,
                               1, &reason);
    test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));
    compile_ns = COMPILE_NS;

    for (i = 0; i < 2; i++) {
        test_check(!sluice_core_regexes_has_time(budget.regexes), "turn %u",
                   i);
        text[1] = 'b';
        run.pattern.data = text;
        run.pattern.length = sizeof(text);
        run.is_path = 1;
        rc = sluice_core_regexes_warm(budget.regexes, &budget.regexes->probe,
                                      &run, 1);
        test_check(rc == SLUICE_CORE_AGAIN, "%s", sluice_core_word(rc));

        rc = sluice_core_match(&budget.view, &budget.request, budget.regexes,
                               &budget.match);
        test_check(rc == SLUICE_CORE_AGAIN, "%s", sluice_core_word(rc));
        test_check(sluice_core_regexes_count(budget.regexes, &compiled)
                   == 1 + (i + 1) * UNPAID_NS / COMPILE_NS,
                   "%lu compiled", compiled);
        clock++;
    }

    /* all of it is paid back, and no more than a turn is saved */

    for (i = 0; !sluice_core_regexes_has_time(budget.regexes); i++, clock++) {
        test_check(i < 3, "it is paid twice");
    }

    test_check(i == 2, "paid in %u turns", i);

    clock += 1000;
    rc = sluice_core_match(&budget.view, &budget.request, budget.regexes,
                           &budget.match);
    test_check(rc == SLUICE_CORE_AGAIN
               && sluice_core_regexes_count(budget.regexes, &compiled) < 90,
               "%s, %lu compiled", sluice_core_word(rc), compiled);
    end();
}


/* What is compiled beforehand is not compiled for a request. */

static void
check_warm(void)
{
    int                 rc;
    unsigned            turns, asked;
    uint64_t            compiled;
    sluice_core_warm_t  at = { 0, 0 };
    volatile uintptr_t  clock;

    clock = 1;
    begin(1000, "~/api/[^/]+/x%u$", "/api/a/none", LIMIT);
    sluice_core_regexes_bound(budget.regexes, &clock);

    for (turns = 0; turns < SLUICE_CORE_TURNS; turns++, clock++) {
        rc = sluice_core_warm(&budget.view, budget.regexes, &at);

        /* requests of this turn have as much */

        test_check(sluice_core_regexes_has_time(budget.regexes), "no time");

        if (rc != SLUICE_CORE_AGAIN) {
            break;
        }
    }

    test_check(rc == SLUICE_CORE_OK && at.slot == 1000 && turns > 30
               && turns < 60, "%s after %u turns", sluice_core_word(rc),
               turns);
    test_check(sluice_core_regexes_count(budget.regexes, &compiled) == 1000,
               "%lu compiled", compiled);

    rc = ask(&asked);
    test_check(rc == SLUICE_CORE_NONE && asked == 0
               && sluice_core_regexes_count(budget.regexes, &compiled) == 1000
               && compiled == 1000, "%s, %lu compiled", sluice_core_word(rc),
               compiled);

    at.slot = 0;
    rc = sluice_core_warm(&budget.view, budget.regexes, &at);
    test_check(rc == SLUICE_CORE_AGAIN && at.slot == 256, "%s, at %u",
               sluice_core_word(rc), at.slot);
    end();

    /* what would take the place of others is not compiled */

    begin(1000, "~/api/[^/]+/x%u$", "/api/a/none", 65536);
    at.slot = 0;
    rc = sluice_core_warm(&budget.view, budget.regexes, &at);
    test_check(rc == SLUICE_CORE_FULL && budget.regexes->size < 65536, "%s",
               sluice_core_word(rc));
    end();
}


/* One plugin with so many patterns of budget. */

static void
begin_plugin(unsigned count)
{
    uint64_t              size;
    sluice_core_entity_t  plugin;

    begin(count, "*x%u[0-9]+$", "/", LIMIT);
    free(budget.image);

    memset(&plugin, 0, sizeof(plugin));
    plugin.kind = SLUICE_CORE_PLUGIN;
    plugin.slot = 300;
    plugin.fields[SLUICE_CORE_PLUGIN_CONSUMER].number = SLUICE_CORE_NOBODY;
    plugin.fields[SLUICE_CORE_PLUGIN_GROUP].number = SLUICE_CORE_NOBODY;
    plugin.fields[SLUICE_CORE_PLUGIN_ROUTE].number = SLUICE_CORE_NOBODY;
    plugin.fields[SLUICE_CORE_PLUGIN_SERVICE].number = SLUICE_CORE_NOBODY;
    plugin.fields[SLUICE_CORE_PLUGIN_PATTERNS].data = budget.texts;
    plugin.fields[SLUICE_CORE_PLUGIN_PATTERNS].count = count;

    budget.image = make_image(&plugin, 1, 1, &size);
    budget.view.base.base = budget.image;
    budget.view.base.size = size;
}


/* As the plugin runs one of them; how many were compiled in all. */

static uint64_t
run_plugin(unsigned i)
{
    int       rc, reason;
    uint64_t  compiled;

    rc = sluice_core_regex_try(budget.regexes, budget.patterns[i] + 1,
                               budget.texts[i].length - 1, 0, "none", 4, 1,
                               &reason);
    test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));

    (void) sluice_core_regexes_count(budget.regexes, &compiled);

    return compiled;
}


/* Those of plugins are compiled beforehand, too, none twice. */

static void
check_warm_plugin(void)
{
    int                 rc;
    unsigned            turns;
    volatile uintptr_t  clock;
    sluice_core_warm_t  at = { 0, 0 };

    clock = 1;
    begin_plugin(1000);
    sluice_core_regexes_bound(budget.regexes, &clock);

    for (turns = 0; turns < SLUICE_CORE_TURNS; turns++, clock++) {
        rc = sluice_core_warm(&budget.view, budget.regexes, &at);

        test_check(sluice_core_regexes_has_time(budget.regexes), "no time");

        if (rc != SLUICE_CORE_AGAIN) {
            break;
        }
    }

    test_check(rc == SLUICE_CORE_OK && at.slot == 301 && turns > 30
               && turns < 60, "%s after %u turns", sluice_core_word(rc),
               turns);
    test_check(run_plugin(0) == 1000 && run_plugin(999) == 1000,
               "compiled again");
    end();
}


/* A request waits for them, and for those that are there in few turns. */

static void
check_prepare(void)
{
    int                   rc;
    unsigned              turns;
    uint32_t              item;
    uint64_t              compiled, before;
    volatile uintptr_t    clock;
    sluice_core_found_t   plugin;

    clock = 1;
    item = 0;
    begin_plugin(1000);
    sluice_core_regexes_bound(budget.regexes, &clock);
    plugin = sluice_core_by_slot(&budget.view, SLUICE_CORE_PLUGIN, 300);

    for (turns = 0; turns < SLUICE_CORE_TURNS; turns++, clock++) {
        before = clocks.wall;
        rc = sluice_core_prepare(&plugin, budget.regexes, &item);

        test_check(clocks.wall - before <= TURN_NS + UNPAID_NS + COMPILE_NS,
                   "%lu ns in a turn", clocks.wall - before);

        if (rc != SLUICE_CORE_AGAIN) {
            break;
        }
    }

    (void) sluice_core_regexes_count(budget.regexes, &compiled);
    test_check(rc == SLUICE_CORE_OK && item == 1000 && turns > 12
               && turns < 25 && compiled == 1000,
               "%s after %u turns, %lu compiled", sluice_core_word(rc), turns,
               compiled);
    test_check(run_plugin(500) == 1000, "compiled again");

    end();

    /* those that are there take one turn, unless they are very many */

    begin_plugin(PATTERNS_MAX);
    plugin = sluice_core_by_slot(&budget.view, SLUICE_CORE_PLUGIN, 300);

    for (item = 0; sluice_core_prepare(&plugin, budget.regexes, &item)
                   == SLUICE_CORE_AGAIN; )
    {
        /* without turns that is only so many at once */
    }

    (void) sluice_core_regexes_count(budget.regexes, &compiled);
    test_check(compiled == PATTERNS_MAX, "%lu compiled", compiled);

    item = PATTERNS_MAX - 2000;
    rc = sluice_core_prepare(&plugin, budget.regexes, &item);
    test_check(rc == SLUICE_CORE_OK, "%s at %u", sluice_core_word(rc), item);

    item = 0;
    before = clocks.wall;
    rc = sluice_core_prepare(&plugin, budget.regexes, &item);
    test_check(rc == SLUICE_CORE_AGAIN && item > 2000
               && clocks.wall - before <= TURN_NS + UNITS_NS,
               "%s at %u after %lu ns", sluice_core_word(rc), item,
               clocks.wall - before);
    end();
}


/* Who runs one that is not there cannot wait: those that follow do. */

static void
check_urgent(void)
{
    unsigned              i;
    uint32_t              item;
    uint64_t              compiled;
    volatile uintptr_t    clock;
    sluice_core_found_t   plugin;

    clock = 1;
    item = 0;
    begin_plugin(1000);
    sluice_core_regexes_bound(budget.regexes, &clock);

    for (i = 0; i < 200; i++) {
        test_check(run_plugin(i) == i + 1, "pattern %u", i);
    }

    test_check(!sluice_core_regexes_has_time(budget.regexes), "for nothing");

    plugin = sluice_core_by_slot(&budget.view, SLUICE_CORE_PLUGIN, 300);
    clock++;
    test_check(sluice_core_prepare(&plugin, budget.regexes, &item)
               == SLUICE_CORE_AGAIN && item >= 200, "at %u", item);
    (void) sluice_core_regexes_count(budget.regexes, &compiled);
    test_check(compiled < 220, "%lu compiled", compiled);
    end();
}


/* Nor has who cannot wait more time than that for all of them. */

static void
check_urgent_bound(void)
{
    int       rc, reason;
    uint32_t  i;
    uint64_t  before, first;

    begin_plugin(1000);
    compile_ns = MS / 2;
    before = clocks.wall;

    for (i = 0; i < 1000; i++) {
        rc = sluice_core_regex_try(budget.regexes, budget.patterns[i] + 1,
                                   budget.texts[i].length - 1, 0, "none", 4,
                                   i == 0, &reason);
        if (rc != SLUICE_CORE_NONE) {
            break;
        }
    }

    test_check(rc == SLUICE_CORE_LIMIT && reason == SLUICE_CORE_BY_TIME
               && clocks.wall - before > 30 * MS
               && clocks.wall - before < 16 * (2 * MS + 2 * compile_ns),
               "%s, %lu us for %u", sluice_core_word(rc),
               (clocks.wall - before) / 1000, i);

    /* what is compiled is kept, and another has as much */

    (void) sluice_core_regexes_count(budget.regexes, &first);
    compile_ns = COMPILE_NS;
    test_check(run_plugin(i) == first + 1, "pattern %u", i);
    end();
}


/* A pattern that PCRE2 would take long to compile is none. */

static void
check_lookbehind(void)
{
    int       rc;
    char      message[128];
    unsigned  i;

    static const struct {
        const char  *text;
        int          is_refused;
    } patterns[] = {
        { "/(a)(?<=\\1)b", 1 }, { "/(a)(?<=(?1))b", 1 },
        { "/(?<n>a)(?<!\\k<n>)b", 1 }, { "/(?P<n>a)(?<=(?P=n))", 1 },
        { "/(a)(*plb:(?1))b", 1 }, { "/(a)(*negative_lookbehind:\\1)", 1 },
        { "/(?<=a)b", 0 }, { "/(?<!a)\\d", 0 }, { "/(a)\\1", 0 },
        { "/(?-i)(?<=M)o(?=z)", 0 }, { "/(?<a>b)(?1)", 0 },
        { "/(?<=\\\\)1", 0 }, { "/(?<=a)(?<b>c)", 0 }
    };

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        rc = sluice_core_regex_check(patterns[i].text,
                                     (uint32_t) strlen(patterns[i].text), 1,
                                     message, sizeof(message));
        test_check(rc == (patterns[i].is_refused ? SLUICE_CORE_PATTERN
                                                 : SLUICE_CORE_OK),
                   "%s: %s", patterns[i].text, sluice_core_word(rc));
        test_check(rc == SLUICE_CORE_OK || strstr(message, "a lookbehind"),
                   "%s", message);
    }
}


/* What is said of a pattern's size is what it takes. */

static void
check_bytes(void)
{
    int       reason;
    unsigned  i;

    static const char *const  patterns[] = {
        "/a", "/(?<id>[0-9a-f]{8})/(?:x|y)*$", "/(?:[ab]c){200}"
    };

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        begin(0, "%u", "/", LIMIT);
        (void) sluice_core_regex_try(budget.regexes, patterns[i],
                                     (uint32_t) strlen(patterns[i]), 1, "/", 1,
                                     1, &reason);
        test_check(budget.regexes->size
                   == sluice_core_regex_bytes(patterns[i],
                                              (uint32_t) strlen(patterns[i]),
                                              1), "%s", patterns[i]);
        end();
    }

    test_check(sluice_core_regex_bytes("(", 1, 1) == 0, "it compiles");
}


/*
 * Each alone has its answer, far from the bound; all together do not, and that
 * is not "none".
 */

static void
check_shared(void)
{
    int       rc, i, count;
    unsigned  turns;
    char      path[200];

    memset(path, '/', sizeof(path));
    memcpy(path, "/api/", 5);

    for (i = 5; i < 60; i += 2) {
        path[i] = 'a';
    }

    memcpy(path + 60, "x0123456789!", sizeof("x0123456789!"));

    for (count = 1; count <= 1000; count += 999) {
        begin((unsigned) count, "~/api/(.+)/(.+)/x%u$", path, LIMIT);

        for (i = 0; i < 20; i++) {
            rc = ask(&turns);
            test_check(rc == (count == 1 ? SLUICE_CORE_NONE
                                         : SLUICE_CORE_LIMIT),
                       "%d: %s", count, sluice_core_word(rc));
            test_check(count == 1 || budget.match.route.record, "no route");
        }

        budget.request.path.data = "/api/a/b/x0";
        budget.request.path.length = sizeof("/api/a/b/x0") - 1;
        rc = ask(&turns);
        test_check(rc == SLUICE_CORE_OK && budget.match.slot == 0, "%s",
                   sluice_core_word(rc));
        end();
    }
}


/*
 * A step is no fixed time: on a long path it may be thousands of bytes, so the
 * clock is read after a few.  With the system's clocks none takes long.
 */

static void
check_long(void)
{
    int       turn, reason;
    char      path[8001];
    clock_t   begun, best;
    unsigned  i, turns;

    static const char *const  patterns[] = {
        "~/[^b]*(?:a{0,9})a*%u$", "~/(?:a*)(?:a*)%ub$", "~/(.+)a(.+)/x%u$"
    };

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    memcpy(path + sizeof(path) - sizeof("/x0b!"), "/x0b!", sizeof("/x0b!"));

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        begin(1, patterns[i], path, LIMIT);
        best = CLOCKS_PER_SEC;
        clocks.is_system = 1;

        for (turn = 0; turn < 50 && best >= CLOCKS_PER_SEC * 5 / 1000; turn++)
        {
            begun = clock();
            (void) ask(&turns);
            best = clock() - begun < best ? clock() - begun : best;
        }

        test_check(best < CLOCKS_PER_SEC * 5 / 1000, "%ld us", (long) best);
        clocks.is_system = 0;

        clocks.watched = &budget.regexes->probe;
        clocks.steps = clocks.most_steps = 0;
        (void) sluice_core_regex_try(budget.regexes, budget.patterns[0] + 1,
                                     (uint32_t) strlen(budget.patterns[0] + 1),
                                     1, path, sizeof(path) - 1, 1, &reason);
        clocks.watched = NULL;
        test_check(clocks.most_steps > 0
                   && clocks.most_steps <= SLUICE_CORE_UNITS
                      / (sizeof(path) / SLUICE_CORE_CALL_BYTES) + 1,
                   "%u steps without a look", clocks.most_steps);
        end();
    }
}


/* What one leaves is the next one's. */

static void
check_handed(void)
{
    int                     rc, i, reason;
    char                    subject[61];
    sluice_core_regexes_t  *regexes;

    memset(subject, 'a', sizeof(subject));
    subject[60] = '!';
    regexes = sluice_core_regexes_create(LIMIT);

    for (i = 0; i < 64; i++) {
        rc = sluice_core_regex_try(regexes, "(a|aa)+$", 8, 1, subject,
                                   sizeof(subject), i == 0, &reason);
        test_check(rc == SLUICE_CORE_LIMIT, "%s", sluice_core_word(rc));
    }

    rc = sluice_core_regex_try(regexes, "b", 1, 1, subject, sizeof(subject), 0,
                               &reason);
    test_check(rc == SLUICE_CORE_LIMIT && reason == SLUICE_CORE_BY_TIME,
               "something is left: %s", sluice_core_word(rc));
    rc = sluice_core_regex_try(regexes, "b", 1, 1, subject, sizeof(subject), 1,
                               &reason);
    test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));

    sluice_core_regexes_destroy(regexes);
}


/* Time that others have of the CPU is nobody's; what is used of it counts. */

static void
check_clocks(void)
{
    int                   i;
    sluice_core_budget_t  spent;

    memset(&spent, 0, sizeof(spent));
    sluice_core_budget_begin(&spent);
    sluice_core_budget_read(&spent);

    for (i = 0; i < 4; i++) {
        clocks.wall += 5 * MS;
        sluice_core_budget_read(&spent);
        test_check(!sluice_core_budget_take(&spent, 1)
                   && sluice_core_budget_share(&spent), "waiting is counted");
        test_check(spent.until - spent.spent >= 900000,
                   "%lu ns are left for a pattern", spent.until - spent.spent);
    }

    spent.preparing = spent.spent;
    work(5 * MS);
    sluice_core_budget_read(&spent);
    test_check(sluice_core_budget_take(&spent, 1)
               && !sluice_core_budget_share(&spent), "nothing is counted");
    test_check(!sluice_core_budget_is_cold(&spent), "it prepared");

    work(5 * MS);
    test_check(sluice_core_budget_take(&spent, SLUICE_CORE_UNITS)
               && spent.spent > 2 * SLUICE_CORE_SEARCH_NS,
               "it was counted once");
}


/* A group for each byte of a long subject is no lack of memory. */

static void
check_memory(void)
{
    int                     rc, reason;
    unsigned                i;
    char                    subject[8001];
    sluice_core_regexes_t  *regexes;

    static const char *const  patterns[] = {
        "(?:a|b)*$", "(a|b)*$", "(?<a>a|b)+?x", "((?:%[0-9a-f]{2}|[a-z/])*)x"
    };

    memset(subject, 'a', sizeof(subject));
    subject[sizeof(subject) - 1] = 'x';
    regexes = sluice_core_regexes_create(LIMIT);

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        reason = 0;
        rc = sluice_core_regex_try(regexes, patterns[i],
                                   (uint32_t) strlen(patterns[i]), 1, subject,
                                   sizeof(subject), 1, &reason);
        test_check(rc == SLUICE_CORE_OK || rc == SLUICE_CORE_NONE
                   || reason == SLUICE_CORE_BY_TIME, "%s: %s, %d",
                   patterns[i], sluice_core_word(rc), reason);
    }

    sluice_core_regexes_destroy(regexes);
}


/* What runs without calls is machine code, or is not there. */

static void
check_machine(void)
{
    int                     i, j, rc, reason;
    const char             *pattern;
    sluice_core_regexes_t  *regexes;

    static const char *const  patterns[] = {
        "(*NO_JIT)/a+", "(*NO_START_OPT)(*NO_JIT)/a+", "/a+"
    };

    regexes = sluice_core_regexes_create(LIMIT);

    for (i = 0; i < 3; i++) {
        pattern = patterns[i];

        for (j = 0; j < 20; j++) {
            rc = sluice_core_regex_try(regexes, pattern,
                                       (uint32_t) strlen(pattern), 0, "/aa", 3,
                                       1, &reason);
            test_check(rc == SLUICE_CORE_OK, "%s", sluice_core_word(rc));
        }

        test_check((regexes->newest->fast != NULL) == (i == 2), "%s", pattern);
    }

    sluice_core_regexes_destroy(regexes);
}


/* Each way to call a group, and what is none. */

static void
check_recurses(void)
{
    unsigned     i;
    const char  *pattern;

    static const char *const  patterns[] = {
        "/(a(?1)?)", "/(a(?R)?)", "/(?<n>a(?&n)?)", "/(?P<n>a(?P>n)?)",
        "/(a(?-1)?)", "/(?:(?+1)b)?(a)", "/(a\\g<1>?)", "/(a\\g'1'?)",
        "/(?P<n>a)(?P=n)", "/(?<n>a)\\k<n>", "/(?:a|(?=b)|(?i)c)", "/(a)\\1",
        "/?", "/(?", "/(?-i)a", "/(?-", "/(?+"
    };

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        pattern = patterns[i];
        test_check(sluice_core_pattern_recurses(pattern,
                                                (uint32_t) strlen(pattern))
                   == (i < 8), "%s", pattern);
    }
}


static uint32_t
compose(char *text, unsigned most, const char *const *pieces, uint64_t count,
    uint64_t *state)
{
    uint64_t  i, n;

    text[0] = '\0';
    n = test_below(state, most) + 1;

    for (i = 0; i < n; i++) {
        strcat(text, pieces[test_below(state, count)]);
    }

    return (uint32_t) strlen(text);
}


/*
 * A pattern that runs often has the answers that it had first.  Where one of
 * its forms gives up (they count steps each in its own way) there is none.
 */

static void
check_forms(uint64_t *state, uint64_t cases)
{
    int                     first, rc, reason, is_path, is_bounded;
    char                    pattern[64], subject[64];
    uint32_t                pattern_length, length;
    uint64_t                i, turn, answers[2], bounded;
    sluice_core_regexes_t  *regexes;

    static const char *const  pieces[] = {
        "a", "b", "/", ".", "[ab]", "[^/]+", "a*", "(", ")", "(?:", ")*", "|",
        "\\d", "(?=a)", "\\1", "+", "?", "{2}", "^", "$", "\\b", "A", "(?i)",
        "(*COMMIT)", "a|"
    };
    static const char *const  bytes[] = {
        "a", "b", "/", "1", "\n", "A", "aa"
    };

    answers[0] = 0;
    answers[1] = 0;
    bounded = 0;
    regexes = sluice_core_regexes_create(LIMIT);

    for (i = 0; i < cases; i++) {
        is_path = (int) test_below(state, 2);
        pattern_length = compose(pattern, 7, pieces,
                                 sizeof(pieces) / sizeof(pieces[0]), state);
        length = compose(subject, 12, bytes, sizeof(bytes) / sizeof(bytes[0]),
                         state);
        first = SLUICE_CORE_LIMIT;
        is_bounded = 0;

        for (turn = 0; turn < 12; turn++) {
            rc = sluice_core_regex_try(regexes, pattern, pattern_length,
                                       is_path, subject, length, 1, &reason);

            if (rc == SLUICE_CORE_LIMIT) {
                is_bounded = 1;
                continue;
            }

            first = first == SLUICE_CORE_LIMIT ? rc : first;
            test_check(rc == first, "%s on %s: %s, then %s", pattern, subject,
                       sluice_core_word(first), sluice_core_word(rc));
        }

        bounded += (uint64_t) is_bounded;

        if (first == SLUICE_CORE_OK || first == SLUICE_CORE_NONE) {
            answers[first == SLUICE_CORE_OK]++;
        }
    }

    test_check(answers[0] > cases / 20 && answers[1] > cases / 20,
               "%lu no, %lu yes of %lu", answers[0], answers[1], cases);
    test_check(bounded <= cases / 100, "%lu of %lu gave up", bounded, cases);

    printf("budget: %lu no, %lu yes, %lu gave up, of %lu\n", answers[0],
           answers[1], bounded, cases);
    sluice_core_regexes_destroy(regexes);
}


int
main(void)
{
    uint64_t  state;

    state = test_seed("budget");

    check_kept();
    check_full();
    check_evicted();
    check_turns();
    check_unpaid();
    check_warm();
    check_warm_plugin();
    check_prepare();
    check_urgent();
    check_urgent_bound();
    check_lookbehind();
    check_bytes();
    check_shared();
    check_long();
    check_handed();
    check_clocks();
    check_memory();
    check_machine();
    check_recurses();
    check_forms(&state, test_env("CASES", 20000));

    return 0;
}
