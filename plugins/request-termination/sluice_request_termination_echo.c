
/*
 * What a client is told of its own request: JSON, in Kong's layout.
 *
 * Of lines and of arguments as many are told as Kong reads; those of one name
 * are an array.
 */


#include "sluice_request_termination_echo.h"
#include "fields.h"


#define SLUICE_ECHO_PAIRS  100


typedef struct {
    sluice_core_text_t  name;
    sluice_core_text_t  value;           /* data NULL: a flag */
} sluice_echo_pair_t;


static void sluice_echo_node(sluice_echo_t *echo);
static void sluice_echo_request(sluice_echo_t *echo);
static void sluice_echo_body(sluice_echo_t *echo);
static void sluice_echo_fact(sluice_echo_t *echo, const char *name, int ask);
static void sluice_echo_entity(sluice_echo_t *echo, const char *name,
    int kind);
static void sluice_echo_lines(sluice_echo_t *echo);
static void sluice_echo_arguments(sluice_echo_t *echo,
    const sluice_core_text_t *form);
static sluice_core_text_t sluice_echo_decode(sluice_echo_t *echo,
    const char *p, const char *end);
static void sluice_echo_pairs(sluice_echo_t *echo,
    const sluice_echo_pair_t *pairs, uint32_t count);
static int sluice_echo_is_same(const sluice_core_text_t *one,
    const sluice_core_text_t *two);
static void sluice_echo_value(sluice_echo_t *echo,
    const sluice_core_text_t *value);


int
sluice_request_termination_echo(const sluice_request_termination_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_echo_t  echo;

    if (request->own == NULL) {
        return sluice_decision_unknown(result, "the gateway's process");
    }

    memset(&echo, 0, sizeof(sluice_echo_t));
    echo.request = request;
    echo.own = request->own;
    echo.fact = SLUICE_FACT_OK;

    sluice_request_echo_open(&echo, NULL);

    if (conf->message.data) {
        sluice_request_echo_name(&echo, "message");
        sluice_request_echo_string(&echo, &conf->message);
    }

    sluice_echo_node(&echo);
    sluice_echo_request(&echo);
    sluice_echo_entity(&echo, "matched_route", SLUICE_CORE_ROUTE);
    sluice_echo_entity(&echo, "matched_service", SLUICE_CORE_SERVICE);
    sluice_request_echo_close(&echo);

    if (echo.fact != SLUICE_FACT_OK) {
        return sluice_decision_without(result, echo.fact, echo.unknown);
    }

    if (echo.length > UINT32_MAX) {
        return SLUICE_DECISION_MEMORY;
    }

    result->status = conf->status;
    result->type.data = "application/json; charset=utf-8";
    result->type.length = (uint32_t) strlen(result->type.data);
    result->message.data = echo.text;
    result->message.length = (uint32_t) echo.length;

    return SLUICE_DECISION_RESPOND;
}


static void
sluice_echo_node(sluice_echo_t *echo)
{
    sluice_request_echo_open(echo, "kong");
    sluice_request_echo_name(echo, "node_id");
    sluice_request_echo_string(echo, &echo->own->node_id);
    sluice_request_echo_name(echo, "worker_pid");
    sluice_request_echo_number(echo, echo->own->pid);
    sluice_request_echo_name(echo, "hostname");
    sluice_request_echo_string(echo, &echo->own->hostname);
    sluice_request_echo_close(echo);
}


static void
sluice_echo_request(sluice_echo_t *echo)
{
    int                 rc;
    sluice_core_text_t  query;

    sluice_request_echo_open(echo, "request");

    /* first: it may have to be read */

    sluice_echo_body(echo);

    sluice_echo_fact(echo, "scheme", SLUICE_ASK_SCHEME);
    sluice_echo_fact(echo, "host", SLUICE_ASK_HOST);
    sluice_echo_fact(echo, "method", SLUICE_ASK_METHOD);
    sluice_echo_fact(echo, "path", SLUICE_ASK_PATH);

    sluice_request_echo_name(echo, "port");
    sluice_request_echo_number(echo, echo->own->port);

    sluice_request_echo_open(echo, "headers");
    sluice_echo_lines(echo);
    sluice_request_echo_close(echo);

    rc = sluice_decision_fact(echo->request, SLUICE_ASK_QUERY, &query);

    sluice_request_echo_open(echo, "query");

    if (rc == SLUICE_FACT_OK) {
        sluice_echo_arguments(echo, &query);
    }

    sluice_request_echo_close(echo);
    sluice_request_echo_close(echo);
}


/* One that is not in memory is not told, and a form also by its fields. */

static void
sluice_echo_body(sluice_echo_t *echo)
{
    int                 rc;
    sluice_core_text_t  body, type;

    static const sluice_core_text_t  header = { "content-type", 12 };

    rc = sluice_decision_fact(echo->request, SLUICE_ASK_BODY, &body);

    switch (rc) {

    case SLUICE_FACT_LARGE:
        return;

    case SLUICE_FACT_NONE:
        body.data = "";
        body.length = 0;
        break;

    case SLUICE_FACT_OK:
        break;

    default:
        echo->fact = rc;
        echo->unknown = "the body";
        return;
    }

    sluice_request_echo_name(echo, "raw_body");
    sluice_request_echo_string(echo, &body);

    if (sluice_decision_header(echo->request, &header, 0, &type) > 0
        && sluice_fields_kind(&type) == SLUICE_FIELDS_FORM)
    {
        sluice_request_echo_open(echo, "body");
        sluice_echo_arguments(echo, &body);
        sluice_request_echo_close(echo);
    }
}


static void
sluice_echo_fact(sluice_echo_t *echo, const char *name, int ask)
{
    sluice_core_text_t  value;

    if (sluice_decision_fact(echo->request, ask, &value) == SLUICE_FACT_OK) {
        sluice_request_echo_name(echo, name);
        sluice_request_echo_string(echo, &value);
    }
}


static void
sluice_echo_entity(sluice_echo_t *echo, const char *name, int kind)
{
    sluice_core_text_t  text;

    if (echo->own->entity(echo->own, kind, &text) == SLUICE_FACT_OK) {
        sluice_request_echo_name(echo, name);
        sluice_request_echo_put(echo, text.data, text.length);
    }
}


static void
sluice_echo_lines(sluice_echo_t *echo)
{
    char                *lowcase;
    uint32_t             i, n;
    sluice_core_text_t   name;
    sluice_echo_pair_t   pairs[SLUICE_ECHO_PAIRS];

    for (n = 0; n < SLUICE_ECHO_PAIRS; n++) {

        if (echo->own->line(echo->own, n, &name, &pairs[n].value)
            != SLUICE_FACT_OK)
        {
            break;
        }

        lowcase = sluice_decision_allocate(echo->request,
                                           name.length + (size_t) 1);
        if (lowcase == NULL) {
            echo->fact = SLUICE_FACT_MEMORY;
            break;
        }

        for (i = 0; i < name.length; i++) {
            lowcase[i] = name.data[i];

            if (lowcase[i] >= 'A' && lowcase[i] <= 'Z') {
                lowcase[i] |= 0x20;
            }
        }

        pairs[n].name.data = lowcase;
        pairs[n].name.length = name.length;

        if (pairs[n].value.data == NULL) {
            pairs[n].value.data = "";
        }
    }

    sluice_echo_pairs(echo, pairs, n);
}


/* Of a query or a form; those without a name are none. */

static void
sluice_echo_arguments(sluice_echo_t *echo, const sluice_core_text_t *form)
{
    uint32_t             n;
    const char          *p, *end, *last, *equals;
    sluice_echo_pair_t   pairs[SLUICE_ECHO_PAIRS];

    p = form->data;
    last = p + form->length;

    for (n = 0; p < last && n < SLUICE_ECHO_PAIRS; p = end + 1) {

        end = memchr(p, '&', (size_t) (last - p));
        if (end == NULL) {
            end = last;
        }

        equals = memchr(p, '=', (size_t) (end - p));

        if (p == end || equals == p) {
            continue;
        }

        pairs[n].name = sluice_echo_decode(echo, p, equals ? equals : end);
        pairs[n].value.data = NULL;
        pairs[n].value.length = 0;

        if (equals) {
            pairs[n].value = sluice_echo_decode(echo, equals + 1, end);
        }

        n++;
    }

    sluice_echo_pairs(echo, pairs, n);
}


static sluice_core_text_t
sluice_echo_decode(sluice_echo_t *echo, const char *p, const char *end)
{
    char                *text;
    sluice_fields_t      fields;
    sluice_core_text_t   value;

    value.data = p;
    value.length = (uint32_t) (end - p);

    text = sluice_decision_allocate(echo->request, value.length + (size_t) 1);

    if (text == NULL) {
        echo->fact = SLUICE_FACT_MEMORY;
        value.data = "";
        value.length = 0;

        return value;
    }

    (void) sluice_fields_open(&fields, SLUICE_FIELDS_FORM, NULL, &value);

    value.length = (uint32_t) sluice_fields_decode(&fields, &value, text);
    value.data = text;

    return value;
}


/* The members of an object. */

static void
sluice_echo_pairs(sluice_echo_t *echo, const sluice_echo_pair_t *pairs,
    uint32_t count)
{
    uint32_t  i, k, is_array;

    for (i = 0; i < count; i++) {

        for (k = 0; k < i; k++) {

            if (sluice_echo_is_same(&pairs[k].name, &pairs[i].name)) {
                break;
            }
        }

        if (k < i) {
            continue;
        }

        if (!echo->is_first) {
            sluice_request_echo_put(echo, ",", 1);
        }

        echo->is_first = 0;
        sluice_request_echo_string(echo, &pairs[i].name);
        sluice_request_echo_put(echo, ":", 1);

        for (k = i + 1, is_array = 0; k < count && !is_array; k++) {
            is_array = sluice_echo_is_same(&pairs[k].name, &pairs[i].name);
        }

        sluice_request_echo_put(echo, "[", is_array);
        sluice_echo_value(echo, &pairs[i].value);

        for (k = i + 1; is_array && k < count; k++) {

            if (sluice_echo_is_same(&pairs[k].name, &pairs[i].name)) {
                sluice_request_echo_put(echo, ",", 1);
                sluice_echo_value(echo, &pairs[k].value);
            }
        }

        sluice_request_echo_put(echo, "]", is_array);
    }
}


static int
sluice_echo_is_same(const sluice_core_text_t *one,
    const sluice_core_text_t *two)
{
    return one->length == two->length
           && memcmp(one->data, two->data, one->length) == 0;
}


static void
sluice_echo_value(sluice_echo_t *echo, const sluice_core_text_t *value)
{
    if (value->data) {
        sluice_request_echo_string(echo, value);

    } else {
        sluice_request_echo_put(echo, "true", 4);
    }
}
