
/*
 * The clock of a match (budget.h).
 */


#include "budget.h"

#include <time.h>


/* The first time says when the clock began. */

void
sluice_core_budget_read(sluice_core_budget_t *budget)
{
    uint64_t         now;
    struct timespec  ts;

    (void) clock_gettime(budget->is_cpu ? CLOCK_THREAD_CPUTIME_ID
                                        : CLOCK_MONOTONIC, &ts);

    now = (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;

    if (budget->last) {
        budget->spent += now - budget->last;
    }

    budget->last = now;
    budget->units = SLUICE_CORE_UNITS;

    if (!budget->is_cpu && budget->spent > SLUICE_CORE_WALL_NS) {
        budget->spent = SLUICE_CORE_WALL_NS;
        budget->is_cpu = 1;
        budget->last = 0;

        sluice_core_budget_read(budget);
    }
}
