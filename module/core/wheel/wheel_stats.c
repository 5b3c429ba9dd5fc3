
/*
 * What timers did.  A run costs two measures in the account of its creation
 * place and four numbers in the timer itself.
 */


#include "wheel_memory.h"

#include <stdlib.h>
#include <string.h>


/* What a float of 1 has at its front, less 4: 2^2 is bucket 4. */
#define TIMERS_EXPONENT  512u


/*
 * Four buckets an octave, by the two bits behind the highest: a quantile is
 * right to 12%.  A float has both at its front.
 */

static uint32_t
timers_bucket(uint64_t ns)
{
    float     x;
    uint32_t  bits, i;

    if (ns < 4) {
        return (uint32_t) ns;
    }

    x = (float) (int64_t) ns;
    memcpy(&bits, &x, sizeof(bits));

    i = (bits >> 21) - TIMERS_EXPONENT;

    return i < SLUICE_TIMERS_BUCKETS ? i : SLUICE_TIMERS_BUCKETS - 1;
}


/* The middle of a bucket. */

static double
timers_bucket_ns(uint32_t i)
{
    if (i < 4) {
        return i;
    }

    return (double) ((uint64_t) (4 + i % 4) << (i / 4 - 1))
           * (1 + 0.5 / (4 + i % 4));
}


static void SLUICE_WHEEL_RARE
timers_widen(sluice_timers_spread_t *s, uint64_t ns)
{
    if (ns < s->min_ns || s->count == 0) {
        s->min_ns = ns;
    }

    if (ns > s->max_ns) {
        s->max_ns = ns;
    }
}


void
sluice_timers_measure(sluice_timers_spread_t *s, uint64_t ns)
{
    /* seldom, and one comparison says so: the first is beyond 0 and 0 */

    if (ns - s->min_ns > s->max_ns - s->min_ns) {
        timers_widen(s, ns);
    }

    s->count++;
    s->sum_ns += ns;
    s->squares += (sluice_timers_squares_t) ns * ns;
    s->buckets[timers_bucket(ns)]++;
}


double
sluice_timers_mean(const sluice_timers_spread_t *s)
{
    return s->count ? (double) s->sum_ns / (double) s->count : 0;
}


/* The sums are exact, and long double has 11 bits more to take apart. */

double
sluice_timers_variance(const sluice_timers_spread_t *s)
{
    long double  mean, variance;

    if (s->count == 0) {
        return 0;
    }

    mean = (long double) s->sum_ns / s->count;
    variance = (long double) s->squares / s->count - mean * mean;

    return variance > 0 ? (double) variance : 0;
}


double
sluice_timers_p99(const sluice_timers_spread_t *s)
{
    uint32_t  i;
    uint64_t  beyond, limit;

    limit = s->count / 100;
    beyond = 0;

    for (i = SLUICE_TIMERS_BUCKETS; i > 0; i--) {
        beyond += s->buckets[i - 1];

        if (beyond > limit) {
            return timers_bucket_ns(i - 1);
        }
    }

    return 0;
}


void
sluice_timers_count(sluice_timers_t *ts, sluice_timer_t *t, uint64_t ns,
    int failed)
{
    float                     x, delta, share;
    sluice_timers_account_t  *a;

    a = ts->accounts[t->place];

    a->running--;
    sluice_timers_measure(&a->elapsed, ns);
    a->failures += failed != 0;

    if (t->account) {
        sluice_timers_measure(&ts->accounts[t->account]->elapsed, ns);
        ts->accounts[t->account]->failures += failed != 0;
    }

    t->runs++;
    t->failures += failed != 0;

    x = (float) (int64_t) ns;

    t->min_ns = x < t->min_ns ? x : t->min_ns;
    t->max_ns = x > t->max_ns ? x : t->max_ns;

    /* after Welford, 1962: sums would not fit into a float */

    share = 1 / (float) t->runs;
    delta = x - t->mean_ns;
    t->mean_ns += delta * share;
    t->variance += (delta * (x - t->mean_ns) - t->variance) * share;
}


uint32_t
sluice_timers_account(sluice_timers_t *ts)
{
    uint32_t                   i, room;
    sluice_timers_account_t   *a, **more;

    if (ts->account_free) {
        i = ts->account_free;
        ts->account_free = (uint32_t) ts->accounts[i]->live;
        memset(ts->accounts[i], 0, sizeof(sluice_timers_account_t));
        return i;
    }

    i = ts->account_count;

    if (i == SLUICE_TIMERS_ACCOUNTS) {
        return 0;
    }

    if ((i & (i - 1)) == 0) {
        room = i ? i * 2 : 1;
        more = realloc(ts->accounts, room * sizeof(*more));
        if (more == NULL) {
            return 0;
        }

        ts->accounts = more;
    }

    a = calloc(1, sizeof(sluice_timers_account_t));
    if (a == NULL) {
        return 0;
    }

    ts->accounts[i] = a;
    ts->account_count++;

    return i;
}


void
sluice_timers_account_free(sluice_timers_t *ts, uint32_t account)
{
    ts->accounts[account]->live = ts->account_free;
    ts->account_free = account;
}
