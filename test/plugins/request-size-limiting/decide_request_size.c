
/*
 * What request-size-limiting decides: lengths as they may stand in a log.
 */


#include "decide.h"
#include "sluice_request_size_limiting.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>


typedef struct {
    double       limit;
    int          needs_length;
    const char  *length;                 /* NULL: no such header */
    const char  *coding;
    const char  *expect;

    uint32_t     status;                 /* 0: passes */
    uint32_t     bound;                  /* status where it is longer; 0: its
                                            length is known */
} size_case_t;


static const size_case_t  size_cases[] = {
    { 10, 0, "0", NULL, NULL, 0, 0 },
    { 10, 0, "10", NULL, NULL, 0, 0 },
    { 10, 0, "11", NULL, NULL, 413, 0 },
    { 10, 0, "11", NULL, "100-continue", 417, 0 },
    { 10, 0, "11", NULL, "100-Continue", 417, 0 },
    { 10, 0, "11", NULL, "100-continued", 413, 0 },
    { 10, 0, "11", NULL, "", 413, 0 },
    { 10, 0, "00000000000000000000000000010", NULL, NULL, 0, 0 },
    { 10, 0, "00000000000000000000000000011", NULL, NULL, 413, 0 },
    { 10, 0, "9223372036854775807", NULL, NULL, 413, 0 },
    { 10, 0, "9223372036854775808", NULL, NULL, 413, 0 },
    { 10, 0, "18446744073709551626", NULL, NULL, 413, 0 },
    { 10, 0, NULL, NULL, NULL, 0, 413 },
    { 10, 0, NULL, "chunked", NULL, 0, 413 },
    { 10, 0, NULL, "chunked", "100-continue", 0, 417 },
    { 10, 0, "", NULL, NULL, 0, 413 },
    { 10, 0, "0x1", NULL, NULL, 0, 413 },
    { 10, 0, "-1", NULL, NULL, 0, 413 },
    { 10, 0, "1 1", NULL, NULL, 0, 413 },
    { 10, 1, "10", NULL, NULL, 0, 0 },
    { 10, 1, NULL, NULL, NULL, 411, 0 },
    { 10, 1, "x", NULL, NULL, 411, 0 },
    { 10, 1, NULL, "chunked", NULL, 0, 413 },
    { 10, 1, NULL, "Chunked", NULL, 0, 413 },
    { 10, 1, NULL, "gzip, chunked", NULL, 411, 0 },
    { 10, 1, NULL, "chunke", NULL, 411, 0 },
    { 0, 0, "0", NULL, NULL, 0, 0 },
    { 0, 0, "1", NULL, NULL, 413, 0 },
    { -1, 0, "0", NULL, NULL, 413, 0 },
    { -1, 0, NULL, NULL, NULL, 413, 413 },
    { 1e300, 0, "9223372036854775807", NULL, NULL, 0, 0 },
    { 1e300, 0, NULL, NULL, NULL, 0, 413 },
    { -1e300, 0, "0", NULL, NULL, 413, 0 }
};


static void
size_pack(decide_packed_t *packed, const size_case_t *c)
{
    packed->length = 0;
    decide_double(packed, c->limit);
    decide_number(packed, (uint32_t) c->needs_length);
}


static void
size_line(decide_request_t *asked, const char *name, const char *value)
{
    if (value) {
        decide_line(asked, name, value, strlen(value));
    }
}


static void
test_case(const size_case_t *c)
{
    int                        decision;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    size_pack(&packed, c);
    judge = decide_create("request-size-limiting", &packed);

    decide_begin(&asked);
    size_line(&asked, "Content-Length", c->length);
    size_line(&asked, "Transfer-Encoding", c->coding);
    size_line(&asked, "Expect", c->expect);

    decision = decide_run(judge, &asked, &result);

    test_check(decision == (c->status ? SLUICE_DECISION_RESPOND
                                      : SLUICE_DECISION_PASS)
               && result.status == c->status
               && result.bound.status == c->bound,
               "%g, %d, %s, %s: %d, %u, %u", c->limit, c->needs_length,
               c->length ? c->length : "-", c->coding ? c->coding : "-",
               decision, result.status, result.bound.status);

    test_check((result.bound.message.data != NULL) == (c->bound != 0)
               && (c->bound == 0 || c->limit > 1e18
                   || result.bound.size == (int64_t) c->limit),
               "the bound is %lld", (long long) result.bound.size);

    asked.request.headers_known = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == SLUICE_DECISION_UNKNOWN,
               "guesses");

    decide_end(&asked);
    sluice_judge_destroy(judge);
}


int
main(void)
{
    size_t           i;
    uint64_t         state;
    decide_packed_t  packed;

    state = test_seed("decide_request_size");

    size_pack(&packed, &size_cases[0]);
    decide_damage("request-size-limiting", &packed, &state);

    for (i = 0; i < sizeof(size_cases) / sizeof(size_cases[0]); i++) {
        test_case(&size_cases[i]);
    }

    printf("decide_request_size: %zu cases\n", i);

    return 0;
}
