
/*
 * What the plugin bot-detection decides: whether a User-Agent may pass
 * (docs/plugins/bot-detection.md).
 */


#include "sluice_bot_detection.h"


#define SLUICE_BOT_DETECTION_NOTE  "a pattern takes too long: "


/* What a list says of a User-Agent; a decision where it says nothing. */

typedef enum {
    SLUICE_BOT_DETECTION_NO = 0,
    SLUICE_BOT_DETECTION_YES,
    SLUICE_BOT_DETECTION_ENDS
} sluice_bot_detection_e;


typedef struct {
    const sluice_decision_request_t  *request;
    sluice_decision_result_t         *result;
    sluice_core_text_t                agent;
    int                               is_next;   /* pattern of the request */
    int                               decision;  /* if one ends it */
} sluice_bot_detection_search_t;


static int sluice_bot_detection_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_bot_detection_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static void sluice_bot_detection_strip(sluice_core_text_t *text);
static int sluice_bot_detection_in(sluice_bot_detection_search_t *search,
    const sluice_packed_list_t *list);
static void sluice_bot_detection_fail(sluice_bot_detection_search_t *search,
    const sluice_core_text_t *pattern);


static const sluice_packed_field_t  sluice_bot_detection_fields[] = {
    sluice_packed_field(LIST, sluice_bot_detection_t, allow),
    sluice_packed_field(LIST, sluice_bot_detection_t, deny),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_bot_detection = {
    "bot-detection",
    sizeof(sluice_bot_detection_t),
    sluice_bot_detection_fields,
    sluice_bot_detection_ready,
    sluice_bot_detection_decide,
    NULL
};


static const sluice_core_text_t  sluice_bot_detection_header = {
    "user-agent", 10
};


static int
sluice_bot_detection_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_bot_detection_t  *conf = data;

    (void) source;
    (void) memory;

    sluice_bot_detection_index(&conf->index);

    return SLUICE_CORE_OK;
}


static int
sluice_bot_detection_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_bot_detection_t  *conf = data;

    int                            said;
    sluice_bot_detection_search_t  search;

    memset(&search, 0, sizeof(sluice_bot_detection_search_t));
    search.request = request;
    search.result = result;

    switch (sluice_decision_header(request, &sluice_bot_detection_header, 0,
                                   &search.agent))
    {
    case SLUICE_DECISION_NOT_KNOWN:
        return sluice_decision_unknown(result, "the headers");

    case 0:
        return SLUICE_DECISION_PASS;

    case 1:
        break;

    default:
        return sluice_decision_respond(result, 400,
                                       "Only one User-Agent header allowed");
    }

    sluice_bot_detection_strip(&search.agent);

    said = sluice_bot_detection_in(&search, &conf->allow);

    if (said == SLUICE_BOT_DETECTION_YES) {
        return SLUICE_DECISION_PASS;
    }

    if (said == SLUICE_BOT_DETECTION_NO) {
        said = sluice_bot_detection_in(&search, &conf->deny);
    }

    if (said == SLUICE_BOT_DETECTION_ENDS) {
        return search.decision;
    }

    if (said == SLUICE_BOT_DETECTION_YES
        || sluice_bot_detection_is_bot(&conf->index, &search.agent))
    {
        return sluice_decision_respond(result, 403, "Forbidden");
    }

    return SLUICE_DECISION_PASS;
}


static void
sluice_bot_detection_strip(sluice_core_text_t *text)
{
    if (text->length == 0) {
        text->data = "";
        return;
    }

    while (text->length && strchr(" \t\v\f\r\n", text->data[0])
           && text->data[0])
    {
        text->data++;
        text->length--;
    }

    while (text->length && strchr(" \t\v\f\r\n", text->data[text->length - 1])
           && text->data[text->length - 1])
    {
        text->length--;
    }
}


/* A pattern of which nobody knows whether it matches ends the request. */

static int
sluice_bot_detection_in(sluice_bot_detection_search_t *search,
    const sluice_packed_list_t *list)
{
    int                        rc, reason;
    uint32_t                   i;
    const sluice_core_text_t  *pattern;

    if (list->count && search->request->own == NULL) {
        search->decision = sluice_decision_unknown(search->result,
                                                   "the patterns");
        return SLUICE_BOT_DETECTION_ENDS;
    }

    for (i = 0; i < list->count; i++) {
        pattern = &list->texts[i];

        rc = sluice_core_regex_try(search->request->own, pattern->data,
                                   pattern->length, 0, search->agent.data,
                                   search->agent.length, !search->is_next,
                                   &reason);
        search->is_next = 1;

        if (rc == SLUICE_CORE_OK) {
            return SLUICE_BOT_DETECTION_YES;
        }

        if (rc != SLUICE_CORE_NONE) {
            sluice_bot_detection_fail(search, pattern);
            return SLUICE_BOT_DETECTION_ENDS;
        }
    }

    return SLUICE_BOT_DETECTION_NO;
}


static void
sluice_bot_detection_fail(sluice_bot_detection_search_t *search,
    const sluice_core_text_t *pattern)
{
    char    *text;
    size_t   words;

    words = sizeof(SLUICE_BOT_DETECTION_NOTE) - 1;

    text = sluice_decision_allocate(search->request, words + pattern->length);

    if (text == NULL) {
        search->decision = SLUICE_DECISION_MEMORY;
        return;
    }

    memcpy(text, SLUICE_BOT_DETECTION_NOTE, words);

    if (pattern->length) {
        memcpy(text + words, pattern->data, pattern->length);
    }

    search->result->note.data = text;
    search->result->note.length = (uint32_t) (words + pattern->length);
    search->result->is_error = 1;

    search->decision = sluice_decision_respond(search->result, 500, NULL);
}
