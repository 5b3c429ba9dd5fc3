
/*
 * The clocks of a match (budget.h).
 */


#include "budget.h"

#include <time.h>


static uint64_t core_now(clockid_t clock);


uint64_t
sluice_core_budget_now(void)
{
    return core_now(CLOCK_MONOTONIC);
}


/* The first time says when the clock began. */

void
sluice_core_budget_read(sluice_core_budget_t *budget)
{
    uint64_t  now;

    now = core_now(CLOCK_MONOTONIC);

    if (budget->last) {
        budget->spent += now - budget->last;
    }

    budget->last = now;
    budget->units = SLUICE_CORE_UNITS;

    if (budget->cpu == 0 && budget->spent > SLUICE_CORE_WALL_NS) {
        budget->spent = SLUICE_CORE_WALL_NS;
        budget->corrected = budget->spent;
        budget->cpu = core_now(CLOCK_THREAD_CPUTIME_ID);
    }
}


/* What was waited for the CPU is taken back. */

void
sluice_core_budget_correct(sluice_core_budget_t *budget)
{
    uint64_t  cpu, spent;

    if (budget->cpu == 0) {
        return;
    }

    cpu = core_now(CLOCK_THREAD_CPUTIME_ID);
    spent = budget->corrected + cpu - budget->cpu;

    budget->cpu = cpu;
    budget->last = core_now(CLOCK_MONOTONIC);
    budget->corrected = spent;
    budget->spent = spent;

    if (budget->preparing > spent) {
        budget->preparing = spent;
    }
}


static uint64_t
core_now(clockid_t clock)
{
    struct timespec  ts;

    (void) clock_gettime(clock, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}
