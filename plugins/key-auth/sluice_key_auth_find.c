
/*
 * The key of a request: where it is, and the request without it
 * (sluice_key_auth.h).
 */


#include "sluice_key_auth.h"
#include "fields.h"


/* A query, or a body, with what stands under each of the names. */

typedef struct {
    sluice_fields_t        fields;
    sluice_fields_name_t  *names;       /* NULL: there are no fields */
    int                    is_cut;
} sluice_key_auth_place_t;


typedef struct {
    const sluice_key_auth_t          *conf;
    const sluice_decision_request_t  *request;
    sluice_decision_result_t         *result;
    sluice_key_auth_place_t           query;
    sluice_key_auth_place_t           body;
} sluice_key_auth_search_t;


/* What stands under a name. */

typedef struct {
    sluice_core_text_t  value;
    uint32_t            count;
    uint32_t            is_text;
} sluice_key_auth_found_t;


static void sluice_key_auth_begin(sluice_key_auth_search_t *search,
    const sluice_key_auth_t *conf, const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_key_auth_look(sluice_key_auth_search_t *search, uint32_t i,
    sluice_key_auth_found_t *found);
static int sluice_key_auth_in_headers(sluice_key_auth_search_t *search,
    const sluice_key_auth_name_t *name, sluice_key_auth_found_t *found);
static int sluice_key_auth_in_fields(sluice_key_auth_search_t *search,
    const sluice_key_auth_place_t *place, uint32_t i,
    sluice_key_auth_found_t *found);
static int sluice_key_auth_cut_query(sluice_key_auth_search_t *search);
static int sluice_key_auth_cut_body(sluice_key_auth_search_t *search);
static int sluice_key_auth_read_body(sluice_key_auth_search_t *search,
    int *kind, sluice_core_text_t *type, sluice_core_text_t *body);
static int sluice_key_auth_cut(sluice_key_auth_search_t *search,
    sluice_key_auth_place_t *place, int kind, const sluice_core_text_t *type,
    const sluice_core_text_t *text);
static int sluice_key_auth_hide_headers(sluice_key_auth_search_t *search);
static int sluice_key_auth_without(sluice_key_auth_search_t *search,
    const sluice_key_auth_place_t *place, sluice_core_text_t *rest);


/* the first name that has a text counts, even if that is empty */

int
sluice_key_auth_find(const sluice_key_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *key,
    const char **words)
{
    int                       rc;
    uint32_t                  i;
    sluice_key_auth_found_t   found;
    sluice_key_auth_search_t  search;

    sluice_key_auth_begin(&search, conf, request, result);

    for (i = 0; i < conf->key_names.count; i++) {

        rc = sluice_key_auth_look(&search, i, &found);
        if (rc != SLUICE_FACT_OK) {
            return rc;
        }

        if (found.count > 1) {
            *words = "Duplicate API key found";
            return SLUICE_FACT_NONE;
        }

        if (!found.is_text) {
            continue;
        }

        if (found.value.length) {
            *key = found.value;
            return SLUICE_FACT_OK;
        }

        break;
    }

    *words = "No API key found in request";

    return SLUICE_FACT_NONE;
}


static void
sluice_key_auth_begin(sluice_key_auth_search_t *search,
    const sluice_key_auth_t *conf, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    search->conf = conf;
    search->request = request;
    search->result = result;
    search->query.is_cut = 0;
    search->body.is_cut = 0;
}


/* headers, then the query, then the body: the first place that has the name */

static int
sluice_key_auth_look(sluice_key_auth_search_t *search, uint32_t i,
    sluice_key_auth_found_t *found)
{
    int                       rc;
    const sluice_key_auth_t  *conf;

    conf = search->conf;
    found->count = 0;
    found->is_text = 0;
    rc = SLUICE_FACT_OK;

    if (conf->flags & SLUICE_KEY_AUTH_HEADER) {
        rc = sluice_key_auth_in_headers(search, &conf->names[i], found);
    }

    if (rc == SLUICE_FACT_OK && found->count == 0
        && (conf->flags & SLUICE_KEY_AUTH_QUERY))
    {
        rc = sluice_key_auth_cut_query(search);

        if (rc == SLUICE_FACT_OK) {
            rc = sluice_key_auth_in_fields(search, &search->query, i, found);
        }
    }

    if (rc == SLUICE_FACT_OK && found->count == 0
        && (conf->flags & SLUICE_KEY_AUTH_BODY))
    {
        rc = sluice_key_auth_cut_body(search);

        if (rc == SLUICE_FACT_OK) {
            rc = sluice_key_auth_in_fields(search, &search->body, i, found);
        }
    }

    return rc;
}


/* clients that cannot send an underscore in a header send a dash */

static int
sluice_key_auth_in_headers(sluice_key_auth_search_t *search,
    const sluice_key_auth_name_t *name, sluice_key_auth_found_t *found)
{
    int  lines;

    lines = sluice_decision_header(search->request, &name->lowcase, 0,
                                   &found->value);

    if (lines == 0 && name->dashed.length) {
        lines = sluice_decision_header(search->request, &name->dashed, 0,
                                       &found->value);
    }

    if (lines == SLUICE_DECISION_NOT_KNOWN) {
        search->result->unknown = "the headers";
        return SLUICE_FACT_UNKNOWN;
    }

    found->count = (uint32_t) lines;
    found->is_text = lines != 0;

    return SLUICE_FACT_OK;
}


static int
sluice_key_auth_in_fields(sluice_key_auth_search_t *search,
    const sluice_key_auth_place_t *place, uint32_t i,
    sluice_key_auth_found_t *found)
{
    char                  *value;
    sluice_fields_name_t  *name;

    if (place->names == NULL) {
        return SLUICE_FACT_OK;
    }

    name = &place->names[i];
    found->count = name->count;
    found->is_text = name->is_text;

    if (!name->is_text) {
        return SLUICE_FACT_OK;
    }

    value = sluice_decision_allocate(search->request,
                                     name->value.length
                                     ? name->value.length : 1);
    if (value == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    found->value.data = value;
    found->value.length = (uint32_t) sluice_fields_decode(&place->fields,
                                                          &name->value, value);

    return SLUICE_FACT_OK;
}


static int
sluice_key_auth_cut_query(sluice_key_auth_search_t *search)
{
    int                 rc;
    sluice_core_text_t  query;

    if (search->query.is_cut) {
        return SLUICE_FACT_OK;
    }

    query.length = 0;

    rc = sluice_decision_fact(search->request, SLUICE_ASK_QUERY, &query);

    if (rc == SLUICE_FACT_UNKNOWN) {
        search->result->unknown = "the query";
        return rc;
    }

    return sluice_key_auth_cut(search, &search->query, SLUICE_FIELDS_FORM,
                               NULL, &query);
}


static int
sluice_key_auth_cut_body(sluice_key_auth_search_t *search)
{
    int                 rc, kind;
    sluice_core_text_t  type, body;

    if (search->body.is_cut) {
        return SLUICE_FACT_OK;
    }

    rc = sluice_key_auth_read_body(search, &kind, &type, &body);

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    return sluice_key_auth_cut(search, &search->body, kind, &type, &body);
}


/* one that is too large has no fields */

static int
sluice_key_auth_read_body(sluice_key_auth_search_t *search, int *kind,
    sluice_core_text_t *type, sluice_core_text_t *body)
{
    int                              rc, lines;
    static const sluice_core_text_t  name = { "content-type", 12 };
    static const sluice_core_text_t  large = {
        "no key is read from a body above client_body_buffer_size", 56
    };

    body->data = NULL;
    body->length = 0;
    *kind = SLUICE_FIELDS_NONE;

    lines = sluice_decision_header(search->request, &name, 0, type);

    if (lines == SLUICE_DECISION_NOT_KNOWN) {
        search->result->unknown = "the headers";
        return SLUICE_FACT_UNKNOWN;
    }

    if (lines) {
        *kind = sluice_fields_kind(type);
    }

    if (*kind == SLUICE_FIELDS_NONE) {
        return SLUICE_FACT_OK;
    }

    rc = sluice_decision_fact(search->request, SLUICE_ASK_BODY, body);

    switch (rc) {

    case SLUICE_FACT_LARGE:
        search->result->note = large;
        body->length = 0;
        return SLUICE_FACT_OK;

    case SLUICE_FACT_NONE:
        body->length = 0;
        return SLUICE_FACT_OK;

    default:
        search->result->unknown = "the body";
        return rc;
    }
}


/* once, and for all names, not for each */

static int
sluice_key_auth_cut(sluice_key_auth_search_t *search,
    sluice_key_auth_place_t *place, int kind, const sluice_core_text_t *type,
    const sluice_core_text_t *text)
{
    size_t                    size;
    uint32_t                  i;
    const sluice_key_auth_t  *conf;

    place->is_cut = 1;
    place->names = NULL;

    if (text->length == 0 || text->length > SLUICE_FIELDS_MAX
        || sluice_fields_open(&place->fields, kind, type, text)
           != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_OK;
    }

    conf = search->conf;

    size = (conf->key_names.count + (size_t) 1) * sizeof(sluice_fields_name_t);

    place->names = sluice_decision_allocate(search->request, size);
    if (place->names == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    for (i = 0; i < conf->key_names.count; i++) {
        place->names[i].name = conf->names[i].plain;
    }

    sluice_fields_find(&place->fields, place->names, conf->key_names.count);

    return SLUICE_FACT_OK;
}


/* what is not known stays as it is: whether the request passes is known */

int
sluice_key_auth_hide(const sluice_key_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    int                       rc;
    sluice_key_auth_search_t  search;

    if (!(conf->flags & SLUICE_KEY_AUTH_HIDE)) {
        return SLUICE_FACT_OK;
    }

    sluice_key_auth_begin(&search, conf, request, result);
    search.query.names = NULL;
    search.body.names = NULL;

    rc = sluice_key_auth_cut_query(&search);

    if ((rc == SLUICE_FACT_OK || rc == SLUICE_FACT_UNKNOWN)
        && (conf->flags & SLUICE_KEY_AUTH_BODY))
    {
        rc = sluice_key_auth_cut_body(&search);
    }

    if (rc == SLUICE_FACT_OK || rc == SLUICE_FACT_UNKNOWN) {
        rc = sluice_key_auth_hide_headers(&search);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_key_auth_without(&search, &search.query, &result->query);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_key_auth_without(&search, &search.body, &result->body);
    }

    return rc;
}


/* As an upstream may read it that makes variables of headers, too. */

static int
sluice_key_auth_hide_headers(sluice_key_auth_search_t *search)
{
    uint32_t                  i;
    const sluice_key_auth_t  *conf;

    conf = search->conf;

    for (i = 0; i < conf->key_names.count; i++) {

        if (sluice_decision_edit(search->request, search->result,
                                 SLUICE_DECISION_UP_REMOVE_ALIKE,
                                 &conf->names[i].header, NULL)
            != SLUICE_FACT_OK)
        {
            return SLUICE_FACT_MEMORY;
        }
    }

    return SLUICE_FACT_OK;
}


/* The text without all names; as it was where none is there. */

static int
sluice_key_auth_without(sluice_key_auth_search_t *search,
    const sluice_key_auth_place_t *place, sluice_core_text_t *rest)
{
    char                *buffer;
    sluice_fields_t      fields;
    sluice_core_text_t   text;

    if (place->names == NULL) {
        return SLUICE_FACT_OK;
    }

    fields = place->fields;

    /* an upstream may find a copy where we look for no key */

    if (fields.kind == SLUICE_FIELDS_FORM) {
        fields.kind = SLUICE_FIELDS_LOOSE;
    }

    buffer = sluice_decision_allocate(search->request,
                                      (size_t) (fields.end - fields.text));
    if (buffer == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    if (sluice_fields_without(&fields, place->names,
                              search->conf->key_names.count, buffer, &text)
        == SLUICE_CORE_OK)
    {
        *rest = text;
    }

    return SLUICE_FACT_OK;
}
