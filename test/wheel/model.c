
/*
 * Long on purpose: one experiment with all that judges it.
 *
 * The timers against a slow, obvious model: an array, searched from end to
 * end.  OPS random steps with a clock of our own; after each the same timer
 * runs next, is due at the same time, and the same number of periods is left
 * out.
 */


#include "support.h"
#include "wheel_timers.h"

#include <stdlib.h>
#include <string.h>


#define MODEL_TIMERS  400
#define MODEL_RUNS    12
#define MODEL_STALE   64


typedef enum { NOWHERE, WHEEL, CURRENT } model_where_e;

typedef struct {
    int             used;
    int             gone;
    int             paused;
    int             running;
    int             queued;
    model_where_e   where;
    double          handle;
    uint64_t        grid;
    uint64_t        interval;
    uint64_t        whole;       /* interval, or delay */
    uint64_t        left;
    uint64_t        tick;
    uint64_t        armed;       /* counts: who came first */
    int             flags;
} model_timer_t;


static sluice_timers_t      ts;
static model_timer_t        model[MODEL_TIMERS];
static sluice_timers_run_t  runs[MODEL_RUNS];
static model_timer_t       *run_of[MODEL_RUNS];
static double               stale[MODEL_STALE];
static uint64_t             state, now_ns, arms, skipped, taken, dropped;
static uint32_t             released, created, mapped_most;


static void
model_release(void *data, sluice_timer_t *t, int name_only)
{
    (void) data;

    test_check(t->serial, "released twice");
    released += !name_only;
}


static void
model_drop(void *data, uint32_t page)
{
    (void) data;

    test_check(ts.pages[page].timers == NULL, "dropped a page in use");
    dropped++;
}


static void
model_arm(model_timer_t *m, uint64_t now_us)
{
    m->where = WHEEL;
    m->armed = ++arms;
    m->tick = m->grid <= now_us ? now_us / 1000 : (m->grid + 999) / 1000;
}


static void
model_again(model_timer_t *m, uint64_t now_us)
{
    uint64_t  n, room;

    if (m->flags & SLUICE_TIMER_FIXED_DELAY) {
        m->grid = now_us + 1 + m->interval;

    } else {
        n = 0;

        for (m->grid += m->interval; m->grid <= now_us; n++) {
            m->grid += m->interval;
        }

        if (m->flags & SLUICE_TIMER_QUEUE) {
            room = SLUICE_TIMERS_QUEUE_MAX - (uint64_t) m->queued;
            room = n < room ? n : room;
            m->queued += (int) room;
            n -= room;
        }

        skipped += n;
    }

    if (m->paused) {
        m->left = m->grid > now_us ? m->grid - now_us : 0;
        return;
    }

    if (m->queued) {
        m->queued--;
        m->grid -= m->interval;
        m->where = WHEEL;
        m->armed = ++arms;
        m->tick = now_us / 1000;
        return;
    }

    model_arm(m, now_us);
}


static model_timer_t *
model_pick(void)
{
    size_t  i, start;

    start = test_below(&state, MODEL_TIMERS);

    for (i = 0; i < MODEL_TIMERS; i++) {
        if (model[(start + i) % MODEL_TIMERS].used
            && !model[(start + i) % MODEL_TIMERS].gone)
        {
            return &model[(start + i) % MODEL_TIMERS];
        }
    }

    return NULL;
}


static sluice_timer_t *
model_find(model_timer_t *m)
{
    sluice_timer_t  *t;

    t = sluice_timers_find(&ts, m->handle);

    test_check(t != NULL, "a handle leads nowhere");

    return t;
}


static void
step_create(void)
{
    static const int       flags[] = { 0, SLUICE_TIMER_FIXED_DELAY,
                                       SLUICE_TIMER_QUEUE,
                                       SLUICE_TIMER_CONCURRENT };
    uint64_t               us;
    model_timer_t         *m;
    sluice_timer_t        *t;
    sluice_timers_spec_t   spec;

    for (m = model; m < model + MODEL_TIMERS && m->used; m++) { /* void */ }

    if (m == model + MODEL_TIMERS) {
        return;
    }

    memset(&spec, 0, sizeof(spec));
    memset(m, 0, sizeof(*m));

    spec.delay_us = test_below(&state, 4)
                    ? test_below(&state,
                                 (uint64_t) 1 << test_below(&state, 26))
                    : 0;

    if (test_below(&state, 2)) {
        spec.interval_us = 1000 + test_below(&state, 50000);
        spec.flags = (uint8_t) flags[test_below(&state, 4)];
    }

    if (test_below(&state, 16) == 0) {
        spec.flags |= SLUICE_TIMER_OWN_STATS;
    }

    t = sluice_timers_create(&ts, &spec, now_ns);
    test_check(t != NULL, "no timer");
    created++;

    us = (now_ns + 999) / 1000;

    m->used = 1;
    m->handle = sluice_timers_handle(t);
    m->interval = spec.interval_us;
    m->whole = spec.interval_us ? spec.interval_us : spec.delay_us;
    m->flags = spec.flags;
    m->grid = us + spec.delay_us;

    model_arm(m, spec.delay_us ? us : m->grid);
}


static void
step_cancel(model_timer_t *m)
{
    sluice_timers_cancel(&ts, model_find(m));
    test_check(sluice_timers_find(&ts, m->handle) == NULL, "still there");

    stale[test_below(&state, MODEL_STALE)] = m->handle;

    m->gone = 1;
    m->where = NOWHERE;
    m->used = m->running > 0;
}


static void
step_pause(model_timer_t *m)
{
    sluice_timers_pause(&ts, model_find(m), now_ns);

    if (m->paused) {
        return;
    }

    m->paused = 1;

    if (m->where != NOWHERE) {
        m->where = NOWHERE;
        m->left = model_find(m)->due_us;
        test_check(m->left <= m->grid, "more is left than there was");
    }
}


static void
step_resume(model_timer_t *m, int restart)
{
    uint64_t  us;

    if (restart) {
        sluice_timers_restart(&ts, model_find(m), now_ns);
        m->where = NOWHERE;
        m->left = m->whole;

    } else {
        sluice_timers_resume(&ts, model_find(m), now_ns);

        if (!m->paused) {
            return;
        }
    }

    m->paused = 0;

    if (m->running && !(m->flags & SLUICE_TIMER_CONCURRENT)) {
        return;
    }

    us = (now_ns + 999) / 1000;
    m->grid = us + m->left;
    model_arm(m, us);
}


static void
step_begin(void)
{
    model_timer_t  *m;

    for (m = model; m < model + MODEL_TIMERS; m++) {
        if (m->used && m->where == CURRENT) {
            test_check(sluice_timers_begin(&ts, now_ns), "not done");
            return;
        }
    }

    test_check(sluice_timers_begin(&ts, now_ns), "not done");

    for (m = model; m < model + MODEL_TIMERS; m++) {
        if (m->used && m->where == WHEEL && m->tick <= now_ns / 1000000) {
            m->where = CURRENT;
        }
    }
}


static void
step_take(void)
{
    int             i;
    uint64_t        us, n, late, due;
    model_timer_t  *m, *first;

    for (i = 0; i < MODEL_RUNS && runs[i].timer; i++) { /* void */ }

    if (i == MODEL_RUNS) {
        return;
    }

    first = NULL;

    for (m = model; m < model + MODEL_TIMERS; m++) {
        if (m->used && m->where == CURRENT
            && (first == NULL || m->tick < first->tick
                || (m->tick == first->tick && m->armed < first->armed)))
        {
            first = m;
        }
    }

    late = sluice_timers_late(&ts, now_ns);

    test_check(sluice_timers_take(&ts, &runs[i], now_ns) == (first != NULL),
               "a run too many or too few");

    if (first == NULL) {
        test_check(late == 0, "nothing is late");
        return;
    }

    due = runs[i].timer->due_us * 1000;

    /* one that may overlap is armed again by now */

    test_check(late == (now_ns > due ? now_ns - due : 0)
               || first->flags & SLUICE_TIMER_CONCURRENT, "%lu late", late);

    taken++;

    test_check(sluice_timers_handle(runs[i].timer) == first->handle,
               "another timer's turn");
    test_check(now_ns >= runs[i].timer->due_us * 1000
               || first->flags & SLUICE_TIMER_CONCURRENT
               || runs[i].timer->due_us * 1000 - now_ns < 1000, "early");

    run_of[i] = first;
    first->where = NOWHERE;
    first->running++;

    if (first->interval == 0) {
        first->gone = 1;
        stale[test_below(&state, MODEL_STALE)] = first->handle;

    } else if (first->flags & SLUICE_TIMER_CONCURRENT) {
        us = now_ns / 1000;
        n = 0;

        for (first->grid += first->interval; first->grid <= us; n++) {
            first->grid += first->interval;
        }

        skipped += n;
        model_arm(first, us);

    } else if (!(first->flags & SLUICE_TIMER_FIXED_DELAY)) {

        while (first->grid + first->interval <= now_ns / 1000) {
            first->grid += first->interval;
            skipped++;
        }
    }
}


static void
step_finish(void)
{
    int             i;
    model_timer_t  *m;

    i = (int) test_below(&state, MODEL_RUNS);

    if (runs[i].timer == NULL) {
        return;
    }

    m = run_of[i];
    m->running--;

    sluice_timers_finish(&ts, &runs[i], now_ns, test_below(&state, 8) == 0);

    if (m->gone) {
        m->used = m->running > 0;

    } else if (!(m->flags & SLUICE_TIMER_CONCURRENT)) {
        model_again(m, now_ns / 1000);
    }
}


static void
step_check(void)
{
    uint32_t                count, paused, pages, listed, i;
    uint64_t                next;
    const sluice_timer_t   *t;
    const model_timer_t    *m;

    count = 0;
    paused = 0;
    next = SLUICE_WHEEL_NEVER;

    for (m = model; m < model + MODEL_TIMERS; m++) {
        count += m->used != 0;
        paused += m->used && m->paused && !m->gone;

        if (m->used && m->where == WHEEL && m->tick < next) {
            next = m->tick;
        }
    }

    test_check(ts.count == count, "%u timers, not %u", ts.count, count);
    for (i = 0, listed = 0; (t = sluice_timers_from(&ts, i)) != NULL; ) {
        i = t->index + 1;
        listed++;
        test_check(sluice_timers_at(&ts, sluice_timers_handle(t)) == t,
                   "a handle leads elsewhere");
    }

    test_check(listed == count, "%u in the list, not %u", listed, count);
    test_check(ts.paused == paused, "%u paused, not %u", ts.paused, paused);
    test_check(ts.skipped == skipped, "%lu skipped, not %lu", ts.skipped,
               skipped);
    test_check(created - released == count, "%u not released",
               created - released - count);
    test_check(sluice_timers_next(&ts) <= next, "next is %lu, not %lu",
               sluice_timers_next(&ts), next);

    for (i = 0; i < MODEL_STALE; i++) {
        test_check(sluice_timers_find(&ts, stale[i]) == NULL,
                   "a stale handle leads to a timer");
    }

    for (i = 0, pages = 0; i < SLUICE_TIMERS_PAGES; i++) {
        pages += ts.pages[i].timers != NULL;
    }

    mapped_most = pages > mapped_most ? pages : mapped_most;
}


/* Memory of many timers is given back, all but a page. */

static void
model_memory(void)
{
    uint32_t                i, pages, order;
    sluice_timers_spec_t    spec;
    static sluice_timer_t  *many[50000];
    sluice_timer_t         *t;

    memset(&spec, 0, sizeof(spec));
    spec.delay_us = 1000000;

    for (i = 0; i < 50000; i++) {
        many[i] = sluice_timers_create(&ts, &spec, now_ns);
        test_check(many[i] != NULL, "no memory");
    }

    for (i = 50000; i > 1; i--) {
        order = (uint32_t) test_below(&state, i);
        t = many[order];
        many[order] = many[i - 1];
        many[i - 1] = t;
    }

    for (i = 0; i < 50000; i++) {
        sluice_timers_cancel(&ts, many[i]);
    }

    for (i = 0, pages = 0; i < SLUICE_TIMERS_PAGES; i++) {
        pages += ts.pages[i].timers != NULL;
    }

    test_check(pages <= 1, "%u pages are left", pages);
    test_check(dropped >= 48, "%lu pages were given back", dropped);
    test_check(sluice_timers_next(&ts) == SLUICE_WHEEL_NEVER, "not empty");
}


int
main(void)
{
    uint64_t        ops, i;
    model_timer_t  *m;

    state = test_seed("model");
    ops = test_env("OPS", 300000);
    now_ns = test_below(&state, (uint64_t) 1 << 50);

    test_check(sluice_timers_init(&ts, now_ns), "no memory");
    ts.release = model_release;
    ts.drop = model_drop;

    for (i = 0; i < ops; i++) {
        m = model_pick();

        switch (test_below(&state, 16)) {

        case 0: case 1:
            step_create();
            break;

        case 2:
            if (m && test_below(&state, 3) == 0) {
                step_cancel(m);
            }
            break;

        case 3:
            if (m && test_below(&state, 2)) {
                step_pause(m);
            }
            break;

        case 4: case 5:
            if (m) {
                step_resume(m, test_below(&state, 4) == 0);
            }
            break;

        case 6: case 7: case 8:
            step_begin();
            break;

        case 9: case 10: case 11: case 12:
            step_take();
            break;

        case 13: case 14:
            step_finish();
            break;

        default:
            now_ns += test_below(&state, (uint64_t) 1
                                         << test_below(&state, 31));
        }

        if (i % 16 == 0) {
            step_check();
        }
    }

    step_check();

    for (i = 0; i < MODEL_RUNS; i++) {
        if (runs[i].timer) {
            sluice_timers_finish(&ts, &runs[i], now_ns, 0);
        }
    }

    sluice_timers_clear(&ts);
    test_check(ts.count == 0 && released == created, "%u left", ts.count);

    model_memory();
    sluice_timers_close(&ts);

    printf("model: %u timers, %lu runs, %lu periods left out\n", created,
           taken, skipped);

    return 0;
}
