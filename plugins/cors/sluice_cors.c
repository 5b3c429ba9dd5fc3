
/*
 * What the plugin cors decides: who answers a preflight, and what browsers are
 * told of responses (docs/plugins/cors.md).
 */


#include "sluice_cors.h"


/* Of a request and its response. */

typedef struct {
    const sluice_cors_t              *conf;
    const sluice_decision_request_t  *request;
    sluice_decision_result_t         *result;
    sluice_core_text_t                origin;
    int                               has_origin;
    int                               is_head;   /* others' are there */
    int                               is_varied;
    int                               failed;
} sluice_cors_run_t;


static int sluice_cors_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_cors_head(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_cors_begin(sluice_cors_run_t *run, const sluice_cors_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_cors_preflight(sluice_cors_run_t *run);
static void sluice_cors_allow(sluice_cors_run_t *run);
static int sluice_cors_origin(sluice_cors_run_t *run);
static int sluice_cors_origin_of_list(sluice_cors_run_t *run);
static void sluice_cors_vary(sluice_cors_run_t *run);
static void sluice_cors_set(sluice_cors_run_t *run, sluice_header_t *header,
    const sluice_core_text_t *value);
static void sluice_cors_set_conf(sluice_cors_run_t *run,
    sluice_header_t *header, const sluice_core_text_t *value);
static int sluice_cors_end(sluice_cors_run_t *run, int decision);


static const sluice_packed_field_t  sluice_cors_fields[] = {
    sluice_packed_field(NUMBER, sluice_cors_t, flags),
    sluice_packed_field(LIST, sluice_cors_t, origins),
    sluice_packed_field(TEXT, sluice_cors_t, first),
    sluice_packed_field(TEXT, sluice_cors_t, headers),
    sluice_packed_field(TEXT, sluice_cors_t, exposed),
    sluice_packed_field(TEXT, sluice_cors_t, methods),
    sluice_packed_field(TEXT, sluice_cors_t, max_age),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_cors = {
    "cors",
    sizeof(sluice_cors_t),
    sluice_cors_fields,
    NULL,
    sluice_cors_decide,
    sluice_cors_head
};


#define sluice_cors_text(text)  { text, sizeof(text) - 1 }

#define sluice_cors_name(name, text, lowcase)                                 \
    static sluice_header_t  sluice_cors_##name =                              \
        sluice_header_name(text, lowcase, 0)

sluice_cors_name(allow_origin, "Access-Control-Allow-Origin",
                 "access-control-allow-origin");
sluice_cors_name(allow_credentials, "Access-Control-Allow-Credentials",
                 "access-control-allow-credentials");
sluice_cors_name(allow_headers, "Access-Control-Allow-Headers",
                 "access-control-allow-headers");
sluice_cors_name(allow_methods, "Access-Control-Allow-Methods",
                 "access-control-allow-methods");
sluice_cors_name(allow_network, "Access-Control-Allow-Private-Network",
                 "access-control-allow-private-network");
sluice_cors_name(expose_headers, "Access-Control-Expose-Headers",
                 "access-control-expose-headers");
sluice_cors_name(max_age, "Access-Control-Max-Age", "access-control-max-age");
sluice_cors_name(varies, "Vary", "vary");

static const sluice_core_text_t  sluice_cors_star = sluice_cors_text("*");
static const sluice_core_text_t  sluice_cors_true = sluice_cors_text("true");
static const sluice_core_text_t  sluice_cors_of_origin =
    sluice_cors_text("Origin");
static const sluice_core_text_t  sluice_cors_all_methods =
    sluice_cors_text("GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS,TRACE,CONNECT");

static const sluice_core_text_t  sluice_cors_ask_origin =
    sluice_cors_text("origin");
static const sluice_core_text_t  sluice_cors_ask_method =
    sluice_cors_text("access-control-request-method");
static const sluice_core_text_t  sluice_cors_ask_headers =
    sluice_cors_text("access-control-request-headers");
static const sluice_core_text_t  sluice_cors_ask_network =
    sluice_cors_text("access-control-request-private-network");


static int
sluice_cors_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_cors_t  *conf = data;

    int                  rc;
    sluice_cors_run_t    run;
    sluice_core_text_t   value;

    rc = sluice_cors_begin(&run, conf, request, result);

    if (rc != SLUICE_DECISION_PASS) {
        return rc;
    }

    rc = sluice_cors_preflight(&run);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE
               ? SLUICE_DECISION_PASS
               : sluice_decision_without(result, rc, "the method");
    }

    if (conf->flags & SLUICE_CORS_CONTINUE) {
        return SLUICE_DECISION_PASS;
    }

    sluice_cors_allow(&run);

    if (conf->headers.data) {
        sluice_cors_set_conf(&run, &sluice_cors_allow_headers, &conf->headers);

    } else if (sluice_decision_header(request, &sluice_cors_ask_headers, 0,
                                      &value)
               > 0)
    {
        sluice_cors_set(&run, &sluice_cors_allow_headers, &value);
    }

    sluice_cors_set_conf(&run, &sluice_cors_allow_methods,
                         conf->methods.data ? &conf->methods
                                            : &sluice_cors_all_methods);

    if (conf->max_age.data) {
        sluice_cors_set_conf(&run, &sluice_cors_max_age, &conf->max_age);
    }

    if ((conf->flags & SLUICE_CORS_PRIVATE_NETWORK)
        && sluice_decision_header(request, &sluice_cors_ask_network, 0, &value)
           > 0
        && value.length == 4
        && memcmp(value.data, "true", 4) == 0)
    {
        sluice_cors_set(&run, &sluice_cors_allow_network, &sluice_cors_true);
    }

    result->status = 200;
    result->type.data = "";
    result->message.data = "";

    return sluice_cors_end(&run, SLUICE_DECISION_RESPOND);
}


/* A preflight was answered by decide(), or is the upstream's to answer. */

static int
sluice_cors_head(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_cors_t  *conf = data;

    int                 rc;
    sluice_cors_run_t   run;

    rc = sluice_cors_begin(&run, conf, request, result);

    if (rc != SLUICE_DECISION_PASS) {
        return rc;
    }

    rc = sluice_cors_preflight(&run);

    if (rc != SLUICE_FACT_NONE) {
        return rc == SLUICE_FACT_OK
               ? SLUICE_DECISION_PASS
               : sluice_decision_without(result, rc, "the method");
    }

    run.is_head = 1;

    sluice_cors_allow(&run);

    if (conf->exposed.data) {
        sluice_cors_set_conf(&run, &sluice_cors_expose_headers,
                             &conf->exposed);
    }

    return sluice_cors_end(&run, SLUICE_DECISION_PASS);
}


static int
sluice_cors_begin(sluice_cors_run_t *run, const sluice_cors_t *conf,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    memset(run, 0, sizeof(sluice_cors_run_t));

    run->conf = conf;
    run->request = request;
    run->result = result;

    run->has_origin = sluice_decision_header(request, &sluice_cors_ask_origin,
                                             0, &run->origin);

    if (run->has_origin < 0) {
        return sluice_decision_unknown(result, "the headers");
    }

    return run->has_origin && conf->origins.count && request->own == NULL
           ? sluice_decision_unknown(result, "the patterns")
           : SLUICE_DECISION_PASS;
}


/* SLUICE_FACT_OK, _NONE: it is none, or what is not known */

static int
sluice_cors_preflight(sluice_cors_run_t *run)
{
    int                  rc;
    sluice_core_text_t   value;

    if (run->has_origin == 0
        || sluice_decision_header(run->request, &sluice_cors_ask_method, 0,
                                  &value)
           <= 0)
    {
        return SLUICE_FACT_NONE;
    }

    rc = sluice_decision_fact(run->request, SLUICE_ASK_METHOD, &value);

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    return value.length == 7 && memcmp(value.data, "OPTIONS", 7) == 0
           ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


/* With credentials a browser takes no "*": then all are told their own. */

static void
sluice_cors_allow(sluice_cors_run_t *run)
{
    int  is_all;

    is_all = sluice_cors_origin(run);

    if (!(run->conf->flags & SLUICE_CORS_CREDENTIALS)) {

        if (is_all) {
            sluice_cors_set(run, &sluice_cors_allow_origin, &sluice_cors_star);
        }

        return;
    }

    if (!is_all) {
        sluice_cors_set(run, &sluice_cors_allow_credentials,
                        &sluice_cors_true);

    } else if (run->has_origin) {
        sluice_cors_vary(run);
        sluice_cors_set(run, &sluice_cors_allow_origin, &run->origin);
        sluice_cors_set(run, &sluice_cors_allow_credentials,
                        &sluice_cors_true);

    } else {
        sluice_cors_set(run, &sluice_cors_allow_origin, &sluice_cors_star);
    }
}


/* Tells the origin; whether it is "*", which was not told yet. */

static int
sluice_cors_origin(sluice_cors_run_t *run)
{
    if (run->conf->flags & SLUICE_CORS_ALL) {
        return 1;
    }

    /* what is cached of one origin is not to be taken for another's */

    sluice_cors_vary(run);

    if (run->conf->flags & SLUICE_CORS_ONE) {
        sluice_cors_set_conf(run, &sluice_cors_allow_origin,
                             &run->conf->first);
        return 0;
    }

    if (run->has_origin && (run->conf->flags & SLUICE_CORS_ANY)) {
        return 1;
    }

    if (run->has_origin && sluice_cors_origin_of_list(run)) {
        return 0;
    }

    if (run->is_head
        && sluice_decision_edit(run->request, run->result,
                                SLUICE_DECISION_DOWN_REMOVE,
                                &sluice_cors_allow_origin, NULL)
           != SLUICE_FACT_OK)
    {
        run->failed = 1;
    }

    return 0;
}


static int
sluice_cors_origin_of_list(sluice_cors_run_t *run)
{
    int                  rc;
    sluice_core_text_t   host, normal;

    static const sluice_core_text_t  note =
        sluice_cors_text("the patterns of origins took too long");

    normal = sluice_cors_normal(&run->origin, &host);

    if (normal.data == NULL) {
        return 0;
    }

    rc = sluice_cors_find(run->conf, run->request->own, &normal, &host);

    if (rc == SLUICE_CORE_OK) {
        sluice_cors_set(run, &sluice_cors_allow_origin, &normal);
        return 1;
    }

    if (rc == SLUICE_CORE_LIMIT) {
        run->result->note = note;
        run->result->is_error = 1;
    }

    return 0;
}


static void
sluice_cors_vary(sluice_cors_run_t *run)
{
    if (run->is_varied) {
        return;
    }

    run->is_varied = 1;

    if (!run->is_head) {
        sluice_cors_set(run, &sluice_cors_varies, &sluice_cors_of_origin);
        return;
    }

    if (sluice_decision_edit(run->request, run->result,
                             SLUICE_DECISION_DOWN_ADD, &sluice_cors_varies,
                             &sluice_cors_of_origin)
        != SLUICE_FACT_OK)
    {
        run->failed = 1;
    }
}


static void
sluice_cors_set(sluice_cors_run_t *run, sluice_header_t *header,
    const sluice_core_text_t *value)
{
    if (sluice_decision_set(run->request, run->result, header, value)
        != SLUICE_FACT_OK)
    {
        run->failed = 1;
    }
}


/* A text of the configuration, which a response may outlive. */

static void
sluice_cors_set_conf(sluice_cors_run_t *run, sluice_header_t *header,
    const sluice_core_text_t *value)
{
    sluice_core_text_t  copy;

    copy = sluice_decision_copy(run->request, value);

    if (copy.data == NULL) {
        run->failed = 1;
        return;
    }

    sluice_cors_set(run, header, &copy);
}


static int
sluice_cors_end(sluice_cors_run_t *run, int decision)
{
    return run->failed ? SLUICE_DECISION_MEMORY : decision;
}
