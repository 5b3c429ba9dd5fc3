
/*
 * What the plugin correlation-id decides: which id a request has, and who is
 * told (docs/plugins/correlation-id.md).
 */


#include "sluice_correlation_id.h"


#define SLUICE_CORRELATION_ID_KEEP  -1


static int sluice_correlation_id_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_correlation_id_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_correlation_id_head(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_correlation_id_find(const sluice_correlation_id_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *id,
    int *verb);
static sluice_header_t *sluice_correlation_id_header(
    const sluice_correlation_id_t *conf,
    const sluice_decision_request_t *request);


static const sluice_packed_field_t  sluice_correlation_id_fields[] = {
    sluice_packed_field(TEXT, sluice_correlation_id_t, name),
    sluice_packed_field(NUMBER, sluice_correlation_id_t, generator),
    sluice_packed_field(NUMBER, sluice_correlation_id_t, echoes),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_correlation_id = {
    "correlation-id",
    sizeof(sluice_correlation_id_t),
    sluice_correlation_id_fields,
    sluice_correlation_id_ready,
    sluice_correlation_id_decide,
    sluice_correlation_id_head
};


static const sluice_core_text_t  sluice_correlation_id_logged =
    { "correlation_id", 14 };


static int
sluice_correlation_id_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_correlation_id_t  *conf = data;

    char             c, *p;
    uint32_t         i, length;
    sluice_header_t  header;

    (void) source;

    if (conf->name.data == NULL
        || conf->name.length == 0
        || conf->generator > SLUICE_CORRELATION_ID_TRACKER)
    {
        return SLUICE_CORE_BAD;
    }

    length = conf->name.length;

    p = memory->allocate(memory->data, 2 * (size_t) length);
    if (p == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    memcpy(p, conf->name.data, length);

    for (i = 0; i < length; i++) {
        c = p[i];
        p[length + i] = c >= 'A' && c <= 'Z' ? (char) (c | 0x20) : c;
    }

    conf->name.data = p;
    conf->lowcase.data = p + length;
    conf->lowcase.length = length;

    header.lowcase = (unsigned char *) p + length;
    header.length = length;
    sluice_header_name_hash(&header);
    conf->hash = header.hash;

    return SLUICE_CORE_OK;
}


static int
sluice_correlation_id_decide(void *data,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    sluice_correlation_id_t  *conf = data;

    int                  rc, verb;
    sluice_header_t     *header;
    sluice_core_text_t   id;

    rc = sluice_correlation_id_find(conf, request, &id, &verb);

    if (rc != SLUICE_FACT_OK) {
        return sluice_decision_without(result, rc, "the id");
    }

    sluice_decision_log(result, &sluice_correlation_id_logged, &id);

    if (verb == SLUICE_CORRELATION_ID_KEEP) {
        return SLUICE_DECISION_PASS;
    }

    header = sluice_correlation_id_header(conf, request);

    return header
           && sluice_decision_edit(request, result, verb, header, &id)
              == SLUICE_FACT_OK
           ? SLUICE_DECISION_PASS : SLUICE_DECISION_MEMORY;
}


/* Of a request that never came to decide(), a new one. */

static int
sluice_correlation_id_head(void *data,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    sluice_correlation_id_t  *conf = data;

    int                  rc, verb;
    sluice_header_t     *header;
    sluice_core_text_t   id;

    if (!conf->echoes) {
        return SLUICE_DECISION_PASS;
    }

    rc = sluice_correlation_id_find(conf, request, &id, &verb);

    if (rc != SLUICE_FACT_OK) {
        return sluice_decision_without(result, rc, "the id");
    }

    header = sluice_correlation_id_header(conf, request);

    return header
           && sluice_decision_set(request, result, header, &id)
              == SLUICE_FACT_OK
           ? SLUICE_DECISION_PASS : SLUICE_DECISION_MEMORY;
}


/* That of the request, or else a new one; verb: how it becomes that. */

static int
sluice_correlation_id_find(const sluice_correlation_id_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *id,
    int *verb)
{
    int                           n;
    sluice_correlation_id_own_t  *own;

    *verb = SLUICE_CORRELATION_ID_KEEP;

    n = sluice_decision_header(request, &conf->lowcase, 0, id);

    if (n < 0) {
        return SLUICE_FACT_UNKNOWN;
    }

    if (n > 0 && id->length) {
        return SLUICE_FACT_OK;
    }

    *verb = n ? SLUICE_DECISION_UP_SET : SLUICE_DECISION_UP_ADD;
    own = request->own;

    return own ? own->make(own, conf->generator, id) : SLUICE_FACT_UNKNOWN;
}


/* In the request's memory: logs read it when the configuration is gone. */

static sluice_header_t *
sluice_correlation_id_header(const sluice_correlation_id_t *conf,
    const sluice_decision_request_t *request)
{
    char             *p;
    size_t            length;
    sluice_header_t  *header;

    length = conf->name.length;

    header = sluice_decision_allocate(request, sizeof(sluice_header_t)
                                               + 2 * length);
    if (header == NULL) {
        return NULL;
    }

    p = (char *) &header[1];

    memcpy(p, conf->name.data, 2 * length);

    header->name = (unsigned char *) p;
    header->lowcase = (unsigned char *) p + length;
    header->length = length;
    header->hash = conf->hash;
    header->own = 0;

    return header;
}
