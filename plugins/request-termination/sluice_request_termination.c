
/*
 * What the plugin request-termination decides: which requests it answers, and
 * how (docs/plugins/request-termination.md).
 */


#include "sluice_request_termination.h"
#include "fields.h"


static int sluice_request_termination_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_request_termination_has(
    const sluice_request_termination_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, int *decision);


static const sluice_packed_field_t  sluice_request_termination_fields[] = {
    sluice_packed_field(NUMBER, sluice_request_termination_t, status),
    sluice_packed_field(NUMBER, sluice_request_termination_t, is_echo),
    sluice_packed_field(TEXT, sluice_request_termination_t, type),
    sluice_packed_field(TEXT, sluice_request_termination_t, body),
    sluice_packed_field(TEXT, sluice_request_termination_t, message),
    sluice_packed_field(TEXT, sluice_request_termination_t, trigger),
    sluice_packed_field(TEXT, sluice_request_termination_t, header),
    sluice_packed_field(TEXT, sluice_request_termination_t, dashed),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_request_termination = {
    "request-termination",
    sizeof(sluice_request_termination_t),
    sluice_request_termination_fields,
    NULL,
    sluice_request_termination_decide,
    NULL
};


static int
sluice_request_termination_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_request_termination_t  *conf = data;

    int  decision;

    if (conf->trigger.data
        && !sluice_request_termination_has(conf, request, result, &decision))
    {
        return decision;
    }

    if (conf->is_echo) {
        return sluice_request_termination_echo(conf, request, result);
    }

    result->status = conf->status;
    result->type = conf->type;
    result->message = conf->body;

    return SLUICE_DECISION_RESPOND;
}


/* Whether it has what triggers; if not, the decision is made. */

static int
sluice_request_termination_has(const sluice_request_termination_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, int *decision)
{
    int                    rc, count;
    sluice_fields_t        fields;
    sluice_core_text_t     value;
    sluice_fields_name_t   name;

    count = sluice_decision_header(request, &conf->header, 0, &value);

    if (count == 0) {
        count = sluice_decision_header(request, &conf->dashed, 0, &value);
    }

    if (count == SLUICE_DECISION_NOT_KNOWN) {
        *decision = sluice_decision_unknown(result, "the headers");
        return 0;
    }

    if (count) {
        return 1;
    }

    rc = sluice_decision_fact(request, SLUICE_ASK_QUERY, &value);

    if (rc != SLUICE_FACT_OK) {
        *decision = rc == SLUICE_FACT_NONE
                    ? SLUICE_DECISION_PASS
                    : sluice_decision_without(result, rc, "the query");
        return 0;
    }

    name.name = conf->trigger;
    name.count = 0;

    if (sluice_fields_open(&fields, SLUICE_FIELDS_FORM, NULL, &value)
        == SLUICE_CORE_OK)
    {
        sluice_fields_find(&fields, &name, 1);
    }

    *decision = SLUICE_DECISION_PASS;

    return name.count != 0;
}
