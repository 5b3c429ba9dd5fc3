
/*
 * What the access-log plugin decides: no request is refused, and a share of
 * them is logged.
 */


#include "sluice_access_log.h"


static int sluice_access_log_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_access_log_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_access_log_fields[] = {
    sluice_packed_field(DOUBLE, sluice_access_log_t, sample),
    sluice_packed_field(NUMBER, sluice_access_log_t, errors),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_access_log = {
    "access-log",
    sizeof(sluice_access_log_t),
    sluice_access_log_fields,
    sluice_access_log_ready,
    sluice_access_log_decide,
    NULL
};


static int
sluice_access_log_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_access_log_t  *conf = data;

    (void) source;
    (void) memory;

    if (conf->sample < 0 || conf->sample > 1) {
        return SLUICE_CORE_BAD;
    }

    conf->share = (uint32_t) (conf->sample * SLUICE_DECISION_ALL);

    return SLUICE_CORE_OK;
}


static int
sluice_access_log_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_access_log_t  *conf = data;

    (void) request;

    result->sample.is_set = 1;
    result->sample.share = conf->share;
    result->sample.errors = conf->errors;

    return SLUICE_DECISION_PASS;
}
