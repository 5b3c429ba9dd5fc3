
/*
 * What the http-log plugin decides: no request is refused.  Its configuration
 * is Lua's (handler.lua), and none of it is here.
 */


#include "sluice_http_log.h"


static int sluice_http_log_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_http_log_fields[] = {
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_http_log = {
    "http-log",
    1,
    sluice_http_log_fields,
    NULL,
    sluice_http_log_decide,
    NULL
};


static int
sluice_http_log_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    (void) data;
    (void) request;
    (void) result;

    return SLUICE_DECISION_PASS;
}
