
/*
 * What the rate-limiting plugin decides: a request is counted in all windows
 * of a rule at once, and refused where one is full.  Without the counters
 * nothing is known.
 */


#include "sluice_rate_limiting.h"


#define SLUICE_RATE_LIMITING_MOST  1e15      /* more than any count */


static int sluice_rate_limiting_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static void sluice_rate_limiting_ready_rates(sluice_rate_limiting_t *conf,
    uint64_t *limits);
static int sluice_rate_limiting_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_rate_limiting_credential(
    const sluice_decision_request_t *request, sluice_core_text_t *identifier);
static int sluice_rate_limiting_identify(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *identifier);
static int sluice_rate_limiting_is_path(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *identifier);
static int sluice_rate_limiting_not_counted(
    const sluice_rate_limiting_t *conf, sluice_decision_result_t *result);


static const sluice_packed_field_t  sluice_rate_limiting_fields[] = {
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_SECOND]),
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_MINUTE]),
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_HOUR]),
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_DAY]),
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_MONTH]),
    sluice_packed_field(DOUBLE, sluice_rate_limiting_t,
                        periods[SLUICE_CORE_YEAR]),
    sluice_packed_field(TEXT, sluice_rate_limiting_t, limit_by),
    sluice_packed_field(TEXT, sluice_rate_limiting_t, header),
    sluice_packed_field(TEXT, sluice_rate_limiting_t, path),
    sluice_packed_field(NUMBER, sluice_rate_limiting_t, status),
    sluice_packed_field(TEXT, sluice_rate_limiting_t, message),
    sluice_packed_field(NUMBER, sluice_rate_limiting_t, fault_tolerant),
    sluice_packed_field(NUMBER, sluice_rate_limiting_t, hide_headers),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_rate_limiting = {
    "rate-limiting",
    sizeof(sluice_rate_limiting_t),
    sluice_rate_limiting_fields,
    sluice_rate_limiting_ready,
    sluice_rate_limiting_decide,
    NULL
};


static const char *const  sluice_rate_limiting_by[SLUICE_RATE_LIMITING_BY] = {
    "consumer", "credential", "ip", "service", "header", "path"
};


static int
sluice_rate_limiting_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_rate_limiting_t  *conf = data;

    uint32_t  i;
    uint64_t  limits[SLUICE_CORE_PERIODS];

    (void) memory;

    for (i = 0; i < SLUICE_RATE_LIMITING_BY; i++) {

        if (strlen(sluice_rate_limiting_by[i]) == conf->limit_by.length
            && memcmp(sluice_rate_limiting_by[i], conf->limit_by.data,
                      conf->limit_by.length)
               == 0)
        {
            break;
        }
    }

    if (i == SLUICE_RATE_LIMITING_BY) {
        return SLUICE_CORE_BAD;
    }

    conf->by = i;

    if (conf->by == SLUICE_RATE_LIMITING_BY_HEADER
        && conf->header.length == 0)
    {
        return SLUICE_CORE_BAD;
    }

    sluice_rate_limiting_ready_rates(conf, limits);

    if (conf->rates[0].length == 0) {
        return SLUICE_CORE_BAD;
    }

    sluice_core_rule_set(&conf->rule, source->slot, source->generation, limits,
                         0);
    sluice_rate_limiting_hash();

    return SLUICE_CORE_OK;
}


/* Each period's, 0 where it has none, into those of the windows. */

static void
sluice_rate_limiting_ready_rates(sluice_rate_limiting_t *conf,
    uint64_t *limits)
{
    double                        number;
    uint32_t                      i;
    sluice_rate_limiting_rate_t  *rate;

    rate = conf->rates;

    for (i = 0; i < SLUICE_CORE_PERIODS; i++) {

        number = conf->periods[i];
        limits[i] = 0;

        if (number <= 0) {
            continue;
        }

        limits[i] = (uint64_t) (number < SLUICE_RATE_LIMITING_MOST
                                ? number : SLUICE_RATE_LIMITING_MOST);

        if ((double) limits[i] < number) {
            limits[i]++;
        }

        rate->number = number;
        rate->length = (size_t) (sluice_rate_limiting_print(rate->text, number)
                                 - rate->text);
        rate++;
    }
}


static int
sluice_rate_limiting_decide(void *data,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    sluice_rate_limiting_t *conf = data;

    int                                rc, full, is_fallback;
    sluice_core_text_t                 identifier;
    sluice_core_taken_t                taken;
    const sluice_rate_limiting_own_t  *own;

    own = request->own;

    if (own == NULL) {
        return sluice_decision_unknown(result, "the counters");
    }

    rc = sluice_rate_limiting_identify(conf, request, &identifier);
    is_fallback = rc == SLUICE_FACT_NONE;

    if (is_fallback) {
        identifier.data = "";
        identifier.length = 0;

        rc = sluice_decision_fact(request, SLUICE_ASK_ADDRESS, &identifier);
    }

    if (rc != SLUICE_FACT_OK && rc != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, rc, "whose request it is");
    }

    full = own->take(own, &conf->rule, &identifier, is_fallback,
                     (uint64_t) request->now, &taken);

    if (full == SLUICE_CORE_FULL) {
        return sluice_rate_limiting_not_counted(conf, result);
    }

    if (!conf->hide_headers
        && sluice_rate_limiting_report(conf, request, &taken, full > 0, result)
           != SLUICE_FACT_OK)
    {
        return SLUICE_DECISION_MEMORY;
    }

    if (full == 0) {
        return SLUICE_DECISION_PASS;
    }

    result->status = conf->status;
    result->message = conf->message;

    return SLUICE_DECISION_RESPOND;
}


/* SLUICE_FACT_NONE: it has no such thing */

/* One without an id tells nobody from another. */

static int
sluice_rate_limiting_credential(const sluice_decision_request_t *request,
    sluice_core_text_t *identifier)
{
    int  rc;

    rc = sluice_decision_fact(request, SLUICE_ASK_CREDENTIAL, identifier);

    return rc == SLUICE_FACT_OK && identifier->length == 0
           ? SLUICE_FACT_NONE : rc;
}


static int
sluice_rate_limiting_identify(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *identifier)
{
    int  rc;

    switch (conf->by) {

    case SLUICE_RATE_LIMITING_BY_CONSUMER:

        /* Who has a credential, and no consumer, is somebody too. */

        rc = sluice_decision_fact(request, SLUICE_ASK_CONSUMER, identifier);

        return rc == SLUICE_FACT_NONE
               ? sluice_rate_limiting_credential(request, identifier) : rc;

    case SLUICE_RATE_LIMITING_BY_CREDENTIAL:
        return sluice_rate_limiting_credential(request, identifier);

    case SLUICE_RATE_LIMITING_BY_SERVICE:
        return sluice_decision_fact(request, SLUICE_ASK_SERVICE, identifier);

    case SLUICE_RATE_LIMITING_BY_HEADER:
        rc = sluice_decision_header(request, &conf->header, 0, identifier);

        return rc > 0 ? SLUICE_FACT_OK : rc == 0 ? SLUICE_FACT_NONE
                                                 : SLUICE_FACT_UNKNOWN;

    case SLUICE_RATE_LIMITING_BY_PATH:
        return sluice_rate_limiting_is_path(conf, request, identifier);

    default:
        return sluice_decision_fact(request, SLUICE_ASK_ADDRESS, identifier);
    }
}


static int
sluice_rate_limiting_is_path(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *identifier)
{
    int  rc;

    rc = sluice_decision_fact(request, SLUICE_ASK_PATH, identifier);

    if (rc == SLUICE_FACT_OK
        && (conf->path.length == 0 || identifier->length != conf->path.length
            || memcmp(identifier->data, conf->path.data, conf->path.length)
               != 0))
    {
        return SLUICE_FACT_NONE;
    }

    return rc;
}


static int
sluice_rate_limiting_not_counted(const sluice_rate_limiting_t *conf,
    sluice_decision_result_t *result)
{
    return conf->fault_tolerant ? SLUICE_DECISION_PASS
                                : sluice_decision_respond(result, 500, NULL);
}
