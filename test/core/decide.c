
/*
 * What access-log, mtls-auth and rate-limiting decide, by cases, with
 * stand-ins for OpenSSL and for the counters, and without them.
 */


#include "decide.h"
#include "sluice_access_log.h"
#include "sluice_mtls_auth.h"
#include "sluice_rate_limiting.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS     SLUICE_DECISION_PASS
#define RESPOND  SLUICE_DECISION_RESPOND
#define UNKNOWN  SLUICE_DECISION_UNKNOWN


typedef struct {
    sluice_mtls_auth_own_t  own;
    int                     certificate;
    int                     fresh;
    int                     verify;
    int                     describe;
} mtls_own_t;


typedef struct {
    const char  *server_name;
    const char  *host;
    mtls_own_t   own;           /* what it says */

    int          decision;
    uint32_t     status;
    const char  *message;
} mtls_case_t;


#define OK    SLUICE_FACT_OK
#define NONE  SLUICE_FACT_NONE

static const mtls_case_t  mtls_cases[] = {
    { "a.com", "a.com", { .certificate = OK }, PASS, 0, NULL },
    { NULL, "a.com", { .certificate = OK }, PASS, 0, NULL },
    { NULL, NULL, { .certificate = OK }, PASS, 0, NULL },
    { "a.com", "b.com", { .certificate = OK }, RESPOND, 421,
      "The host is another than that of the connection" },
    { "a.com", "a.co", { .certificate = OK }, RESPOND, 421,
      "The host is another than that of the connection" },
    { "a.com", NULL, { .certificate = OK }, RESPOND, 421,
      "The host is another than that of the connection" },
    { "a.com", "a.com", { .fresh = NONE }, RESPOND, 421,
      "The connection is older than the revocation lists" },
    { "a.com", "a.com", { .certificate = NONE }, RESPOND, 401,
      "No required TLS certificate was sent" },
    { "a.com", "a.com", { .verify = NONE }, RESPOND, 401,
      "TLS certificate failed verification" },
    { "a.com", "a.com", { .describe = NONE }, RESPOND, 401,
      "TLS certificate failed verification" },
    { "a.com", "a.com", { .verify = SLUICE_FACT_UNREADABLE }, RESPOND, 503,
      "the configuration cannot be read" },
    { "a.com", "a.com", { .certificate = SLUICE_FACT_UNKNOWN }, UNKNOWN, 0,
      NULL }
};


static uint64_t  state;


static int
mtls_certificate(sluice_mtls_auth_own_t *own)
{
    return ((mtls_own_t *) own)->certificate;
}


static int
mtls_fresh(sluice_mtls_auth_own_t *own)
{
    return ((mtls_own_t *) own)->fresh;
}


static int
mtls_verify(sluice_mtls_auth_own_t *own)
{
    return ((mtls_own_t *) own)->verify;
}


static int
mtls_describe(sluice_mtls_auth_own_t *own, sluice_core_text_t *subject,
    sluice_core_text_t *fingerprint)
{
    subject->data = "CN=a";
    subject->length = 4;
    *fingerprint = *subject;

    return ((mtls_own_t *) own)->describe;
}


static void
test_mtls(void)
{
    int                        decision;
    size_t                     i;
    mtls_own_t                 own;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    const mtls_case_t         *c;
    const sluice_core_text_t  *dn;
    sluice_decision_result_t   result;

    packed.length = 0;
    decide_number(&packed, 4);
    decide_text(&packed, "0123456789abcdef");
    decide_text(&packed, NULL);
    decide_damage("mtls-auth", &packed, &state);

    judge = decide_create("mtls-auth", &packed);

    for (i = 0; i < sizeof(mtls_cases) / sizeof(mtls_cases[0]); i++) {
        c = &mtls_cases[i];

        own = c->own;
        own.own.certificate = mtls_certificate;
        own.own.fresh = mtls_fresh;
        own.own.verify = mtls_verify;
        own.own.describe = mtls_describe;

        decide_begin(&asked);
        asked.request.own = &own;

        if (c->server_name) {
            decide_fact(&asked, SLUICE_ASK_SERVER_NAME, c->server_name);
        }

        if (c->host) {
            decide_fact(&asked, SLUICE_ASK_HOST, c->host);
        }

        decision = decide_run(judge, &asked, &result);
        test_check(decision == c->decision, "case %zu: decision %d", i,
                   decision);
        test_check(result.status == c->status, "case %zu: status %u", i,
                   result.status);
        test_check(decide_is(&result.message, c->message), "case %zu", i);

        dn = decide_edit(&result, SLUICE_DECISION_UP_SET, "x-client-cert-dn");
        test_check((dn != NULL) == (decision == PASS), "case %zu", i);
        test_check(dn == NULL || decide_is(dn, "CN=a"), "case %zu", i);

        /* without OpenSSL */

        asked.request.own = NULL;
        decision = decide_run(judge, &asked, &result);
        test_check(decision == (c->status == 421 && c->own.fresh == OK
                                ? RESPOND : UNKNOWN),
                   "case %zu: decision %d", i, decision);

        decide_end(&asked);
    }

    sluice_judge_destroy(judge);
}


/* The counters, which note who was counted. */

typedef struct {
    sluice_rate_limiting_own_t   own;
    sluice_core_meter_t          meter;
    int                          is_full;
    char                         identifier[64];
    uint32_t                     length;
    int                          is_fallback;
} rate_own_t;


static int
rate_take(const sluice_rate_limiting_own_t *plain, sluice_core_rule_t *rule,
    const sluice_core_text_t *identifier, int is_fallback, uint64_t now,
    sluice_core_taken_t *taken)
{
    rate_own_t  *own = (rate_own_t *) plain;

    test_check(identifier->length < sizeof(own->identifier), "too long");
    memcpy(own->identifier, identifier->data, identifier->length);
    own->length = identifier->length;
    own->is_fallback = is_fallback;

    if (own->is_full) {
        return SLUICE_CORE_FULL;
    }

    rule->share = sluice_core_meter_share(&own->meter, 1);

    return sluice_core_meter_take(&own->meter, rule, identifier->data,
                                  identifier->length, is_fallback, now, taken);
}


static void
rate_pack(decide_packed_t *packed, const char *by, uint32_t is_tolerant,
    uint32_t is_hidden)
{
    int  i;

    packed->length = 0;

    for (i = 0; i < SLUICE_CORE_PERIODS; i++) {
        decide_double(packed, i == SLUICE_CORE_MINUTE ? 2
                              : i == SLUICE_CORE_HOUR ? 2.5 : 0);
    }

    decide_text(packed, by);
    decide_text(packed, "x-tenant");
    decide_text(packed, "/");
    decide_number(packed, 429);
    decide_text(packed, "slow down");
    decide_number(packed, is_tolerant);
    decide_number(packed, is_hidden);
}


static void
rate_identifier(rate_own_t *own, decide_request_t *asked, const char *by,
    const char *expected, int is_fallback)
{
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    sluice_core_text_t         text;
    sluice_decision_result_t   result;

    rate_pack(&packed, by, 1, 0);
    judge = decide_create("rate-limiting", &packed);

    /* a new window each time */

    asked->request.now += 86400;
    test_check(decide_run(judge, asked, &result) == PASS, "by %s", by);

    text.data = own->identifier;
    text.length = own->length;
    test_check(decide_is(&text, expected), "by %s: not %s", by, expected);
    test_check(own->is_fallback == is_fallback, "by %s", by);

    sluice_judge_destroy(judge);
}


static void
rate_identifiers(rate_own_t *own)
{
    size_t                    i;
    decide_request_t          asked;
    static const char *const  all[] = {
        "consumer", "credential", "service", "header", "ip", "path"
    };

    /* with none of it the address stands in */

    decide_begin(&asked);
    asked.request.own = own;

    for (i = 0; i < 6; i++) {
        rate_identifier(own, &asked, all[i], i == 5 ? "/" : "127.0.0.1",
                        i < 4);
    }

    decide_fact(&asked, SLUICE_ASK_CREDENTIAL, "key");
    rate_identifier(own, &asked, "consumer", "key", 0);
    decide_fact(&asked, SLUICE_ASK_CONSUMER, "who");
    rate_identifier(own, &asked, "consumer", "who", 0);
    rate_identifier(own, &asked, "credential", "key", 0);
    decide_fact(&asked, SLUICE_ASK_SERVICE, "12345678");
    rate_identifier(own, &asked, "service", "12345678", 0);
    decide_fact(&asked, SLUICE_ASK_PATH, "/a");
    rate_identifier(own, &asked, "path", "127.0.0.1", 1);

    decide_line(&asked, "X-Tenant", "a", 1);
    rate_identifier(own, &asked, "header", "a", 0);
    decide_line(&asked, "X-TENANT", "b", 1);
    rate_identifier(own, &asked, "header", "a", 0);
    decide_end(&asked);

    /* another header, and one that is empty */

    decide_begin(&asked);
    asked.request.own = own;
    decide_line(&asked, "x_tenant", "c", 1);
    rate_identifier(own, &asked, "header", "127.0.0.1", 1);
    decide_line(&asked, "x-tenant", "", 0);
    decide_line(&asked, "x-tenant", "d", 1);
    rate_identifier(own, &asked, "header", "", 0);
    decide_end(&asked);
}


static void
rate_expect(const sluice_decision_result_t *result, const char *header,
    const char *value)
{
    sluice_core_text_t  told;

    told = decide_told(result, header);
    test_check(decide_is(&told, value), "%s", header);
}


static void
rate_unknown(sluice_judge_t *judge, rate_own_t *own)
{
    decide_request_t          asked;
    sluice_decision_result_t  result;

    decide_begin(&asked);
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no counters");

    asked.request.own = own;
    asked.request.known[SLUICE_ASK_CONSUMER] = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "nobody");
    decide_end(&asked);
}


static void
test_rate(void)
{
    void                      *memory;
    rate_own_t                 own;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;
    const size_t               size = 1 << 20;
    static const uint8_t       key[SLUICE_CORE_METER_KEY];

    memory = aligned_alloc(64, size);
    test_check(memory != NULL, "no memory");
    memset(memory, 0, size);
    memset(&own, 0, sizeof(own));
    own.own.take = rate_take;

    test_check(sluice_core_meter_init(memory, size, key) == SLUICE_CORE_OK
               && sluice_core_meter_attach(&own.meter, memory, size)
                  == SLUICE_CORE_OK, "no meter");

    rate_pack(&packed, "consumer", 1, 0);
    decide_damage("rate-limiting", &packed, &state);
    judge = decide_create("rate-limiting", &packed);
    rate_unknown(judge, &own);

    decide_begin(&asked);
    asked.request.own = &own;

    test_check(decide_run(judge, &asked, &result) == PASS, "the first");
    rate_expect(&result, "x-ratelimit-limit-minute", "2");
    rate_expect(&result, "x-ratelimit-remaining-minute", "1");
    rate_expect(&result, "x-ratelimit-limit-hour", "2.5");
    rate_expect(&result, "x-ratelimit-remaining-hour", "1.5");
    rate_expect(&result, "ratelimit-remaining", "1");
    rate_expect(&result, "retry-after", NULL);

    test_check(decide_run(judge, &asked, &result) == PASS, "the second");
    test_check(decide_run(judge, &asked, &result) == RESPOND, "the third");
    test_check(result.status == 429 && decide_is(&result.message, "slow down"),
               "status %u", result.status);
    rate_expect(&result, "ratelimit-remaining", "0");
    rate_expect(&result, "ratelimit-reset", "40");
    rate_expect(&result, "retry-after", "40");

    own.is_full = 1;
    test_check(decide_run(judge, &asked, &result) == PASS, "tolerant");
    sluice_judge_destroy(judge);

    rate_pack(&packed, "consumer", 0, 1);
    judge = decide_create("rate-limiting", &packed);
    test_check(decide_run(judge, &asked, &result) == RESPOND
               && result.status == 500, "not tolerant");

    own.is_full = 0;
    test_check(decide_run(judge, &asked, &result) == RESPOND
               && result.lines_count == 0, "hidden headers");
    sluice_judge_destroy(judge);
    decide_end(&asked);

    memset(memory, 0, size);
    test_check(sluice_core_meter_init(memory, size, key) == SLUICE_CORE_OK,
               "no meter");
    rate_identifiers(&own);
    free(memory);
}


static void
test_access_log(void)
{
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    packed.length = 0;
    decide_double(&packed, 0.5);
    decide_number(&packed, 1);
    decide_damage("access-log", &packed, &state);

    judge = decide_create("access-log", &packed);
    decide_begin(&asked);
    test_check(decide_run(judge, &asked, &result) == PASS, "refused");
    decide_end(&asked);
    sluice_judge_destroy(judge);
}


/* More headers than the result has room for. */

static void *
edits_allocate(void *data, size_t size)
{
    (void) data;

    return malloc(size);
}


static void
test_edits(void)
{
    uint32_t                    i;
    sluice_core_text_t          value;
    sluice_decision_calls_t     calls;
    sluice_decision_result_t    result;
    sluice_decision_request_t   request;
    static sluice_header_t      header = sluice_header_name("A", "a", 0);

    memset(&calls, 0, sizeof(calls));
    calls.allocate = edits_allocate;
    request.calls = &calls;

    value.data = "1";
    value.length = 1;

    sluice_decision_begin(&result);

    for (i = 0; i < 2 * SLUICE_DECISION_LINES; i++) {
        test_check(sluice_decision_set(&request, &result, &header, &value)
                   == SLUICE_FACT_OK, "line %u", i);
    }

    for (i = 0; i < 2 * SLUICE_DECISION_EDITS; i++) {
        test_check(sluice_decision_edit(&request, &result,
                                        SLUICE_DECISION_UP_ADD, &header, NULL)
                   == SLUICE_FACT_OK, "edit %u", i);
    }

    value = decide_told(&result, "a");

    test_check(result.lines_count == 2 * SLUICE_DECISION_LINES
               && result.lines[result.lines_count - 1].header == &header
               && decide_is(&value, "1"), "lines are lost");
    test_check(result.edits_count == 2 * SLUICE_DECISION_EDITS
               && result.edits[result.edits_count - 1].header == &header,
               "edits are lost");

    free(result.lines);
    free(result.edits);
}


int
main(void)
{
    int                       rc;
    static const sluice_core_text_t  none = { "", 0 };

    state = test_seed("decide");

    test_check(sluice_judge_create("no-such", 7, &none, &rc) == NULL
               && rc == SLUICE_CORE_NONE, "rc %d", rc);

    test_access_log();
    test_mtls();
    test_rate();
    test_edits();

    printf("decide: %zu cases of mtls-auth\n",
           sizeof(mtls_cases) / sizeof(mtls_cases[0]));

    return 0;
}
