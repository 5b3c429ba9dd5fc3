
/*
 * What is compiled in a turn of the event loop (pattern.h).
 */


#include "pattern.h"


/*
 * What is compiled in a turn of the event loop, which others wait for; and
 * what a worker can be behind, since one pattern may take more.
 */

#define CORE_TURN_NS    250000
#define CORE_BEHIND_NS  100000000

/*
 * What all requests of a turn compile beyond that, of patterns that have so
 * many bytes at most: who needs a few of these does not wait for others.
 */

#define CORE_UNPAID_NS     50000
#define CORE_UNPAID_BYTES  256


void
sluice_core_regexes_bound(sluice_core_regexes_t *regexes,
    const volatile uintptr_t *clock)
{
    regexes->clock = clock;
    regexes->turn = *clock;
    regexes->left = CORE_TURN_NS;
}


/* A turn that has taken more is paid for by those after it. */

int
sluice_core_regexes_has_time(sluice_core_regexes_t *regexes)
{
    int64_t    left;
    uintptr_t  now;

    if (regexes->clock == NULL) {
        return 1;
    }

    now = *regexes->clock;

    if (now != regexes->turn) {
        left = CORE_TURN_NS;

        if (now - regexes->turn < CORE_BEHIND_NS / CORE_TURN_NS) {
            left = regexes->left + (int64_t) (now - regexes->turn)
                                   * CORE_TURN_NS;
        }

        regexes->left = left < CORE_TURN_NS ? left : CORE_TURN_NS;
        regexes->unpaid = 0;
        regexes->turn = now;
    }

    return regexes->left > 0;
}


/* For what can be done later as well. */

int
sluice_core_regexes_has_half(sluice_core_regexes_t *regexes)
{
    return sluice_core_regexes_has_time(regexes)
           && (regexes->clock == NULL || regexes->left >= CORE_TURN_NS / 2);
}


int
sluice_core_regexes_may(sluice_core_regexes_t *regexes, uint32_t length)
{
    return sluice_core_regexes_has_time(regexes)
           || (length <= CORE_UNPAID_BYTES
               && regexes->unpaid < CORE_UNPAID_NS);
}


/* By the wall's clock: the budget may have taken back what others ran. */

void
sluice_core_regexes_pay(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget)
{
    int64_t   spent;
    uint64_t  before;

    before = budget->last;
    sluice_core_budget_read(budget);
    spent = (int64_t) (budget->last - before);

    if (regexes->left <= 0) {
        regexes->unpaid += spent;
    }

    regexes->left -= spent;

    if (regexes->left < -CORE_BEHIND_NS) {
        regexes->left = -CORE_BEHIND_NS;
    }
}
