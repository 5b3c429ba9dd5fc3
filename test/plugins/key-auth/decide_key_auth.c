
/*
 * What key-auth decides, by cases and beside a slow model, of random heads:
 * none at all, many copies of a key, lengths of 0 and of a megabyte.
 */


#include "decide.h"
#include "sluice_key_auth.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define HIDE       SLUICE_KEY_AUTH_HIDE
#define HEADER     SLUICE_KEY_AUTH_HEADER
#define QUERY      SLUICE_KEY_AUTH_QUERY
#define BODY       SLUICE_KEY_AUTH_BODY
#define PREFLIGHT  SLUICE_KEY_AUTH_PREFLIGHT

#define PASS       SLUICE_DECISION_PASS
#define NOTHING    "No API key found in request"
#define TWICE      "Duplicate API key found"
#define WRONG      "Unauthorized"
#define FORM       "application/x-www-form-urlencoded"


/* NULL: it is not there; "?": it is not known. */

typedef struct {
    uint32_t     flags;
    const char  *anonymous;
    const char  *method;
    const char  *header;         /* apikey, or "a|b": two lines */
    const char  *query;
    const char  *type;
    const char  *body;           /* "...": later; ">": too large */
    const char  *credential;     /* of the plugin before */

    int          decision;
    uint32_t     status;
    const char  *message;
    uint32_t     identity;
    const char  *left_query;     /* for the upstream */
    const char  *left_body;
} key_auth_case_t;


static const key_auth_case_t  cases[] = {

    /* where the key is */

    { HEADER|PREFLIGHT, NULL, "GET", "right", NULL, NULL, NULL, NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", NULL, NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", "", NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", "wrong", NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, WRONG, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", "right|right", NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, TWICE, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", NULL, "apikey=right", NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { QUERY|PREFLIGHT, NULL, "GET", "wrong", "a=1&apikey=ri%67ht", NULL, NULL,
      NULL, PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, NULL },
    { HEADER|QUERY|PREFLIGHT, NULL, "GET", "wrong", "apikey=right", NULL, NULL,
      NULL, SLUICE_DECISION_RESPOND, 401, WRONG, 0, NULL, NULL },
    { QUERY|PREFLIGHT, NULL, "GET", NULL, "apikey=right&apikey=right", NULL,
      NULL, NULL, SLUICE_DECISION_RESPOND, 401, TWICE, 0, NULL, NULL },
    { QUERY|PREFLIGHT, NULL, "GET", NULL, "apikey", NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { BODY|PREFLIGHT, NULL, "POST", NULL, NULL, FORM, "apikey=right", NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, NULL },
    { BODY|PREFLIGHT, NULL, "POST", NULL, NULL, "text/plain", "apikey=right",
      NULL, SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", "broken", NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 503, "the configuration cannot be read", 0,
      NULL, NULL },

    /* the body later, or never */

    { BODY|PREFLIGHT, NULL, "POST", NULL, NULL, FORM, "...", NULL,
      SLUICE_DECISION_BODY, 0, NULL, 0, NULL, NULL },
    { HEADER|BODY|PREFLIGHT, NULL, "POST", "right", NULL, FORM, "...", NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, NULL },
    { HEADER|BODY|HIDE|PREFLIGHT, NULL, "POST", "right", NULL, FORM, "...",
      NULL, SLUICE_DECISION_BODY, 0, NULL, 0, NULL, NULL },
    { BODY|PREFLIGHT, NULL, "POST", NULL, NULL, FORM, ">", NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },

    /* what is not known */

    { HEADER|PREFLIGHT, NULL, "GET", "?", NULL, NULL, NULL, NULL,
      SLUICE_DECISION_UNKNOWN, 0, NULL, 0, NULL, NULL },
    { QUERY|PREFLIGHT, NULL, "GET", NULL, "?", NULL, NULL, NULL,
      SLUICE_DECISION_UNKNOWN, 0, NULL, 0, NULL, NULL },
    { HEADER|QUERY|HIDE|PREFLIGHT, NULL, "GET", "right", "?", NULL, NULL, NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, NULL },
    { BODY|PREFLIGHT, NULL, "POST", NULL, NULL, FORM, "?", NULL,
      SLUICE_DECISION_UNKNOWN, 0, NULL, 0, NULL, NULL },
    { HEADER, NULL, "?", NULL, NULL, NULL, NULL, NULL,
      SLUICE_DECISION_UNKNOWN, 0, NULL, 0, NULL, NULL },
    { HEADER|PREFLIGHT, DECIDE_NAME, "GET", NULL, NULL, NULL, NULL, "?",
      SLUICE_DECISION_UNKNOWN, 0, NULL, 0, NULL, NULL },

    /* who needs none */

    { HEADER, NULL, "OPTIONS", NULL, NULL, NULL, NULL, NULL,
      PASS, 0, NULL, 0, NULL, NULL },
    { HEADER, NULL, "OPTION", NULL, NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "OPTIONS", NULL, NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 401, NOTHING, 0, NULL, NULL },
    { HEADER|PREFLIGHT, DECIDE_NAME, "GET", NULL, NULL, NULL, NULL, NULL,
      PASS, 0, NULL, SLUICE_DECISION_ANONYMOUS, NULL, NULL },
    { HEADER|PREFLIGHT, DECIDE_NAME, "GET", "wrong", NULL, NULL, NULL, NULL,
      PASS, 0, NULL, SLUICE_DECISION_ANONYMOUS, NULL, NULL },
    { HEADER|PREFLIGHT, DECIDE_NAME, "GET", "wrong", NULL, NULL, NULL, "id",
      PASS, 0, NULL, 0, NULL, NULL },
    { HEADER|PREFLIGHT, NULL, "GET", "wrong", NULL, NULL, NULL, "id",
      SLUICE_DECISION_RESPOND, 401, WRONG, 0, NULL, NULL },
    { HEADER|PREFLIGHT, "gone", "GET", NULL, NULL, NULL, NULL, NULL,
      SLUICE_DECISION_RESPOND, 500,
      "anonymous consumer gone is configured but doesn't exist", 0, NULL,
      NULL },

    /* what the upstream gets */

    { HEADER|QUERY|HIDE|PREFLIGHT, NULL, "GET", "right",
      "a=1&apikey=x;apikey=y&b", NULL, NULL, NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, "a=1&b", NULL },
    { QUERY|HIDE|PREFLIGHT, NULL, "GET", NULL, "apikey=right", NULL, NULL,
      NULL, PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, "", NULL },
    { HEADER|BODY|HIDE|PREFLIGHT, NULL, "POST", "right", NULL, FORM,
      "apikey=x&a=1", NULL,
      PASS, 0, NULL, SLUICE_DECISION_CREDENTIAL, NULL, "a=1" },
    { HEADER|HIDE, NULL, "OPTIONS", NULL, "apikey=x", NULL, NULL, NULL,
      PASS, 0, NULL, 0, "", NULL }
};


static uint64_t  state;


static sluice_judge_t *
key_auth(uint32_t flags, const char *anonymous)
{
    decide_packed_t  packed;

    packed.length = 0;
    decide_number(&packed, flags);
    decide_text(&packed, anonymous);
    decide_text(&packed, "Key");
    decide_number(&packed, 2);
    decide_text(&packed, "apikey");
    decide_text(&packed, "X_Key");

    return decide_create("key-auth", &packed);
}


static void
key_auth_fact(decide_request_t *asked, int ask, const char *text)
{
    if (text == NULL) {
        return;
    }

    if (strcmp(text, "?") == 0) {
        asked->request.known[ask] = SLUICE_FACT_UNKNOWN;

    } else if (strcmp(text, "...") == 0) {
        asked->request.known[ask] = SLUICE_FACT_LATER;

    } else if (strcmp(text, ">") == 0) {
        asked->request.known[ask] = SLUICE_FACT_LARGE;

    } else {
        decide_fact(asked, ask, text);
    }
}


static void
key_auth_request(decide_request_t *asked, const key_auth_case_t *c)
{
    const char  *second;

    decide_begin(asked);

    key_auth_fact(asked, SLUICE_ASK_METHOD, c->method);
    key_auth_fact(asked, SLUICE_ASK_QUERY, c->query);
    key_auth_fact(asked, SLUICE_ASK_BODY, c->body);
    key_auth_fact(asked, SLUICE_ASK_CREDENTIAL, c->credential);

    if (c->type) {
        decide_line(asked, "Content-Type", c->type, strlen(c->type));
    }

    if (c->header == NULL) {
        return;
    }

    if (strcmp(c->header, "?") == 0) {
        asked->request.headers_known = SLUICE_FACT_UNKNOWN;
        return;
    }

    second = strchr(c->header, '|');

    if (second) {
        decide_line(asked, "ApiKey", second + 1, strlen(second + 1));
    }

    decide_line(asked, "apiKEY", c->header, strcspn(c->header, "|"));
}


static void
key_auth_cases(void)
{
    int                        decision;
    size_t                     i;
    sluice_judge_t            *judge;
    decide_request_t           asked;
    const key_auth_case_t     *c;
    const sluice_core_text_t  *challenge;
    sluice_decision_result_t   result;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        c = &cases[i];
        judge = key_auth(c->flags, c->anonymous);
        key_auth_request(&asked, c);

        decision = decide_run(judge, &asked, &result);

        test_check(decision == c->decision, "case %zu: decision %d", i,
                   decision);
        test_check(result.status == c->status, "case %zu: status %u", i,
                   result.status);
        test_check(decide_is(&result.message, c->message), "case %zu", i);
        test_check(decision != PASS || result.identity == c->identity,
                   "case %zu: identity %u", i, result.identity);
        test_check(decision != PASS || decide_is(&result.query, c->left_query),
                   "case %zu: query", i);
        test_check(decision != PASS || decide_is(&result.body, c->left_body),
                   "case %zu: body", i);

        challenge = decide_edit(&result, SLUICE_DECISION_DOWN_CHALLENGE,
                                "www-authenticate");
        test_check((challenge != NULL) == (c->status == 401), "case %zu", i);
        test_check(challenge == NULL || decide_is(challenge, "Key"),
                   "case %zu", i);
        test_check(decision != PASS || !(c->flags & HIDE)
                   || decide_edit(&result, SLUICE_DECISION_UP_REMOVE_ALIKE,
                                  "x_key"),
                   "case %zu", i);

        decide_end(&asked);
        sluice_judge_destroy(judge);
    }
}


/* Of random lines the answer, by the words of docs/plugins/key-auth.md. */

static const char *
key_auth_model(const decide_request_t *asked)
{
    uint32_t                          i, count;
    const char *const                *name;
    const sluice_core_text_t         *lines, *value;
    static const char *const  names[] = { "APIKEY", "X_KEY", "X-KEY", NULL };

    lines = asked->lines;

    for (name = names; *name; name++) {
        value = NULL;

        for (i = 0, count = 0; i < asked->request.headers_count; i++) {

            if (decide_is(&lines[2 * i], *name)) {
                value = count++ ? value : &lines[2 * i + 1];
            }
        }

        if (count > 1) {
            return TWICE;
        }

        if (count == 1) {
            return value->length == 0 ? NOTHING
                   : decide_is(value, DECIDE_KEY) ? NULL : WRONG;
        }
    }

    return NOTHING;
}


static void
key_auth_random(void)
{
    char                      *large, value[8];
    int                        decision;
    uint64_t                   i, n;
    const char                *expected, *name;
    sluice_judge_t            *judge;
    decide_request_t           asked;
    sluice_decision_result_t   result;
    static const char *const   names[] = {
        "APIKEY", "X_KEY", "X-KEY", "APIKE", "APIKEYS", "", "X"
    };

    large = calloc(1, 1 << 20);
    test_check(large != NULL, "no memory");

    judge = key_auth(HEADER|PREFLIGHT|HIDE, NULL);

    for (n = test_env("CASES", 20000); n > 0; n--) {
        decide_begin(&asked);

        for (i = test_below(&state, test_below(&state, 40) ? 3 : DECIDE_LINES);
             i > 0; i--)
        {
            name = names[test_below(&state, 7)];

            switch (test_below(&state, 200)) {

            case 0:
                decide_line(&asked, name, large, 1 << 20);
                break;

            case 1:
                memset(value, (int) test_random(&state), sizeof(value));
                decide_line(&asked, name, value, sizeof(value));
                break;

            default:
                decide_line(&asked, name, DECIDE_KEY,
                            test_below(&state, 4) ? strlen(DECIDE_KEY) : 0);
            }
        }

        expected = key_auth_model(&asked);
        decision = decide_run(judge, &asked, &result);

        test_check((decision == PASS) == (expected == NULL), "decision %d",
                   decision);
        test_check(decide_is(&result.message, expected), "expected %s",
                   expected);

        decide_end(&asked);
    }

    sluice_judge_destroy(judge);
    free(large);
}


/* Random queries and bodies: nothing is read that is not there. */

static void
key_auth_texts(void)
{
    char              text[256];
    const char       *type;
    size_t            i, n;
    uint64_t          k;
    sluice_judge_t   *judge;
    decide_request_t  asked;

    sluice_decision_result_t  result;
    static const char         bytes[] = "apikey=%26;&+right{}[]\",:\\-\r\n x";
    static const char *const  types[] = {
        FORM, "application/json", "multipart/form-data; boundary=a", ""
    };

    judge = key_auth(QUERY|BODY|HIDE|PREFLIGHT, DECIDE_NAME);

    for (k = test_env("CASES", 20000); k > 0; k--) {
        decide_begin(&asked);

        for (n = 0; n < 2; n++) {

            for (i = 0; i < test_below(&state, sizeof(text)); i++) {
                text[i] = bytes[test_below(&state, sizeof(bytes) - 1)];
            }

            text[i] = '\0';
            decide_fact(&asked, n ? SLUICE_ASK_QUERY : SLUICE_ASK_BODY, text);
        }

        type = types[test_below(&state, 4)];
        decide_line(&asked, "content-type", type, strlen(type));

        test_check(decide_run(judge, &asked, &result) == PASS, "refused");
        decide_end(&asked);
    }

    sluice_judge_destroy(judge);
}


int
main(void)
{
    decide_packed_t  packed;

    state = test_seed("decide_key_auth");

    packed.length = 0;
    decide_number(&packed, HEADER|QUERY|HIDE);
    decide_text(&packed, "somebody");
    decide_text(&packed, "Key");
    decide_number(&packed, 2);
    decide_text(&packed, "apikey");
    decide_text(&packed, "");
    decide_damage("key-auth", &packed, &state);

    key_auth_cases();
    key_auth_random();
    key_auth_texts();

    printf("key-auth: %zu cases\n", sizeof(cases) / sizeof(cases[0]));

    return 0;
}
