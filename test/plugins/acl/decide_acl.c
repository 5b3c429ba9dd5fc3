
/*
 * What acl decides of groups that another plugin has authenticated, which come
 * packed, and damaged: ASan sees each read behind them.
 */


#define _GNU_SOURCE

#include "decide.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS  SLUICE_DECISION_PASS


static uint64_t  state;


static void
acl_list(decide_packed_t *packed, const char *first, const char *second)
{
    decide_number(packed, 2);
    decide_text(packed, first);
    decide_text(packed, second);
}


/* Groups that another plugin has authenticated, packed and damaged. */

static void
acl_groups(long cases)
{
    int                        decision;
    long                       i;
    uint32_t                   n;
    sluice_judge_t            *judge;
    decide_packed_t            config, groups, copy;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    config.length = 0;
    decide_number(&config, 0);
    acl_list(&config, "admins", "team");
    judge = decide_create("acl", &config);
    decide_damage("acl", &config, &state);

    groups.length = 0;
    acl_list(&groups, "others", "team");

    for (i = 0; i < cases; i++) {
        copy = groups;

        for (n = i ? (uint32_t) test_below(&state, 3) : 0; n > 0; n--) {
            copy.data[test_below(&state, copy.length)] =
                (char) test_random(&state);
        }

        if (i && test_below(&state, 2)) {
            copy.length = (uint32_t) test_below(&state, copy.length + 1);
        }

        decide_begin(&asked);
        asked.request.facts[SLUICE_ASK_AUTHENTICATED_GROUPS] =
            text_own(copy.data, copy.length);
        asked.request.known[SLUICE_ASK_AUTHENTICATED_GROUPS] = SLUICE_FACT_OK;

        decision = sluice_judge_run(judge, &asked.request, &result);

        test_check(i > 0 || decision == PASS, "refused");
        test_check(decision != SLUICE_DECISION_UNKNOWN, "unknown");
        test_check(decision != PASS
                   || memmem(copy.data, copy.length, "team", 4)
                   || memmem(copy.data, copy.length, "admins", 6),
                   "passed without a group");

        decide_end(&asked);
    }

    sluice_judge_destroy(judge);
}


int
main(void)
{
    long         cases;
    const char  *text;

    state = test_seed("decide_acl");
    text = getenv("CASES");
    cases = text ? atol(text) : 20000;

    acl_groups(cases);
    printf("decide_acl: %ld cases\n", cases);

    return 0;
}
