
/*
 * What the plugin redirect decides: where a client is sent
 * (docs/plugins/redirect.md).
 */


#include "sluice_redirect.h"


/* Three bytes for one, and a "?". */

#define sluice_redirect_bound(length)  (3 * (size_t) (length) + 1)


static int sluice_redirect_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_redirect_location(const sluice_redirect_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *location);
static char *sluice_redirect_escape(char *out, const sluice_core_text_t *text,
    const char *also);


static const sluice_packed_field_t  sluice_redirect_fields[] = {
    sluice_packed_field(NUMBER, sluice_redirect_t, status),
    sluice_packed_field(NUMBER, sluice_redirect_t, keeps_path),
    sluice_packed_field(TEXT, sluice_redirect_t, before),
    sluice_packed_field(TEXT, sluice_redirect_t, behind),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_redirect = {
    "redirect",
    sizeof(sluice_redirect_t),
    sluice_redirect_fields,
    NULL,
    sluice_redirect_decide,
    NULL
};


static sluice_header_t  sluice_redirect_header =
    sluice_header_name("Location", "location", 0);


static int
sluice_redirect_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_redirect_t  *conf = data;

    int                  decision;
    sluice_core_text_t   location;

    decision = conf->keeps_path
               ? sluice_redirect_location(conf, request, result, &location)
               : SLUICE_DECISION_RESPOND;

    if (decision != SLUICE_DECISION_RESPOND) {
        return decision;
    }

    if (!conf->keeps_path) {
        location = sluice_decision_copy(request, &conf->before);
    }

    if (location.data == NULL
        || sluice_decision_set(request, result, &sluice_redirect_header,
                               &location)
           != SLUICE_FACT_OK)
    {
        return SLUICE_DECISION_MEMORY;
    }

    /* no content type */

    result->type.data = "";

    return sluice_decision_respond(result, conf->status, "redirecting");
}


/* SLUICE_DECISION_RESPOND, or what else is decided. */

static int
sluice_redirect_location(const sluice_redirect_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *location)
{
    int                  rc;
    char                *text, *p;
    sluice_core_text_t   path, query;

    rc = sluice_decision_fact(request, SLUICE_ASK_PATH, &path);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE
               ? SLUICE_DECISION_MEMORY
               : sluice_decision_without(result, rc, "the path");
    }

    rc = sluice_decision_fact(request, SLUICE_ASK_QUERY, &query);

    if (rc == SLUICE_FACT_NONE) {
        query.length = 0;

    } else if (rc != SLUICE_FACT_OK) {
        return sluice_decision_without(result, rc, "the query");
    }

    text = sluice_decision_allocate(request,
                                    conf->before.length
                                    + sluice_redirect_bound(path.length)
                                    + sluice_redirect_bound(query.length)
                                    + conf->behind.length);
    if (text == NULL) {
        return SLUICE_DECISION_MEMORY;
    }

    p = sluice_core_copy(text, &conf->before);
    p = sluice_redirect_escape(p, &path, "?`{}\\");

    if (query.length) {
        *p++ = '?';
        p = sluice_redirect_escape(p, &query, "'");
    }

    p = sluice_core_copy(p, &conf->behind);

    location->data = text;
    location->length = (uint32_t) (p - text);

    return SLUICE_DECISION_RESPOND;
}


/* What may not stand in a URL (WHATWG's, percent-encoded bytes). */

static char *
sluice_redirect_escape(char *out, const sluice_core_text_t *text,
    const char *also)
{
    uint32_t       i;
    unsigned char  c;

    static const char  digits[] = "0123456789ABCDEF";

    for (i = 0; i < text->length; i++) {
        c = (unsigned char) text->data[i];

        if (c > ' ' && c < 0x7f && !strchr("\"#<>", c) && !strchr(also, c)) {
            *out++ = (char) c;
            continue;
        }

        *out++ = '%';
        *out++ = digits[c >> 4];
        *out++ = digits[c & 0x0f];
    }

    return out;
}
