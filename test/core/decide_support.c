
#include "decide.h"
#include "support.h"
#include "text.h"

#include <stdlib.h>


static int decide_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who);
static int decide_consumer(void *data, const sluice_core_text_t *name,
    sluice_core_found_t *consumer);


static void
decide_put(decide_packed_t *packed, const void *data, size_t length)
{
    test_check(length <= sizeof(packed->data) - packed->length, "too long");

    memcpy(&packed->data[packed->length], data, length);
    packed->length += (uint32_t) length;
}


void
decide_number(decide_packed_t *packed, uint32_t number)
{
    decide_put(packed, &number, sizeof(number));
}


void
decide_double(decide_packed_t *packed, double number)
{
    decide_put(packed, &number, sizeof(number));
}


void
decide_text(decide_packed_t *packed, const char *text)
{
    decide_number(packed, text ? (uint32_t) strlen(text) : UINT32_MAX);

    if (text) {
        decide_put(packed, text, strlen(text));
    }
}


static sluice_judge_t *
decide_try(const char *name, const char *data, size_t length, int *rc)
{
    sluice_judge_t      *judge;
    sluice_core_text_t   bytes;

    bytes = text_own(data, length);
    judge = sluice_judge_create(name, strlen(name), &bytes, rc);
    text_free(&bytes);

    test_check((judge != NULL) == (*rc == SLUICE_CORE_OK), "rc %d", *rc);

    return judge;
}


sluice_judge_t *
decide_create(const char *name, const decide_packed_t *packed)
{
    int              rc;
    sluice_judge_t  *judge;

    judge = decide_try(name, packed->data, packed->length, &rc);
    test_check(judge != NULL, "%s: %s", name, sluice_core_word(rc));

    return judge;
}


void
decide_damage(const char *name, const decide_packed_t *packed, uint64_t *state)
{
    int                        rc;
    uint32_t                   i, n;
    sluice_judge_t            *judge;
    decide_packed_t            copy;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    for (n = 0; n < packed->length; n++) {
        judge = decide_try(name, packed->data, n, &rc);
        test_check(judge == NULL && rc == SLUICE_CORE_BAD, "%s: %u bytes",
                   name, n);
    }

    copy = *packed;
    decide_put(&copy, "", 1);
    judge = decide_try(name, copy.data, copy.length, &rc);
    test_check(judge == NULL && rc == SLUICE_CORE_BAD, "one byte more");

    for (n = 0; n < 2000; n++) {
        copy = *packed;

        for (i = (uint32_t) test_below(state, 4) + 1; i > 0; i--) {
            copy.data[test_below(state, copy.length)] =
                (char) test_random(state);
        }

        judge = decide_try(name, copy.data, copy.length, &rc);

        if (judge == NULL) {
            test_check(rc == SLUICE_CORE_BAD, "rc %d", rc);
            continue;
        }

        decide_begin(&asked);
        decide_line(&asked, "apikey", DECIDE_KEY, strlen(DECIDE_KEY));
        (void) decide_run(judge, &asked, &result);
        (void) decide_head(judge, &asked, &result);
        decide_end(&asked);
        sluice_judge_destroy(judge);
    }
}


void
decide_begin(decide_request_t *asked)
{
    int  i;

    memset(asked, 0, sizeof(decide_request_t));

    for (i = 0; i < SLUICE_ASK_COUNT; i++) {
        asked->request.known[i] = SLUICE_FACT_NONE;
    }

    asked->request.headers = asked->lines;
    asked->request.credential = decide_credential;
    asked->request.consumer = decide_consumer;
    asked->request.now = 1700000000;

    decide_fact(asked, SLUICE_ASK_METHOD, "GET");
    decide_fact(asked, SLUICE_ASK_PATH, "/");
    decide_fact(asked, SLUICE_ASK_ADDRESS, "127.0.0.1");
}


void
decide_fact(decide_request_t *asked, int ask, const char *text)
{
    if (asked->request.facts[ask].data) {
        text_free(&asked->request.facts[ask]);
    }

    asked->request.facts[ask] = text_own(text, strlen(text));
    asked->request.known[ask] = SLUICE_FACT_OK;
}


void
decide_line(decide_request_t *asked, const char *name, const char *value,
    size_t length)
{
    sluice_core_text_t  *line;

    test_check(asked->request.headers_count < DECIDE_LINES, "too many");

    line = &asked->lines[2 * asked->request.headers_count++];
    line[0] = text_own(name, strlen(name));
    line[1] = text_own(value, length);
}


void
decide_end(decide_request_t *asked)
{
    uint32_t  i;

    for (i = 0; i < 2 * asked->request.headers_count; i++) {
        text_free(&asked->lines[i]);
    }

    for (i = 0; i < SLUICE_ASK_COUNT; i++) {

        if (asked->request.facts[i].data) {
            text_free(&asked->request.facts[i]);
        }
    }
}


static uint64_t
decide_sum(uint64_t sum, const sluice_core_text_t *text)
{
    uint32_t  i;

    for (i = 0; text->data && i < text->length; i++) {
        sum = sum * 31 + (unsigned char) text->data[i];
    }

    return sum;
}


static sluice_core_text_t
decide_value(const sluice_header_line_t *line)
{
    sluice_core_text_t  value;

    value.data = (const char *) line->value.data;
    value.length = (uint32_t) line->value.length;

    return value;
}


/* Each byte of it is read. */

static void
decide_whole(int decision, const sluice_decision_result_t *result)
{
    uint32_t                       i;
    volatile uint64_t              sum;
    sluice_core_text_t             value;
    const sluice_decision_edit_t  *edit;

    sum = decide_sum(0, &result->message);
    sum = decide_sum(sum, &result->query);
    sum = decide_sum(sum, &result->body);
    sum = decide_sum(sum, &result->note);
    sum = decide_sum(sum, &result->log_value);

    for (i = 0; i < result->lines_count; i++) {
        value = decide_value(&result->lines[i]);
        sum = decide_sum(sum, &value);

        test_check(result->lines[i].header->hash != 0, "no hash");
    }

    for (i = 0; i < result->edits_count; i++) {
        edit = &result->edits[i];
        sum = decide_sum(sum, &edit->value);

        test_check(edit->verb <= SLUICE_DECISION_DOWN_REMOVE, "verb %u",
                   edit->verb);
        test_check(edit->header->hash != 0 || edit->header->length == 0,
                   "no hash");
    }

    test_check(decision >= SLUICE_DECISION_PASS
               && decision < SLUICE_DECISION_MEMORY, "decision %d", decision);
    test_check((decision == SLUICE_DECISION_RESPOND) == (result->status != 0),
               "decision %d, status %u", decision, result->status);
    test_check(decision != SLUICE_DECISION_UNKNOWN || result->unknown,
               "nobody says what is not known");
}


int
decide_run(sluice_judge_t *judge, decide_request_t *asked,
    sluice_decision_result_t *result)
{
    int  decision;

    decision = sluice_judge_run(judge, &asked->request, result);
    decide_whole(decision, result);

    return decision;
}


int
decide_head(sluice_judge_t *judge, decide_request_t *asked,
    sluice_decision_result_t *result)
{
    int  decision;

    decision = sluice_judge_head(judge, &asked->request, result);
    decide_whole(decision, result);

    test_check(decision == SLUICE_DECISION_PASS
               || decision == SLUICE_DECISION_UNKNOWN, "decision %d",
               decision);

    return decision;
}


int
decide_is(const sluice_core_text_t *text, const char *other)
{
    if (text->data == NULL || other == NULL) {
        return text->data == NULL && other == NULL;
    }

    return text->length == strlen(other)
           && memcmp(text->data, other, text->length) == 0;
}


static int
decide_is_header(const sluice_header_t *header, const char *lowcase)
{
    return header->length == strlen(lowcase)
           && memcmp(header->lowcase, lowcase, header->length) == 0;
}


const sluice_core_text_t *
decide_edit(const sluice_decision_result_t *result, int verb,
    const char *lowcase)
{
    uint32_t                       i;
    const sluice_decision_edit_t  *edit;

    for (i = 0; i < result->edits_count; i++) {
        edit = &result->edits[i];

        if (edit->verb == (uint32_t) verb
            && decide_is_header(edit->header, lowcase))
        {
            return &edit->value;
        }
    }

    return NULL;
}


sluice_core_text_t
decide_told(const sluice_decision_result_t *result, const char *lowcase)
{
    uint32_t                         i;
    static const sluice_core_text_t  none;

    for (i = 0; i < result->lines_count; i++) {

        if (decide_is_header(result->lines[i].header, lowcase)) {
            return decide_value(&result->lines[i]);
        }
    }

    return none;
}


static int
decide_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who)
{
    (void) data;
    (void) who;

    test_check(decide_is(kind, "keyauth_credentials"), "another kind");

    if (decide_is(key, "broken")) {
        return SLUICE_FACT_UNREADABLE;
    }

    return decide_is(key, DECIDE_KEY) ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


static int
decide_consumer(void *data, const sluice_core_text_t *name,
    sluice_core_found_t *consumer)
{
    (void) data;
    (void) consumer;

    return decide_is(name, DECIDE_NAME) ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}
