
/*
 * Times and policies of timers; wheel_timers.h has the contract.
 */


#include "wheel_timers.h"
#include "wheel_memory.h"

#include <math.h>


static void timers_arm(sluice_timers_t *ts, sluice_timer_t *t,
    uint64_t now_us);
static uint64_t SLUICE_WHEEL_RARE timers_random(sluice_timers_t *ts,
    uint64_t below);
static uint64_t timers_pass(sluice_timer_t *t, uint64_t now_us);
static void timers_skip(sluice_timers_t *ts, sluice_timer_t *t, uint64_t n);
static uint64_t timers_late(const sluice_timer_t *t, uint64_t now_ns);
static void timers_again(sluice_timers_t *ts, sluice_timer_t *t,
    uint64_t now_us);


/* Up: what is not over yet counts as whole. */

static uint64_t
timers_us(uint64_t ns)
{
    return (ns + 999) / 1000;
}


static uint64_t SLUICE_WHEEL_RARE
timers_random(sluice_timers_t *ts, uint64_t below)
{
    /* xorshift64*, Vigna 2014 */

    ts->random ^= ts->random >> 12;
    ts->random ^= ts->random << 25;
    ts->random ^= ts->random >> 27;

    return ((ts->random * 0x2545f4914f6cdd1du) >> 16) % below;
}


/* Into the wheel, for grid_us; due_us follows. */

static void
timers_arm(sluice_timers_t *ts, sluice_timer_t *t, uint64_t now_us)
{
    int       bit;
    uint64_t  first, last;

    t->due_us = t->grid_us;

    if (t->jitter_ms) {
        t->due_us += timers_random(ts, (uint64_t) t->jitter_ms * 1000 + 1);
    }

    /* what is due already need not wait for the next millisecond */

    first = t->due_us <= now_us ? now_us / 1000 : (t->due_us + 999) / 1000;

    if (t->tolerance_ms && first) {

        /* the roundest time in reach: others choose it, too */

        last = first + t->tolerance_ms;
        bit = 63 - __builtin_clzll((first - 1) ^ last);
        first = last >> bit << bit;
    }

    t->node.expires = first;

    sluice_wheel_insert(&ts->wheel, &t->node);
}


sluice_timer_t *
sluice_timers_create(sluice_timers_t *ts, const sluice_timers_spec_t *spec,
    uint64_t now_ns)
{
    sluice_timer_t           *t;
    sluice_timers_account_t  *a;

    t = sluice_timers_alloc(ts);
    if (t == NULL) {
        return NULL;
    }

    t->interval_us = spec->interval_us ? spec->interval_us : spec->delay_us;
    t->jitter_ms = spec->jitter_ms;
    t->tolerance_ms = spec->tolerance_ms;
    t->warn_ms = spec->warn_ms;
    t->min_ns = INFINITY;
    t->place = (uint16_t) spec->place;
    t->flags = spec->flags;

    if (spec->interval_us == 0) {
        t->flags |= SLUICE_TIMER_ONCE;
    }

    if (spec->flags & SLUICE_TIMER_OWN_STATS) {
        t->account = (uint16_t) sluice_timers_account(ts);
    }

    a = ts->accounts[t->place];
    a->created++;
    a->live++;

    ts->created++;

    t->grid_us = timers_us(now_ns) + spec->delay_us;

    /* of a delay of 0 the rounding is no reason to wait */

    timers_arm(ts, t, spec->delay_us ? timers_us(now_ns) : t->grid_us);

    return t;
}


void
sluice_timers_cancel(sluice_timers_t *ts, sluice_timer_t *t)
{
    if (t->flags & SLUICE_TIMER_PAUSED) {
        ts->paused--;
    }

    if (t->node.next) {
        sluice_wheel_remove(&ts->wheel, &t->node);
    }

    t->flags |= SLUICE_TIMER_GONE;

    if (t->running == 0) {
        sluice_timers_free(ts, t);
        return;
    }

    ts->release(ts->data, t, 1);
}


void
sluice_timers_clear(sluice_timers_t *ts)
{
    uint32_t         index;
    sluice_timer_t  *t;

    for (index = 0; (t = sluice_timers_from(ts, index)) != NULL; index++) {
        index = t->index;

        if (!(t->flags & SLUICE_TIMER_GONE)) {
            sluice_timers_cancel(ts, t);
        }
    }
}


void
sluice_timers_pause(sluice_timers_t *ts, sluice_timer_t *t, uint64_t now_ns)
{
    uint64_t  now_us;

    if (t->flags & SLUICE_TIMER_PAUSED) {
        return;
    }

    t->flags |= SLUICE_TIMER_PAUSED;
    ts->paused++;

    if (t->node.next) {
        now_us = now_ns / 1000;
        sluice_wheel_remove(&ts->wheel, &t->node);
        t->due_us = t->due_us > now_us ? t->due_us - now_us : 0;
    }
}


void
sluice_timers_resume(sluice_timers_t *ts, sluice_timer_t *t, uint64_t now_ns)
{
    uint64_t  now_us;

    if (!(t->flags & SLUICE_TIMER_PAUSED)) {
        return;
    }

    t->flags &= ~SLUICE_TIMER_PAUSED;
    ts->paused--;

    /* the end of a run arms the timer */

    if (t->running && !(t->flags & SLUICE_TIMER_CONCURRENT)) {
        return;
    }

    now_us = timers_us(now_ns);
    t->grid_us = now_us + t->due_us;

    timers_arm(ts, t, now_us);
}


void
sluice_timers_restart(sluice_timers_t *ts, sluice_timer_t *t, uint64_t now_ns)
{
    sluice_timers_pause(ts, t, now_ns);

    t->due_us = t->interval_us;

    sluice_timers_resume(ts, t, now_ns);
}


void
sluice_timers_exit(sluice_timers_t *ts)
{
    ts->exiting = 1;
}


int
sluice_timers_begin(sluice_timers_t *ts, uint64_t now_ns)
{
    int       done;
    uint64_t  now;

    if (!sluice_timers_empty(ts)) {
        return 1;
    }

    now = ts->exiting ? SLUICE_WHEEL_NEVER - 1 : now_ns / 1000000;

    done = sluice_wheel_advance(&ts->wheel, now, SLUICE_TIMERS_MOVES);

    sluice_wheel_queue_append(&ts->current, &ts->wheel.ready);

    return done;
}


uint64_t
sluice_timers_next(const sluice_timers_t *ts)
{
    return sluice_wheel_next(&ts->wheel);
}


static uint64_t
timers_late(const sluice_timer_t *t, uint64_t now_ns)
{
    uint64_t  due_ns;

    due_ns = t->due_us * 1000;

    return now_ns > due_ns ? now_ns - due_ns : 0;
}


uint64_t
sluice_timers_late(const sluice_timers_t *ts, uint64_t now_ns)
{
    if (sluice_timers_empty(ts)) {
        return 0;
    }

    return timers_late((const sluice_timer_t *) ts->current.next, now_ns);
}


/*
 * What the next runs need comes from memory meanwhile: the callback of the
 * run after the next, and the timer of the one after that.
 */

static void
timers_prefetch(const sluice_timers_t *ts, const sluice_wheel_node_t *node)
{
    const char  *p;

    node = node->next->next;

    if (node == &ts->current) {
        return;
    }

    __builtin_prefetch(((const sluice_timer_t *) node)->callback);

    p = (const char *) node->next;

    __builtin_prefetch(p, 1);
    __builtin_prefetch(p + 64, 1);
}


int
sluice_timers_take(sluice_timers_t *ts, sluice_timers_run_t *run,
    uint64_t now_ns)
{
    uint64_t                  now_us, late_ns;
    sluice_timer_t           *t;
    sluice_timers_account_t  *a;

    if (sluice_timers_empty(ts)) {
        return 0;
    }

    t = (sluice_timer_t *) ts->current.next;
    a = ts->accounts[t->place];
    now_us = now_ns / 1000;
    timers_prefetch(ts, &t->node);
    sluice_wheel_queue_remove(&t->node);

    run->timer = t;
    run->start_ns = now_ns;
    run->premature = ts->exiting;

    if (!ts->exiting) {
        late_ns = timers_late(t, now_ns);
        sluice_timers_measure(&a->late, late_ns);

        if (t->account) {
            sluice_timers_measure(&ts->accounts[t->account]->late, late_ns);
        }
    }

    if (t->flags & SLUICE_TIMER_ONCE || ts->exiting) {

        /* its last run: within it the name is free again */

        t->flags |= SLUICE_TIMER_GONE;

        if (t->flags & SLUICE_TIMER_NAMED) {
            ts->release(ts->data, t, 1);
        }

    } else if (t->flags & SLUICE_TIMER_CONCURRENT) {
        timers_skip(ts, t, timers_pass(t, now_us));
        timers_arm(ts, t, now_us);

    } else if (!(t->flags & SLUICE_TIMER_FIXED_DELAY)
               && now_us >= t->grid_us + t->interval_us)
    {
        /* what passed before this run began is not to be queued */

        timers_skip(ts, t, timers_pass(t, now_us));
        t->grid_us -= t->interval_us;
    }

    t->running++;
    ts->running++;
    a->running++;

    return 1;
}


/* To the first point of the grid that is not past; how many were. */

static uint64_t
timers_pass(sluice_timer_t *t, uint64_t now_us)
{
    uint64_t  n;

    t->grid_us += t->interval_us;

    if (t->grid_us > now_us) {
        return 0;
    }

    n = (now_us - t->grid_us) / t->interval_us + 1;
    t->grid_us += n * t->interval_us;

    return n;
}


static void
timers_skip(sluice_timers_t *ts, sluice_timer_t *t, uint64_t n)
{
    if (n == 0) {
        return;
    }

    ts->skipped += n;
    ts->accounts[t->place]->skipped += n;

    if (t->account) {
        ts->accounts[t->account]->skipped += n;
    }
}


void
sluice_timers_finish(sluice_timers_t *ts, sluice_timers_run_t *run,
    uint64_t now_ns, int failed)
{
    sluice_timer_t  *t;

    t = run->timer;
    run->timer = NULL;

    ts->running--;
    ts->runs++;
    ts->failures += failed != 0;
    t->running--;

    sluice_timers_count(ts, t, now_ns - run->start_ns, failed);

    if (t->flags & SLUICE_TIMER_GONE) {

        if (t->running == 0) {
            sluice_timers_free(ts, t);
        }

        return;
    }

    if (!(t->flags & SLUICE_TIMER_CONCURRENT)) {
        timers_again(ts, t, now_ns / 1000);
    }
}


/* After a run of a recurrent timer that is in no queue. */

static void
timers_again(sluice_timers_t *ts, sluice_timer_t *t, uint64_t now_us)
{
    uint64_t  passed, room;

    if (t->flags & SLUICE_TIMER_FIXED_DELAY) {
        t->grid_us = now_us + 1 + t->interval_us;

    } else {
        passed = timers_pass(t, now_us);

        if (t->flags & SLUICE_TIMER_QUEUE) {
            room = SLUICE_TIMERS_QUEUE_MAX - t->queued;
            room = passed < room ? passed : room;
            t->queued += (uint8_t) room;
            passed -= room;
        }

        timers_skip(ts, t, passed);
    }

    if (t->flags & SLUICE_TIMER_PAUSED) {
        t->due_us = t->grid_us > now_us ? t->grid_us - now_us : 0;
        return;
    }

    if (t->queued) {

        /* at once; the next pass comes back to this point of the grid */

        t->queued--;
        t->grid_us -= t->interval_us;
        t->due_us = now_us;
        t->node.expires = now_us / 1000;

        sluice_wheel_insert(&ts->wheel, &t->node);

        return;
    }

    timers_arm(ts, t, now_us);
}


uint32_t
sluice_timers_backlog(const sluice_timers_t *ts, uint32_t limit,
    uint64_t now_ns, uint64_t *age_us)
{
    int                         i;
    uint32_t                    n;
    uint64_t                    due;
    const sluice_wheel_node_t  *node, *queue;

    n = 0;
    *age_us = 0;

    for (i = 0; i < 2; i++) {
        queue = i == 0 ? &ts->current : &ts->wheel.ready;

        for (node = queue->next; node != queue && n < limit;
             node = node->next)
        {
            if (n++ == 0) {
                due = ((const sluice_timer_t *) node)->due_us;
                *age_us = now_ns / 1000 > due ? now_ns / 1000 - due : 0;
            }
        }
    }

    return n;
}
