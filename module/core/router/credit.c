
/*
 * What a worker compiles (pattern.h): bounded in all, in a turn of the event
 * loop, and for each account of what is left.
 */


#include "pattern.h"

#include <stdlib.h>


/*
 * A worker may be behind by this much compiling.  A full cache took 0.1 to
 * 0.16 s where its patterns have 3.6 KB, less where they are shorter: a worker
 * that has just begun compiles all that fits, although an account may have
 * half of what others leave only, which of nothing else is 0.3 s.  Whatever
 * they leave, it has 1 ms: some hundred patterns of ordinary length.
 *
 * It is paid back by a hundredth of the time.  So what can never be kept takes
 * 1% of a worker, and 99 of 100 requests of its neighbours do not meet it.
 */

#define CORE_CREDIT_NS     600000000
#define CORE_CREDIT_LEAST  1000000
#define CORE_CREDIT_SHARE  100
#define CORE_PAID_NS       1000000     /* looked at no more often */

/*
 * Of a turn of the event loop: what all others may wait for.  Less where more
 * than half of the credit is used up, which one account alone cannot do: what
 * goes on for ever is to be seen less than what a worker begins with.
 */

#define CORE_TURN_NS       1000000
#define CORE_TURN_LEAST    250000

/*
 * Who waits asks again when this is over, one behind the other, or what they
 * look at before they find that nothing is left would take the worker's time;
 * at the latest after so much.  The accounts' rows share it.
 */

#define CORE_NEXT_NS       1000000
#define CORE_NEXT_STEP     250000
#define CORE_NEXT_MOST     100000000
#define CORE_LATER_NS      200000000
#define CORE_LATER_STEP    1000000
#define CORE_LATER_MOST    1000000000


static void core_pay_back(sluice_core_regexes_t *regexes, uint64_t now);
static uint64_t core_pay_each(sluice_core_regexes_t *regexes, uint64_t rest);


void
sluice_core_regexes_bound(sluice_core_regexes_t *regexes)
{
    regexes->is_bounded = 1;
}


uint32_t
sluice_core_regexes_wait(sluice_core_regexes_t *regexes, uint32_t number)
{
    uint64_t                now;
    sluice_core_credit_e    credit;
    sluice_core_account_t  *account;

    if (number >= SLUICE_CORE_ACCOUNTS) {
        return 0;
    }

    now = sluice_core_budget_now();
    account = &regexes->accounts[number];
    credit = sluice_core_credit_has(regexes, account, now);

    return credit == SLUICE_CORE_CREDIT
           ? 0 : sluice_core_credit_wait(regexes, account, credit, now);
}


int
sluice_core_regexes_turn(sluice_core_regexes_t *regexes, int is_over)
{
    int  has_compiled;

    has_compiled = (regexes->turn_ns != 0);

    if (is_over) {
        regexes->turn++;
        regexes->turn_ns = 0;
    }

    return has_compiled;
}


sluice_core_credit_e
sluice_core_credit_has(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, uint64_t now)
{
    uint64_t  left, most;

    if (!regexes->is_bounded
        || account == &regexes->accounts[SLUICE_CORE_ACCOUNTS])
    {
        return SLUICE_CORE_CREDIT;
    }

    core_pay_back(regexes, now);

    left = regexes->debt < CORE_CREDIT_NS ? CORE_CREDIT_NS - regexes->debt : 0;

    if ((account->debt >= left && account->debt >= CORE_CREDIT_LEAST)
        || now < account->closed)
    {
        return SLUICE_CORE_CREDIT_LATER;
    }

    if (account->turn != regexes->turn) {
        account->turn = regexes->turn;
        account->turn_ns = 0;
    }

    most = regexes->debt > CORE_CREDIT_NS / 2 ? CORE_TURN_LEAST : CORE_TURN_NS;
    left = regexes->turn_ns < most ? most - regexes->turn_ns : 0;

    if (account->turn_ns >= left) {
        return SLUICE_CORE_CREDIT_NEXT;
    }

    account->is_dear = 0;

    return SLUICE_CORE_CREDIT;
}


void
sluice_core_credit_take(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, uint64_t spent)
{
    if (!regexes->is_bounded
        || account == &regexes->accounts[SLUICE_CORE_ACCOUNTS])
    {
        return;
    }

    account->debt += spent;
    account->turn_ns += spent;
    regexes->debt += spent;
    regexes->turn_ns += spent;
}


void
sluice_core_credit_close(sluice_core_account_t *account, uint64_t now)
{
    account->closed = now + CORE_LATER_NS;
}


uint32_t
sluice_core_credit_wait(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, sluice_core_credit_e credit, uint64_t now)
{
    int       is_later;
    uint64_t  at, step, most;

    is_later = (credit == SLUICE_CORE_CREDIT_LATER);
    at = now + (is_later ? CORE_LATER_NS : CORE_NEXT_NS);
    step = is_later ? CORE_LATER_STEP : CORE_NEXT_STEP;
    most = now + (is_later ? CORE_LATER_MOST : CORE_NEXT_MOST);

    if (at < account->rows[is_later]) {
        at = account->rows[is_later] < most ? account->rows[is_later] : most;
    }

    account->rows[is_later] = at + step * (regexes->debtors + 1);

    return (uint32_t) ((at - now) / 1000000);
}


static void
core_pay_back(sluice_core_regexes_t *regexes, uint64_t now)
{
    uint64_t  rest, paid;

    if (regexes->paid == 0) {
        regexes->paid = now;
    }

    if (now < regexes->paid + CORE_PAID_NS) {
        return;
    }

    rest = (now - regexes->paid) / CORE_CREDIT_SHARE;
    regexes->paid = now;

    if (rest > regexes->debt) {
        rest = regexes->debt;
    }

    /* each time all of it, or all that somebody owes */

    do {
        paid = core_pay_each(regexes, rest);
        rest -= paid;
    } while (paid);
}


/* The same for each that has debts: one of many does not wait for them. */

static uint64_t
core_pay_each(sluice_core_regexes_t *regexes, uint64_t rest)
{
    uint32_t                i;
    uint64_t                share, paid, all;
    sluice_core_account_t  *account;

    regexes->debtors = 0;

    for (i = 0; i < SLUICE_CORE_ACCOUNTS; i++) {
        regexes->debtors += (regexes->accounts[i].debt != 0);
    }

    share = regexes->debtors ? rest / regexes->debtors : 0;
    all = 0;

    for (i = 0; share && i < SLUICE_CORE_ACCOUNTS; i++) {
        account = &regexes->accounts[i];
        paid = account->debt < share ? account->debt : share;
        account->debt -= paid;
        all += paid;
    }

    regexes->debt -= all;

    return all;
}
