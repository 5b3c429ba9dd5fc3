
/*
 * What plugins decide that answer by themselves, by cases.
 */


#include "decide.h"
#include "sluice_request_termination.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS     SLUICE_DECISION_PASS
#define RESPOND  SLUICE_DECISION_RESPOND
#define UNKNOWN  SLUICE_DECISION_UNKNOWN


static uint64_t  state;


/* Who says what an echo asks for. */

typedef struct {
    sluice_request_termination_own_t   own;
    const sluice_judge_request_t      *request;
} echo_own_t;


static int
echo_line(sluice_request_termination_own_t *plain, uint32_t index,
    sluice_core_text_t *name, sluice_core_text_t *value)
{
    echo_own_t  *own = (echo_own_t *) plain;

    if (index >= own->request->headers_count) {
        return SLUICE_FACT_NONE;
    }

    *name = own->request->headers[2 * index];
    *value = own->request->headers[2 * index + 1];

    return SLUICE_FACT_OK;
}


static int
echo_entity(sluice_request_termination_own_t *own, int kind,
    sluice_core_text_t *text)
{
    (void) own;

    text->data = "{}";
    text->length = 2;

    return kind == SLUICE_CORE_ROUTE ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


static void
termination_pack(decide_packed_t *packed, uint32_t is_echo,
    const char *trigger)
{
    packed->length = 0;
    decide_number(packed, 503);
    decide_number(packed, is_echo);
    decide_text(packed, "text/plain");
    decide_text(packed, "closed");
    decide_text(packed, "told");
    decide_text(packed, trigger);
    decide_text(packed, trigger);
    decide_text(packed, trigger ? "x-close" : NULL);
}


typedef struct {
    const char  *header;
    const char  *query;
    int          decision;
} termination_case_t;


static const termination_case_t  termination_cases[] = {
    { NULL, NULL, PASS },
    { "x-close", NULL, RESPOND },
    { "X_Close", NULL, RESPOND },
    { "x-closed", NULL, PASS },
    { NULL, "x_close", RESPOND },
    { NULL, "a=1&x%5fclose=", RESPOND },
    { NULL, "X_close", PASS },
    { NULL, "=x_close&&&x_clos&%", PASS }
};


static void
termination_triggers(void)
{
    int                        decision;
    size_t                     i;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;
    const termination_case_t  *c;

    termination_pack(&packed, 0, "x_close");
    decide_damage("request-termination", &packed, &state);
    judge = decide_create("request-termination", &packed);

    for (i = 0; i < sizeof(termination_cases) / sizeof(termination_cases[0]);
         i++)
    {
        c = &termination_cases[i];
        decide_begin(&asked);

        if (c->header) {
            decide_line(&asked, c->header, "", 0);
        }

        if (c->query) {
            decide_fact(&asked, SLUICE_ASK_QUERY, c->query);
        }

        decision = decide_run(judge, &asked, &result);
        test_check(decision == c->decision, "case %zu: decision %d", i,
                   decision);
        test_check(decision == PASS
                   || (result.status == 503
                       && decide_is(&result.type, "text/plain")
                       && decide_is(&result.message, "closed")),
                   "case %zu: status %u", i, result.status);
        decide_end(&asked);
    }

    decide_begin(&asked);
    asked.request.known[SLUICE_ASK_QUERY] = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no query");
    asked.request.headers_known = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no headers");
    decide_end(&asked);
    sluice_judge_destroy(judge);
}


static void
termination_echo(void)
{
    echo_own_t                 own;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    memset(&own, 0, sizeof(own));
    own.own.line = echo_line;
    own.own.entity = echo_entity;
    own.own.pid = 7;
    own.own.port = 80;

    termination_pack(&packed, 1, NULL);
    judge = decide_create("request-termination", &packed);

    decide_begin(&asked);
    own.request = &asked.request;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no process");

    asked.request.own = &own;
    decide_fact(&asked, SLUICE_ASK_QUERY, "a=%22&&b&a&=c");
    decide_line(&asked, "A", "1", 1);
    decide_line(&asked, "a", "", 0);
    decide_line(&asked, "Content-Type", "application/x-www-form-urlencoded",
                33);

    asked.request.known[SLUICE_ASK_BODY] = SLUICE_FACT_LATER;
    test_check(decide_run(judge, &asked, &result) == SLUICE_DECISION_BODY,
               "the body is read");

    decide_fact(&asked, SLUICE_ASK_BODY, "x=+");
    test_check(decide_run(judge, &asked, &result) == RESPOND, "no echo");
    test_check(decide_is(&result.message,
        "{\"message\":\"told\",\"kong\":{\"node_id\":\"\",\"worker_pid\":7,"
        "\"hostname\":\"\"},\"request\":{\"raw_body\":\"x=+\","
        "\"body\":{\"x\":\" \"},\"method\":\"GET\",\"path\":\"\\/\","
        "\"port\":80,\"headers\":{\"a\":[\"1\",\"\"],\"content-type\":"
        "\"application\\/x-www-form-urlencoded\"},"
        "\"query\":{\"a\":[\"\\\"\",true],\"b\":true}},"
        "\"matched_route\":{}}"), "%.*s", (int) result.message.length,
               result.message.data);

    decide_end(&asked);
    sluice_judge_destroy(judge);
}


/* 10.0.0.0/8 and 11.1.0.0/16: a node of the second digit, and two leaves. */

static void
ip_pack(decide_packed_t *packed, const uint32_t *tree, uint32_t words)
{
    uint32_t  i;

    packed->length = 0;
    decide_number(packed, 403);
    decide_number(packed, 0);
    decide_text(packed, NULL);
    decide_text(packed, "");
    decide_text(packed, "");
    decide_number(packed, words * (uint32_t) sizeof(uint32_t));

    for (i = 0; i < words; i++) {
        decide_number(packed, tree[i]);
    }

    decide_text(packed, "");
}


typedef struct {
    const char  *address;
    int          decision;
} ip_case_t;


static const ip_case_t  ip_cases[] = {
    { "10.0.0.0", RESPOND },
    { "10.255.255.255", RESPOND },
    { "::ffff:10.1.1.1", RESPOND },
    { "11.1.2.3", RESPOND },
    { "11.0.2.3", PASS },
    { "12.1.2.3", PASS },
    { "26.1.2.3", PASS },
    { "::10.1.1.1", PASS },
    { "::", PASS },
    { "unix:", RESPOND }
};


static void
test_ip(void)
{
    int                        decision;
    size_t                     i;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;
    static const uint32_t      tree[] = {
        1, 1u << 16 | 1u << 10 | 1u << 11, 0x80000004, 0x80000006,
        8, 0x0a000000, 16, 0x0b010000
    };
    static const uint32_t      round[] = { 1, 1u << 16 | 1u << 10, 1 };

    ip_pack(&packed, tree, sizeof(tree) / sizeof(tree[0]));
    decide_damage("ip-restriction", &packed, &state);
    judge = decide_create("ip-restriction", &packed);

    for (i = 0; i < sizeof(ip_cases) / sizeof(ip_cases[0]); i++) {
        decide_begin(&asked);
        decide_fact(&asked, SLUICE_ASK_ADDRESS, ip_cases[i].address);
        decision = decide_run(judge, &asked, &result);
        test_check(decision == ip_cases[i].decision, "%s: decision %d",
                   ip_cases[i].address, decision);
        decide_end(&asked);
    }

    sluice_judge_destroy(judge);

    /* a node that is below itself */

    ip_pack(&packed, round, sizeof(round) / sizeof(round[0]));
    judge = decide_create("ip-restriction", &packed);
    decide_begin(&asked);
    decide_fact(&asked, SLUICE_ASK_ADDRESS, "10.0.0.1");
    test_check(decide_run(judge, &asked, &result) == PASS, "a round");
    asked.request.known[SLUICE_ASK_ADDRESS] = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no address");
    decide_end(&asked);
    sluice_judge_destroy(judge);
}


typedef struct {
    const char  *path;
    const char  *query;
    const char  *place;
} redirect_case_t;


static const redirect_case_t  redirect_cases[] = {
    { "/", NULL, "https://a.com/#b" },
    { "/a", "c=d", "https://a.com/a?c=d#b" },
    { "/a b\n\\\xff%2F", "'\"\x7f",
      "https://a.com/a%20b%0A%5C%FF%2F?%27%22%7F#b" },
    { "/?`{}|^'", "?`{}|^", "https://a.com/%3F%60%7B%7D|^'??`{}|^#b" }
};


static void
test_redirect(void)
{
    size_t                     i;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_core_text_t         place;
    sluice_decision_result_t   result;

    packed.length = 0;
    decide_number(&packed, 301);
    decide_number(&packed, 1);
    decide_text(&packed, "https://a.com");
    decide_text(&packed, "#b");
    decide_damage("redirect", &packed, &state);
    judge = decide_create("redirect", &packed);

    for (i = 0; i < sizeof(redirect_cases) / sizeof(redirect_cases[0]); i++) {
        decide_begin(&asked);
        decide_fact(&asked, SLUICE_ASK_PATH, redirect_cases[i].path);

        if (redirect_cases[i].query) {
            decide_fact(&asked, SLUICE_ASK_QUERY, redirect_cases[i].query);
        }

        test_check(decide_run(judge, &asked, &result) == RESPOND, "passes");
        place = decide_told(&result, "location");
        test_check(decide_is(&place, redirect_cases[i].place), "%.*s",
                   (int) place.length, place.data);
        decide_end(&asked);
    }

    decide_begin(&asked);
    asked.request.known[SLUICE_ASK_QUERY] = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no query");
    decide_end(&asked);
    sluice_judge_destroy(judge);
}


/* Names that are there, and those that lack what they need. */

typedef struct {
    const char  *agent;
    int          decision;
} bot_case_t;


static const bot_case_t  bot_cases[] = {
    { "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", PASS },
    { "", PASS },
    { "Good", PASS },
    { "Googlebot", RESPOND },
    { "Goodbot/1", PASS },
    { "badly", RESPOND },
    { "Badly", PASS },
    { "spide", PASS },
    { "a sPIDer", RESPOND },
    { "bot/", PASS },
    { "bot/1", RESPOND },
    { "a PTST/1.1", RESPOND },
    { "a PTST/1.", PASS },
    { "a PTST/11", RESPOND },
    { "boitho.com-d", PASS },
    { "IP2Bot", PASS },
    { "IP2xBot", RESPOND },
    { "a/Xbot-1", RESPOND },
    { "a/bot-1", PASS },
    { "Google", PASS },
    { "Google/+/web/snippet", RESPOND },
    { "  Zao  ", RESPOND },
    { "a Zao", PASS },
    { "\xff\x80spider\x80", RESPOND }
};


static void
bot_pack(decide_packed_t *packed, const char *allow, const char *deny)
{
    packed->length = 0;
    decide_number(packed, 1);
    decide_text(packed, allow);
    decide_number(packed, 1);
    decide_text(packed, deny);
}


static void
bot_patterns(sluice_core_regexes_t *regexes)
{
    char                       text[6000];
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    bot_pack(&packed, "(?-i)^Good", "(?-i)(a+)+$");
    judge = decide_create("bot-detection", &packed);

    decide_begin(&asked);
    test_check(decide_run(judge, &asked, &result) == PASS, "no header");
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '!';
    decide_line(&asked, "User-Agent", text, sizeof(text));
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no patterns");

    asked.request.own = regexes;
    test_check(decide_run(judge, &asked, &result) == RESPOND
               && result.status == 500 && result.is_error, "it burns");

    decide_line(&asked, "user-agent", "a", 1);
    test_check(decide_run(judge, &asked, &result) == RESPOND
               && result.status == 400, "two lines");

    asked.request.headers_known = SLUICE_FACT_UNKNOWN;
    test_check(decide_run(judge, &asked, &result) == UNKNOWN, "no headers");

    decide_end(&asked);
    sluice_judge_destroy(judge);
}


static void
test_bots(void)
{
    int                        decision;
    size_t                     i;
    sluice_judge_t            *judge;
    decide_packed_t            packed;
    decide_request_t           asked;
    sluice_core_regexes_t     *regexes;
    sluice_decision_result_t   result;

    regexes = sluice_core_regexes_create(1 << 20);
    test_check(regexes != NULL, "no memory");

    bot_pack(&packed, "(?-i)^Good", "(?-i)b.d");
    decide_damage("bot-detection", &packed, &state);
    judge = decide_create("bot-detection", &packed);

    for (i = 0; i < sizeof(bot_cases) / sizeof(bot_cases[0]); i++) {
        decide_begin(&asked);
        asked.request.own = regexes;
        decide_line(&asked, "User-Agent", bot_cases[i].agent,
                    strlen(bot_cases[i].agent));
        decision = decide_run(judge, &asked, &result);
        test_check(decision == bot_cases[i].decision, "%s: decision %d",
                   bot_cases[i].agent, decision);
        decide_end(&asked);
    }

    sluice_judge_destroy(judge);
    bot_patterns(regexes);
    sluice_core_regexes_destroy(regexes);
}


int
main(void)
{
    state = test_seed("decide_answers");

    termination_triggers();
    termination_echo();
    test_ip();
    test_redirect();
    test_bots();

    printf("decide_answers: %zu cases\n",
           sizeof(termination_cases) / sizeof(termination_cases[0])
           + sizeof(ip_cases) / sizeof(ip_cases[0])
           + sizeof(redirect_cases) / sizeof(redirect_cases[0])
           + sizeof(bot_cases) / sizeof(bot_cases[0]));

    return 0;
}
