
/*
 * Statistics against what they say in long: mean and variance in two passes
 * over all that was measured, the quantile from a sorted array.
 */


#include "support.h"
#include "wheel_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


#define SPREAD_MEASURES  20000


static uint64_t                measures[SPREAD_MEASURES];
static sluice_timers_spread_t  spread;
static uint64_t                state;


static int
spread_order(const void *a, const void *b)
{
    uint64_t  x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}


static void
spread_near(double is, double wanted, double tolerance, const char *what)
{
    test_check(fabs(is - wanted) <= fabs(wanted) * tolerance, what);
}


/* At least base, and up to range more. */

static void
spread_try(uint64_t base, uint64_t range, size_t n)
{
    size_t    i;
    double    mean, variance;

    memset(&spread, 0, sizeof(spread));

    for (mean = 0, i = 0; i < n; i++) {
        measures[i] = base + test_below(&state, range);
        sluice_timers_measure(&spread, measures[i]);
        mean += (double) (measures[i] - base) / (double) n;
    }

    for (variance = 0, i = 0; i < n; i++) {
        variance += ((double) (measures[i] - base) - mean)
                    * ((double) (measures[i] - base) - mean) / (double) n;
    }

    qsort(measures, n, sizeof(uint64_t), spread_order);

    test_check(spread.count == n, "count");
    test_check(spread.min_ns == measures[0], "least");
    test_check(spread.max_ns == measures[n - 1], "most");
    spread_near(sluice_timers_mean(&spread), (double) base + mean, 1e-9,
                "mean");
    spread_near(sluice_timers_variance(&spread), variance, 1e-3, "variance");
    spread_near(sluice_timers_p99(&spread),
                (double) measures[n - 1 - n / 100], 0.13, "p99");
}


int
main(void)
{
    state = test_seed("spread");

    test_check(sluice_timers_mean(&spread) == 0, "mean of nothing");
    test_check(sluice_timers_variance(&spread) == 0, "variance of nothing");

    spread_try(60, 100, SPREAD_MEASURES);
    spread_try(5, 1, SPREAD_MEASURES);
    spread_try(0, 1000000, SPREAD_MEASURES);

    /* ten seconds, alike to ten us; all that buckets tell apart; one */
    spread_try(10000000000, 10000, SPREAD_MEASURES);
    spread_try(0, (uint64_t) 1 << 40, SPREAD_MEASURES);
    spread_try(1000, 1000, 1);

    return 0;
}
