
/*
 * What correlation-id decides, with a maker of ids that is a test's, and
 * without one.
 */


#include "decide.h"
#include "sluice_correlation_id.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS     SLUICE_DECISION_PASS
#define UNKNOWN  SLUICE_DECISION_UNKNOWN
#define MEMORY   SLUICE_DECISION_MEMORY


typedef struct {
    sluice_correlation_id_own_t  own;
    int                          rc;
    uint32_t                     generator;   /* that was asked for */
} id_own_t;


static int
id_make(sluice_correlation_id_own_t *plain, uint32_t generator,
    sluice_core_text_t *id)
{
    id_own_t  *own = (id_own_t *) plain;

    own->generator = generator;
    id->data = "new";
    id->length = 3;

    return own->rc;
}


static void
id_pack(decide_packed_t *packed, const char *name, uint32_t generator,
    uint32_t echoes)
{
    packed->length = 0;
    decide_text(packed, name);
    decide_number(packed, generator);
    decide_number(packed, echoes);
}


/* sent: NULL: no such header; expected: the id; NULL: nobody knows. */

static void
test_id(uint32_t generator, uint32_t echoes, const char *sent,
    const char *expected)
{
    int                        decision;
    id_own_t                   own;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_core_text_t         told;
    const sluice_core_text_t  *edit;
    sluice_decision_result_t   result;

    id_pack(&packed, "X-Id", generator, echoes);
    judge = decide_create("correlation-id", &packed);
    decide_begin(&asked);

    if (sent) {
        decide_line(&asked, "x-ID", sent, strlen(sent));
        decide_line(&asked, "X-Id", "another", 7);
    }

    memset(&own, 0, sizeof(own));
    own.own.make = id_make;
    own.generator = UINT32_MAX;
    asked.request.own = expected ? &own : NULL;

    decision = decide_run(judge, &asked, &result);
    test_check(decision == (expected ? PASS : UNKNOWN), "decision %d",
               decision);

    if (expected) {
        edit = decide_edit(&result, sent ? SLUICE_DECISION_UP_SET
                                         : SLUICE_DECISION_UP_ADD, "x-id");

        test_check(decide_is(&result.log_name, "correlation_id")
                   && decide_is(&result.log_value, expected), "another id");
        test_check(strcmp(expected, "new")
                   ? edit == NULL && own.generator == UINT32_MAX
                   : edit && decide_is(edit, "new")
                     && own.generator == generator, "%s: the upstream's",
                   sent ? sent : "-");
    }

    decision = decide_head(judge, &asked, &result);
    told = decide_told(&result, "x-id");

    test_check(decision == (expected || !echoes ? PASS : UNKNOWN)
               && decide_is(&told, echoes ? expected : NULL), "the client's");

    decide_end(&asked);
    sluice_judge_destroy(judge);
}


static void
test_failures(void)
{
    id_own_t                   own;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    id_pack(&packed, "X-Id", 0, 1);
    judge = decide_create("correlation-id", &packed);
    decide_begin(&asked);

    memset(&own, 0, sizeof(own));
    own.own.make = id_make;
    own.rc = SLUICE_FACT_MEMORY;
    asked.request.own = &own;

    test_check(sluice_judge_run(judge, &asked.request, &result) == MEMORY
               && sluice_judge_head(judge, &asked.request, &result) == MEMORY,
               "no memory");

    own.rc = SLUICE_FACT_OK;
    asked.request.headers_known = SLUICE_FACT_UNKNOWN;

    test_check(decide_run(judge, &asked, &result) == UNKNOWN
               && decide_head(judge, &asked, &result) == UNKNOWN, "guesses");

    decide_end(&asked);
    sluice_judge_destroy(judge);
}


static void
test_configurations(uint64_t *state)
{
    int                  rc;
    uint32_t             i;
    decide_packed_t      packed[3];
    sluice_core_text_t   bytes;

    id_pack(&packed[0], NULL, 0, 0);
    id_pack(&packed[1], "", 0, 0);
    id_pack(&packed[2], "X-Id", SLUICE_CORRELATION_ID_TRACKER + 1, 0);

    for (i = 0; i < 3; i++) {
        bytes = text_own(packed[i].data, packed[i].length);
        test_check(sluice_judge_create("correlation-id", 14, &bytes, &rc)
                   == NULL && rc == SLUICE_CORE_BAD, "configuration %u", i);
        text_free(&bytes);
    }

    id_pack(&packed[0], "X-Id", 2, 1);
    decide_damage("correlation-id", &packed[0], state);
}


int
main(void)
{
    uint64_t  state;
    uint32_t  echoes, generator;

    state = test_seed("decide_correlation_id");

    test_configurations(&state);
    test_failures();

    for (generator = 0; generator <= SLUICE_CORRELATION_ID_TRACKER;
         generator++)
    {
        for (echoes = 0; echoes < 2; echoes++) {
            test_id(generator, echoes, NULL, "new");
            test_id(generator, echoes, "", "new");
            test_id(generator, echoes, "mine", "mine");
            test_id(generator, echoes, NULL, NULL);
        }
    }

    printf("decide_correlation_id: 24 cases\n");

    return 0;
}
