
/*
 * What a request may cost the router: time, handed from one candidate and one
 * pattern to the next.  A match that goes beyond it is refused, never taken
 * for "no match".
 *
 * Until something is dear, no clock is read: work is counted in units of some
 * tens of nanoseconds, and the clock looked at when they are used up, and
 * around each regular expression.  That is the clock of the wall, which is
 * cheap, and never behind the CPU time of the thread.  Where it says that a
 * limit is passed, the CPU time is asked, which costs a system call, and has
 * the last word: a worker which other processes keep from running refuses
 * nobody.  The first SLUICE_CORE_WALL_NS are the wall's alone, and so little
 * that who waits in them for the CPU has nearly all that is his.
 */


#ifndef SLUICE_CORE_BUDGET_H_INCLUDED
#define SLUICE_CORE_BUDGET_H_INCLUDED


#include "core.h"


/* ns: of patterns, compiled and run; of a match as a whole */
#define SLUICE_CORE_PATTERNS_NS   2000000
#define SLUICE_CORE_SEARCH_NS     3000000
#define SLUICE_CORE_WALL_NS       100000

/* A request that has spent less than this part of it so is not cold. */
#define SLUICE_CORE_COLD          8

#define SLUICE_CORE_UNITS         1024

/* A unit each: of texts that are compared, of a subject between two calls. */
#define SLUICE_CORE_UNIT_BYTES    32
#define SLUICE_CORE_CALL_BYTES    128

/* Of a step that may look at all the groups that it is in. */
#define SLUICE_CORE_CALL_GROUPS   64


typedef struct {
    uint64_t  spent;          /* ns, or less where it was not corrected */
    uint64_t  preparing;      /* of them: for what is kept (is_cold) */
    uint64_t  last;           /* what the wall's said; 0: not read yet */
    uint64_t  corrected;      /* spent, when the CPU's was read last */
    uint64_t  cpu;            /* what that said; 0: not read yet */
    uint64_t  until;          /* of spent, for the pattern that runs */
    uint32_t  steps;          /* left, of patterns */
    uint32_t  steps_until;    /* of steps, for the pattern that runs */
    uint32_t  step;           /* units of one */
    int32_t   units;          /* left, until the clock is read */
    int       is_put_off;     /* there is something to compile in a turn */
    int       is_urgent;      /* nothing is put off */
} sluice_core_budget_t;


/* budget.c */

void sluice_core_budget_read(sluice_core_budget_t *budget);

/* Spent is what the CPU's clock says. */
void sluice_core_budget_correct(sluice_core_budget_t *budget);


static inline void
sluice_core_budget_begin(sluice_core_budget_t *budget)
{
    budget->spent = 0;
    budget->preparing = 0;
    budget->last = 0;
    budget->steps = SLUICE_CORE_STEPS;
    budget->units = SLUICE_CORE_UNITS;
    budget->corrected = 0;
    budget->cpu = 0;
    budget->is_put_off = 0;
    budget->is_urgent = 0;
}


/* Whether more is spent than that. */

static inline int
sluice_core_budget_is_over(sluice_core_budget_t *budget, uint64_t limit)
{
    if (budget->spent <= limit) {
        return 0;
    }

    sluice_core_budget_correct(budget);

    return budget->spent > limit;
}


/* Whether nothing is left after so many units of work. */

static inline int
sluice_core_budget_take(sluice_core_budget_t *budget, uint32_t units)
{
    budget->units -= (int32_t) units;

    if (budget->units < 0) {
        sluice_core_budget_read(budget);
    }

    return sluice_core_budget_is_over(budget, SLUICE_CORE_SEARCH_NS);
}


/*
 * Whether what took the time is there the next time: compiled patterns, and
 * memory; or there was no time to compile.
 */

static inline int
sluice_core_budget_is_cold(const sluice_core_budget_t *budget)
{
    return budget->is_put_off
           || budget->preparing > budget->spent / SLUICE_CORE_COLD;
}


/*
 * Whether there is something left for a pattern: half of it is this one's, so
 * that those behind one that gives up can still be asked.
 */

static inline int
sluice_core_budget_share(sluice_core_budget_t *budget)
{
    if (budget->steps < 2
        || sluice_core_budget_is_over(budget, SLUICE_CORE_PATTERNS_NS - 1))
    {
        return 0;
    }

    budget->until = budget->spent
                    + (SLUICE_CORE_PATTERNS_NS - budget->spent) / 2;
    budget->steps_until = budget->steps / 2;

    return 1;
}


#endif /* SLUICE_CORE_BUDGET_H_INCLUDED */
