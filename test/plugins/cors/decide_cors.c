
/*
 * What cors decides: origins and their look-alikes, random ones beside a
 * slow comparison, and what is not known.
 */


#include "decide.h"
#include "sluice_cors.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS     SLUICE_DECISION_PASS
#define RESPOND  SLUICE_DECISION_RESPOND
#define UNKNOWN  SLUICE_DECISION_UNKNOWN


typedef struct {
    const char  *origin;
    const char  *normal;                 /* NULL: it is none */
    const char  *host;
} origin_case_t;


static const origin_case_t  origin_cases[] = {
    { "https://a.com", "https://a.com", "a.com" },
    { "https://a.com:443", "https://a.com", "a.com" },
    { "http://a.com:80", "http://a.com", "a.com" },
    { "http://a.com:443", "http://a.com:443", "a.com" },
    { "https://a.com:", "https://a.com:", "a.com" },
    { "ftp://a.com:80", "ftp://a.com:80", "a.com" },
    { "http://[::1]", "http://[::1]", "[::1]" },
    { "http://[::1]:80", "http://[::1]", "[::1]" },
    { "http://[::1]:81", "http://[::1]:81", "[::1]" },
    { "null", "null", "null" },
    { "", "", "" },
    { ":", ":", "" },
    { "://", NULL, NULL },
    { "a://", NULL, NULL },
    { "a://b", "a://b", "b" },
    { "https://a.com/", NULL, NULL },
    { "https://a.com?b", NULL, NULL },
    { "https://a.com#b", NULL, NULL },
    { "https://b@a.com", NULL, NULL },
    { "https://a.com\\b", NULL, NULL },
    { "evil/a.com", NULL, NULL }
};


static void
test_normal(void)
{
    size_t               i;
    sluice_core_text_t   origin, normal, host;
    const origin_case_t  *c;

    for (i = 0; i < sizeof(origin_cases) / sizeof(origin_cases[0]); i++) {
        c = &origin_cases[i];
        origin = text_own(c->origin, strlen(c->origin));
        normal = sluice_cors_normal(&origin, &host);

        test_check(decide_is(&normal, c->normal), "%s: %.*s", c->origin,
                   normal.data ? (int) normal.length : 0,
                   normal.data ? normal.data : "");
        test_check(c->normal == NULL || decide_is(&host, c->host),
                   "%s: its host is %.*s", c->origin, (int) host.length,
                   host.data);

        text_free(&origin);
    }
}


static void
cors_pack(decide_packed_t *packed, uint32_t flags, const char **origins,
    uint32_t count)
{
    uint32_t  i;

    packed->length = 0;
    decide_number(packed, flags);
    decide_number(packed, count);

    for (i = 0; i < count; i++) {
        decide_text(packed, origins[i]);
    }

    decide_text(packed, count ? &origins[0][1] : NULL);
    decide_text(packed, NULL);
    decide_text(packed, "X-Read");
    decide_text(packed, "GET,PUT");
    decide_text(packed, "60");
}


static void
test_unknown(sluice_judge_t *judge, sluice_core_regexes_t *regexes)
{
    decide_request_t           asked;
    sluice_decision_result_t   result;

    decide_begin(&asked);
    decide_line(&asked, "Origin", "https://a.com", 13);
    test_check(decide_run(judge, &asked, &result) == UNKNOWN
               && decide_head(judge, &asked, &result) == UNKNOWN,
               "without compiled patterns");
    decide_end(&asked);

    decide_begin(&asked);
    asked.request.own = regexes;
    asked.request.headers_known = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN
               && decide_head(judge, &asked, &result) == UNKNOWN,
               "without headers");
    decide_end(&asked);

    decide_begin(&asked);
    asked.request.own = regexes;
    decide_line(&asked, "Origin", "https://a.com", 13);
    decide_line(&asked, "Access-Control-Request-Method", "PUT", 3);
    asked.request.known[SLUICE_ASK_METHOD] = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN
               && decide_head(judge, &asked, &result) == UNKNOWN,
               "without a method");
    decide_end(&asked);
}


/* Pieces of origins, put together at random: only these two are allowed. */

static void
test_origins(sluice_judge_t *judge, sluice_core_regexes_t *regexes,
    uint64_t *state)
{
    int                        is_allowed, is_preflight;
    char                       origin[256];
    uint32_t                   i, n, length;
    decide_request_t           asked;
    sluice_core_text_t         told;
    sluice_decision_result_t   result;

    static const char  *pieces[] = {
        "https://", "http://", "a.com", "b.com", ".a.com", ":443", ":80",
        ":8443", "/", "@", ".evil.org", "null", "\n", "x", "A.com", ""
    };

    n = getenv("CASES") ? (uint32_t) atoi(getenv("CASES")) : 20000;

    while (n-- > 0) {
        origin[0] = '\0';

        for (i = (uint32_t) test_below(state, 5) + 1; i > 0; i--) {
            strcat(origin, pieces[test_below(state, sizeof(pieces)
                                                    / sizeof(pieces[0]))]);
        }

        length = (uint32_t) strlen(origin);
        is_preflight = (int) test_below(state, 2);
        is_allowed = strcmp(origin, "https://a.com") == 0
                     || strcmp(origin, "https://a.com:443") == 0
                     || strcmp(origin, "http://b.com") == 0
                     || strcmp(origin, "http://b.com:80") == 0
                     || strcmp(origin, "https://b.com") == 0
                     || strcmp(origin, "https://b.com:443") == 0;

        decide_begin(&asked);
        asked.request.own = regexes;
        decide_fact(&asked, SLUICE_ASK_METHOD, is_preflight ? "OPTIONS"
                                                            : "GET");
        decide_line(&asked, "Origin", origin, length);
        decide_line(&asked, "Access-Control-Request-Method", "PUT", 3);

        test_check(decide_run(judge, &asked, &result)
                   == (is_preflight ? RESPOND : PASS), "%s", origin);

        if (!is_preflight) {
            test_check(decide_head(judge, &asked, &result) == PASS, "%s",
                       origin);
            told = decide_told(&result, "access-control-expose-headers");
            test_check(decide_is(&told, "X-Read"), "%s", origin);
        }

        told = decide_told(&result, "access-control-allow-origin");
        test_check((told.data != NULL) == is_allowed
                   && (!is_allowed || memcmp(told.data, origin, told.length)
                                      == 0), "%s", origin);

        decide_end(&asked);
    }
}


int
main(void)
{
    uint64_t                state;
    sluice_judge_t         *judge;
    decide_packed_t         packed;
    sluice_core_regexes_t  *regexes;

    static const char  *origins[] = {
        "=https://a.com", "~(?:https?://b\\.com)$", ""
    };

    state = test_seed("decide_cors");

    test_normal();

    cors_pack(&packed, SLUICE_CORS_CREDENTIALS, origins, 3);
    decide_damage("cors", &packed, &state);
    judge = decide_create("cors", &packed);
    regexes = sluice_core_regexes_create(1 << 20);
    test_check(regexes != NULL, "no memory");
    test_unknown(judge, regexes);
    test_origins(judge, regexes, &state);
    sluice_core_regexes_destroy(regexes);
    sluice_judge_destroy(judge);

    printf("decide_cors: %zu origins\n",
           sizeof(origin_cases) / sizeof(origin_cases[0]));

    return 0;
}
