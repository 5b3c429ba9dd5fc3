
/*
 * Requests that are given as texts (judge.h).
 */


#include "judge.h"

#include <stdlib.h>


/* Memory that goes at once: each piece has one of these before it. */

typedef struct sluice_judge_piece_s  sluice_judge_piece_t;

struct sluice_judge_piece_s {
    sluice_judge_piece_t  *next;
    uint64_t               zero;              /* what follows is aligned */
};


typedef struct {
    const sluice_judge_request_t  *request;
    sluice_judge_piece_t          *pieces;
} sluice_judge_run_t;


struct sluice_judge_s {
    const sluice_decision_plugin_t  *plugin;
    void                            *conf;
    sluice_judge_piece_t            *pieces;  /* of the configuration */
    sluice_judge_run_t               run;
};


static void sluice_judge_begin(sluice_judge_t *judge,
    const sluice_judge_request_t *request, sluice_decision_request_t *asked,
    sluice_decision_result_t *result);
static void *sluice_judge_allocate(sluice_judge_piece_t **pieces, size_t size);
static void *sluice_judge_allocate_conf(void *data, size_t size);
static void *sluice_judge_allocate_run(void *data, size_t size);
static void sluice_judge_free(sluice_judge_piece_t **pieces);
static int sluice_judge_fact(void *data, int ask, sluice_core_text_t *value);
static int sluice_judge_group(void *data, uint32_t group,
    sluice_core_text_t *name);
static int sluice_judge_label(void *data, const sluice_core_text_t *kind,
    uint32_t *next, sluice_core_text_t *name);
static int sluice_judge_header(void *data, const sluice_core_text_t *name,
    uint32_t index, sluice_core_text_t *value);
static int sluice_judge_joined(void *data, const sluice_core_text_t *name,
    sluice_core_text_t *value);
static int sluice_judge_is(const sluice_core_text_t *header,
    const sluice_core_text_t *name, int is_joined);
static int sluice_judge_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who);
static int sluice_judge_consumer(void *data, const sluice_core_text_t *name,
    sluice_core_found_t *consumer);
static int sluice_judge_digest(void *data, const char *name,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out);


static const sluice_decision_calls_t  sluice_judge_calls = {
    sluice_judge_fact,
    sluice_judge_group,
    sluice_judge_label,
    sluice_judge_header,
    sluice_judge_joined,
    sluice_judge_credential,
    sluice_judge_consumer,
    sluice_judge_digest,
    sluice_judge_allocate_run
};


sluice_judge_t *
sluice_judge_create(const char *name, size_t length,
    const sluice_core_text_t *packed, int *rc)
{
    size_t                     i;
    sluice_judge_t            *judge;
    sluice_packed_memory_t     memory;
    sluice_decision_source_t   source;

    for (i = 0; sluice_decisions[i]; i++) {

        if (strlen(sluice_decisions[i]->name) == length
            && memcmp(sluice_decisions[i]->name, name, length) == 0)
        {
            break;
        }
    }

    if (sluice_decisions[i] == NULL) {
        *rc = SLUICE_CORE_NONE;
        return NULL;
    }

    judge = calloc(1, sizeof(sluice_judge_t));
    if (judge == NULL) {
        *rc = SLUICE_CORE_MEMORY;
        return NULL;
    }

    judge->plugin = sluice_decisions[i];
    judge->conf = sluice_judge_allocate(&judge->pieces, judge->plugin->size);

    memory.allocate = sluice_judge_allocate_conf;
    memory.data = judge;

    source.packed = *packed;
    source.slot = 0;
    source.generation = 0;

    *rc = judge->conf ? sluice_decision_compile(judge->plugin, &source,
                                                &memory, judge->conf)
                      : SLUICE_CORE_MEMORY;

    if (*rc != SLUICE_CORE_OK) {
        sluice_judge_destroy(judge);
        return NULL;
    }

    return judge;
}


void
sluice_judge_destroy(sluice_judge_t *judge)
{
    sluice_judge_free(&judge->pieces);
    sluice_judge_free(&judge->run.pieces);
    free(judge);
}


int
sluice_judge_run(sluice_judge_t *judge, const sluice_judge_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_decision_request_t  asked;

    sluice_judge_begin(judge, request, &asked, result);

    return judge->plugin->decide
           ? judge->plugin->decide(judge->conf, &asked, result)
           : SLUICE_DECISION_PASS;
}


int
sluice_judge_head(sluice_judge_t *judge, const sluice_judge_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_decision_request_t  asked;

    sluice_judge_begin(judge, request, &asked, result);

    return judge->plugin->head
           ? judge->plugin->head(judge->conf, &asked, result)
           : SLUICE_DECISION_PASS;
}


static void
sluice_judge_begin(sluice_judge_t *judge,
    const sluice_judge_request_t *request, sluice_decision_request_t *asked,
    sluice_decision_result_t *result)
{
    sluice_judge_free(&judge->run.pieces);
    judge->run.request = request;

    asked->calls = &sluice_judge_calls;
    asked->data = &judge->run;
    asked->own = request->own;
    asked->now = request->now;

    sluice_decision_begin(result);
}


static void *
sluice_judge_allocate(sluice_judge_piece_t **pieces, size_t size)
{
    sluice_judge_piece_t  *piece;

    piece = malloc(sizeof(sluice_judge_piece_t) + size);
    if (piece == NULL) {
        return NULL;
    }

    piece->next = *pieces;
    *pieces = piece;

    return piece + 1;
}


static void *
sluice_judge_allocate_conf(void *data, size_t size)
{
    sluice_judge_t  *judge = data;

    return sluice_judge_allocate(&judge->pieces, size);
}


static void *
sluice_judge_allocate_run(void *data, size_t size)
{
    sluice_judge_run_t  *run = data;

    return sluice_judge_allocate(&run->pieces, size);
}


static void
sluice_judge_free(sluice_judge_piece_t **pieces)
{
    sluice_judge_piece_t  *next;

    while (*pieces) {
        next = (*pieces)->next;
        free(*pieces);
        *pieces = next;
    }
}


static int
sluice_judge_fact(void *data, int ask, sluice_core_text_t *value)
{
    sluice_judge_run_t  *run = data;

    if (run->request->known[ask] == SLUICE_FACT_OK) {
        *value = run->request->facts[ask];
        return value->length ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
    }

    return run->request->known[ask];
}


static int
sluice_judge_group(void *data, uint32_t group, sluice_core_text_t *name)
{
    sluice_judge_run_t  *run = data;

    if (run->request->groups_known != SLUICE_FACT_OK) {
        return run->request->groups_known;
    }

    if (group >= run->request->groups_count) {
        return SLUICE_FACT_NONE;
    }

    *name = run->request->groups[group];

    return SLUICE_FACT_OK;
}


static int
sluice_judge_label(void *data, const sluice_core_text_t *kind, uint32_t *next,
    sluice_core_text_t *name)
{
    sluice_judge_run_t  *run = data;

    const sluice_core_text_t  *label;

    if (run->request->labels_known != SLUICE_FACT_OK) {
        return run->request->labels_known;
    }

    while (*next < run->request->labels_count) {
        label = &run->request->labels[2 * (*next)++];

        if (label->length == kind->length
            && memcmp(label->data, kind->data, kind->length) == 0)
        {
            *name = label[1];
            return SLUICE_FACT_OK;
        }
    }

    return SLUICE_FACT_NONE;
}


static int
sluice_judge_header(void *data, const sluice_core_text_t *name,
    uint32_t index, sluice_core_text_t *value)
{
    sluice_judge_run_t  *run = data;

    uint32_t                   i, count;
    const sluice_core_text_t  *headers;

    if (run->request->headers_known != SLUICE_FACT_OK) {
        return SLUICE_DECISION_NOT_KNOWN;
    }

    headers = run->request->headers;
    count = 0;

    for (i = 0; i < run->request->headers_count; i++) {

        if (sluice_judge_is(&headers[2 * i], name, 0) && count++ == index) {
            *value = headers[2 * i + 1];
        }
    }

    return (int) count;
}


/* As nginx's variables of headers do, of 1.23 and later. */

static int
sluice_judge_joined(void *data, const sluice_core_text_t *name,
    sluice_core_text_t *value)
{
    sluice_judge_run_t  *run = data;

    int                        is_first;
    char                      *p, *start;
    size_t                     size;
    uint32_t                   i;
    const char                *between;
    const sluice_core_text_t  *headers;

    if (run->request->headers_known != SLUICE_FACT_OK) {
        return SLUICE_FACT_UNKNOWN;
    }

    headers = run->request->headers;
    size = 0;

    for (i = 0; i < run->request->headers_count; i++) {

        if (sluice_judge_is(&headers[2 * i], name, 1)) {
            size += headers[2 * i + 1].length + (size_t) 2;
        }
    }

    if (size == 0) {
        return SLUICE_FACT_NONE;
    }

    start = p = size > UINT32_MAX ? NULL : sluice_judge_allocate_run(run,
                                                                     size);
    if (start == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    between = name->length == 6 && memcmp(name->data, "cookie", 6) == 0
              ? "; " : ", ";
    is_first = 1;

    for (i = 0; i < run->request->headers_count; i++) {

        if (!sluice_judge_is(&headers[2 * i], name, 1)) {
            continue;
        }

        if (!is_first) {
            memcpy(p, between, 2);
            p += 2;
        }

        is_first = 0;

        if (headers[2 * i + 1].length) {
            memcpy(p, headers[2 * i + 1].data, headers[2 * i + 1].length);
            p += headers[2 * i + 1].length;
        }
    }

    value->data = start;
    value->length = (uint32_t) (p - start);

    return SLUICE_FACT_OK;
}


static int
sluice_judge_is(const sluice_core_text_t *header,
    const sluice_core_text_t *name, int is_joined)
{
    char      c;
    uint32_t  i;

    if (header->length != name->length) {
        return 0;
    }

    for (i = 0; i < name->length; i++) {
        c = header->data[i];

        if (c >= 'A' && c <= 'Z') {
            c |= 0x20;

        } else if (is_joined && c == '-') {
            c = '_';
        }

        if (c != name->data[i]) {
            return 0;
        }
    }

    return 1;
}


static int
sluice_judge_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who)
{
    sluice_judge_run_t  *run = data;

    return run->request->credential
           ? run->request->credential(run->request->data, kind, key, who)
           : SLUICE_FACT_UNKNOWN;
}


static int
sluice_judge_consumer(void *data, const sluice_core_text_t *name,
    sluice_core_found_t *consumer)
{
    sluice_judge_run_t  *run = data;

    return run->request->consumer
           ? run->request->consumer(run->request->data, name, consumer)
           : SLUICE_FACT_UNKNOWN;
}


static int
sluice_judge_digest(void *data, const char *name,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out)
{
    sluice_judge_run_t  *run = data;

    return run->request->digest
           ? run->request->digest(run->request->data, name, key, texts, count,
                                  out)
           : SLUICE_FACT_UNKNOWN;
}
