
/*
 * Decisions: a request is counted in every window of a rule, or in none.
 */


#include "meter_layout.h"
#include "siphash.h"


/* Clocks of processes may differ by so many seconds. */

#define CORE_SKEW            2

/* Others' lines that both groups may hold when a line is given. */

#define CORE_MOST_BEYOND     (SLUICE_CORE_BOTH / 2)
#define CORE_MOST            (SLUICE_CORE_BOTH - SLUICE_CORE_BOTH / 8)
#define CORE_MOST_FOR_RULES  SLUICE_CORE_BOTH

/* What a hash begins with, above the slot. */

#define CORE_OF_RULE         1ull
#define CORE_OF_IDENTIFIER   2ull
#define CORE_OF_FALLBACK     3ull


/* A word's upper bits: which window, in units; the others: how many. */

typedef struct {
    uint32_t  unit;                        /* seconds */
    uint32_t  bits;                        /* of the count */
} core_format_t;


static const core_format_t  formats[SLUICE_CORE_PERIODS] = {
    { 1, 32 },                             /* until 2106 */
    { 60, 37 },
    { 3600, 43 },
    { 86400, 47 },                         /* months, years: their first day */
    { 86400, 47 },
    { 86400, 47 }
};


static void core_enter(sluice_core_rule_t *rule, uint64_t now);
static sluice_core_counters_t *core_admit(const sluice_core_meter_t *meter,
    const sluice_core_rule_t *rule, const sluice_core_place_t *place,
    uint64_t now, sluice_core_taken_t *taken);
static sluice_core_counters_t *core_rule_line(const sluice_core_meter_t *meter,
    const sluice_core_rule_t *rule, uint64_t now);
static void core_place(const sluice_core_meter_t *meter,
    const sluice_core_rule_t *rule, uint64_t of, const void *data,
    uint64_t length, sluice_core_place_t *place);
static uint64_t core_until(const sluice_core_rule_t *rule);
static int core_count(_Atomic uint64_t *word,
    const sluice_core_window_t *window, uint64_t limit, uint64_t now,
    uint64_t *id, uint64_t *used);
static uint64_t core_used(uint64_t seen, const sluice_core_window_t *window,
    uint64_t now, uint64_t *id);
static void core_give_back(_Atomic uint64_t *word, uint32_t period,
    uint64_t id);


#define core_mask(period)  ((1ull << formats[period].bits) - 1)


int
sluice_core_meter_init(void *memory, uint64_t size, const uint8_t *key)
{
    sluice_core_meter_head_t  *head;

    if (size < SLUICE_CORE_METER_MIN || size > SLUICE_CORE_METER_MAX) {
        return SLUICE_CORE_LARGE;
    }

    head = memory;
    memcpy(head->key, key, sizeof(head->key));
    head->size = size;
    head->layout = SLUICE_CORE_METER_LAYOUT;
    head->magic = SLUICE_CORE_METER_MAGIC;

    return SLUICE_CORE_OK;
}


int
sluice_core_meter_attach(sluice_core_meter_t *meter, void *memory,
    uint64_t size)
{
    sluice_core_meter_head_t  head;

    if (size < SLUICE_CORE_METER_MIN || size > SLUICE_CORE_METER_MAX
        || (uintptr_t) memory % SLUICE_CORE_LINE)
    {
        return SLUICE_CORE_BAD;
    }

    memcpy(&head, memory, sizeof(head));

    if (head.magic != SLUICE_CORE_METER_MAGIC) {
        return SLUICE_CORE_BAD;
    }

    if (head.layout != SLUICE_CORE_METER_LAYOUT) {
        return SLUICE_CORE_VERSION;
    }

    if (head.size != size) {
        return SLUICE_CORE_BAD;
    }

    meter->base = memory;
    meter->groups = (size - sizeof(head)) / sizeof(sluice_core_group_t);
    memcpy(meter->key, head.key, sizeof(meter->key));

    return SLUICE_CORE_OK;
}


/* One of them is the rule's own. */

uint32_t
sluice_core_meter_share(const sluice_core_meter_t *meter, uint32_t rules)
{
    uint64_t  lines;

    lines = meter->groups * SLUICE_CORE_OWNERS / 4 / (rules ? rules : 1);

    return lines ? (uint32_t) lines - 1 : 0;
}


void
sluice_core_rule_set(sluice_core_rule_t *rule, uint32_t slot,
    uint32_t generation, const uint64_t *limits, uint32_t share)
{
    uint32_t               period;
    sluice_core_window_t  *window;

    memset(rule, 0, sizeof(*rule));
    rule->slot = slot;
    rule->generation = generation;
    rule->share = share;

    for (period = 0; period < SLUICE_CORE_PERIODS; period++) {

        if (limits[period] == 0) {
            continue;
        }

        window = &rule->windows[rule->count++];
        window->period = period;
        window->limit = limits[period] < core_mask(period) ? limits[period]
                                                       : core_mask(period);
    }
}


int
sluice_core_meter_take(const sluice_core_meter_t *meter,
    sluice_core_rule_t *rule, const void *identifier, uint64_t length,
    int is_fallback, uint64_t now, sluice_core_taken_t *taken)
{
    uint32_t                 i, n;
    uint64_t                 ids[SLUICE_CORE_PERIODS];
    sluice_core_place_t      place;
    sluice_core_window_t    *window;
    sluice_core_counters_t  *line;

    memset(taken, 0, sizeof(*taken));

    if (rule->count == 0) {
        return 0;
    }

    core_enter(rule, now);
    core_place(meter, rule, is_fallback ? CORE_OF_FALLBACK
                                        : CORE_OF_IDENTIFIER,
               identifier, length, &place);

    line = sluice_core_line_find(&place, core_until(rule));

    if (line == NULL) {
        line = core_admit(meter, rule, &place, now, taken);

        if (line == NULL) {
            return SLUICE_CORE_FULL;
        }
    }

    for (i = 0; i < rule->count; i++) {
        window = &rule->windows[i];

        if (!core_count(&line->windows[window->period], window, window->limit,
                        now, &ids[i], &taken->used[i]))
        {
            break;
        }
    }

    if (i == rule->count) {
        return 0;
    }

    for (n = 0; n < i; n++) {
        window = &rule->windows[n];
        core_give_back(&line->windows[window->period], window->period, ids[n]);
        taken->used[n]--;
    }

    for (n = i + 1; n < rule->count; n++) {
        window = &rule->windows[n];
        taken->used[n] = core_used(atomic_load_explicit(
                                       &line->windows[window->period],
                                       memory_order_relaxed),
                                   window, now, &ids[n]);
    }

    return (int) i + 1;
}


static void
core_enter(sluice_core_rule_t *rule, uint64_t now)
{
    uint32_t               i;
    sluice_core_window_t  *window;

    for (i = 0; i < rule->count; i++) {
        window = &rule->windows[i];

        if (now < window->start || now >= window->finish) {
            sluice_core_calendar((int) window->period, now, &window->start,
                                 &window->finish);
            window->id = window->start / formats[window->period].unit
                         & ~0ull >> formats[window->period].bits;
        }
    }
}


/* A line for who has none, or has not been counted in the longest window. */

static sluice_core_counters_t *
core_admit(const sluice_core_meter_t *meter, const sluice_core_rule_t *rule,
    const sluice_core_place_t *place, uint64_t now, sluice_core_taken_t *taken)
{
    int                          is_new, in_share;
    uint64_t                     id, used;
    sluice_core_counters_t      *own, *line;
    const sluice_core_window_t  *longest;

    longest = &rule->windows[rule->count - 1];
    own = core_rule_line(meter, rule, now);

    in_share = own && core_count(&own->lines, longest, rule->share, now, &id,
                                 &used);

    line = sluice_core_line_take(place, now, core_until(rule),
                                 in_share ? CORE_MOST : CORE_MOST_BEYOND,
                                 &is_new);

    if (in_share && !is_new) {
        core_give_back(&own->lines, longest->period, id);
    }

    if (line == NULL) {
        taken->is_shared = 1;
        return own;
    }

    return line;
}


static sluice_core_counters_t *
core_rule_line(const sluice_core_meter_t *meter,
    const sluice_core_rule_t *rule, uint64_t now)
{
    int                      is_new;
    sluice_core_place_t      place;
    sluice_core_counters_t  *line;

    core_place(meter, rule, CORE_OF_RULE, "", 0, &place);
    line = sluice_core_line_find(&place, core_until(rule));

    return line ? line : sluice_core_line_take(&place, now, core_until(rule),
                                               CORE_MOST_FOR_RULES, &is_new);
}


static void
core_place(const sluice_core_meter_t *meter, const sluice_core_rule_t *rule,
    uint64_t of, const void *data, uint64_t length, sluice_core_place_t *place)
{
    uint64_t  head;

    head = of << 56 | (uint64_t) (rule->slot & 0xffffff) << 32
           | rule->generation;

    sluice_core_place(meter, sluice_core_siphash(meter->key, 1, 3, head, data,
                                                 length), place);
}


static uint64_t
core_until(const sluice_core_rule_t *rule)
{
    return rule->windows[rule->count - 1].finish;
}


/*
 * Counts one, unless limit are counted: 1, id says in which window; 0.  used:
 * how many are counted then.
 */

static int
core_count(_Atomic uint64_t *word, const sluice_core_window_t *window,
    uint64_t limit, uint64_t now, uint64_t *id, uint64_t *used)
{
    uint32_t  i;
    uint64_t  seen;

    seen = atomic_load_explicit(word, memory_order_relaxed);

    for (i = 0; i < SLUICE_CORE_METER_TRIES; i++) {
        *used = core_used(seen, window, now, id);

        if (*used >= limit) {
            return 0;
        }

        *used += 1;

        if (atomic_compare_exchange_weak_explicit(word, &seen,
                                       *id << formats[window->period].bits
                                       | *used,
                                       memory_order_relaxed,
                                       memory_order_relaxed))
        {
            return 1;
        }
    }

    return 0;
}


/* How many a word has counted, and in which window the next one counts. */

static uint64_t
core_used(uint64_t seen, const sluice_core_window_t *window, uint64_t now,
    uint64_t *id)
{
    int64_t               ahead;
    uint32_t              bits;
    uint64_t              begins;
    const core_format_t  *format;

    format = &formats[window->period];
    bits = format->bits;
    ahead = (int64_t) (((seen >> bits) - window->id) << bits) >> bits;

    if (ahead == 0) {
        *id = window->id;
        return seen & core_mask(window->period);
    }

    begins = window->start + (uint64_t) ahead * format->unit;

    if (ahead > 0 && begins <= now + CORE_SKEW) {
        *id = seen >> bits;
        return seen & core_mask(window->period);
    }

    *id = window->id;

    return 0;
}


/* A window that has ended since keeps what it has. */

static void
core_give_back(_Atomic uint64_t *word, uint32_t period, uint64_t id)
{
    uint32_t  i;
    uint64_t  seen;

    seen = atomic_load_explicit(word, memory_order_relaxed);

    for (i = 0; i < SLUICE_CORE_METER_TRIES; i++) {

        if (seen >> formats[period].bits != id
            || (seen & core_mask(period)) == 0
            || atomic_compare_exchange_weak_explicit(word, &seen, seen - 1,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
        {
            return;
        }
    }
}
