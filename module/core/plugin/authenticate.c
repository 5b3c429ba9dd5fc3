
/*
 * What authenticators have in common (authenticate.h).
 */


#include "authenticate.h"

#include <stdio.h>


static int sluice_authenticate_anonymous(
    const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, sluice_decision_result_t *result);
static int sluice_authenticate_refuse(
    const sluice_decision_request_t *request,
    const sluice_core_text_t *challenge, const char *words,
    sluice_decision_result_t *result);


static sluice_header_t  sluice_authenticate_challenge =
    sluice_header_name("WWW-Authenticate", "www-authenticate", 0);


int
sluice_authenticate_exempt(const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, int run_on_preflight)
{
    int                 rc;
    sluice_core_text_t  value;

    if (!run_on_preflight) {
        rc = sluice_decision_fact(request, SLUICE_ASK_METHOD, &value);

        if (rc == SLUICE_FACT_OK && value.length == 7
            && memcmp(value.data, "OPTIONS", 7) == 0)
        {
            return SLUICE_FACT_OK;
        }

        if (rc == SLUICE_FACT_UNKNOWN) {
            return rc;
        }
    }

    return anonymous->data
           ? sluice_decision_fact(request, SLUICE_ASK_CREDENTIAL, &value)
           : SLUICE_FACT_NONE;
}


int
sluice_authenticate_find(const sluice_decision_request_t *request,
    const sluice_core_text_t *kind, const sluice_core_text_t *key,
    sluice_decision_result_t *result)
{
    result->unknown = "whose credential it is";

    return request->calls->credential(request->data, kind, key, &result->who);
}


sluice_core_text_t
sluice_authenticate_packed(const sluice_decision_result_t *result)
{
    return sluice_core_text(&result->who.credential,
                            SLUICE_CORE_CREDENTIAL_PACKED);
}


int
sluice_authenticate_pass(sluice_decision_result_t *result)
{
    result->identity = SLUICE_DECISION_CREDENTIAL;

    return SLUICE_DECISION_PASS;
}


int
sluice_authenticate_without(const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, const sluice_core_text_t *challenge,
    const char *words, sluice_decision_result_t *result)
{
    return anonymous->data
           ? sluice_authenticate_anonymous(request, anonymous, result)
           : sluice_authenticate_refuse(request, challenge, words, result);
}


static int
sluice_authenticate_anonymous(const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, sluice_decision_result_t *result)
{
    int     rc;
    char   *words;
    size_t  size;

    rc = request->calls->consumer(request->data, anonymous,
                                  &result->who.consumer);

    if (rc == SLUICE_FACT_OK) {
        result->identity = SLUICE_DECISION_ANONYMOUS;
        return SLUICE_DECISION_PASS;
    }

    if (rc != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, rc, "the anonymous consumer");
    }

    size = sizeof("anonymous consumer  is configured but doesn't exist")
           + anonymous->length;

    words = sluice_decision_allocate(request, size);
    if (words == NULL) {
        return SLUICE_DECISION_MEMORY;
    }

    (void) snprintf(words, size,
                    "anonymous consumer %.*s is configured but doesn't exist",
                    (int) anonymous->length, anonymous->data);

    rc = sluice_decision_respond(result, 500, words);

    result->note = result->message;
    result->is_error = 1;

    return rc;
}


static int
sluice_authenticate_refuse(const sluice_decision_request_t *request,
    const sluice_core_text_t *challenge, const char *words,
    sluice_decision_result_t *result)
{
    sluice_core_text_t  text;

    text = sluice_decision_copy(request, challenge);

    if (text.data == NULL
        || sluice_decision_edit(request, result,
                                SLUICE_DECISION_DOWN_CHALLENGE,
                                &sluice_authenticate_challenge, &text)
           != SLUICE_FACT_OK)
    {
        return SLUICE_DECISION_MEMORY;
    }

    return sluice_decision_respond(result, 401, words);
}
