
/*
 * What of a request plugins ask for (ngx_http_sluice_decide_request.h).
 * Nothing is copied that nginx has.
 */


#include "ngx_http_sluice_body.h"
#include "ngx_http_sluice_decide_request.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_tls.h"
#include "ngx_sluice_crypto.h"
#include "ngx_sluice_images.h"


static int ngx_http_sluice_decide_fact(void *data, int ask,
    sluice_core_text_t *value);
static int ngx_http_sluice_decide_fact_body(ngx_http_request_t *r,
    sluice_core_text_t *value);
static int ngx_http_sluice_decide_fact_name(ngx_http_request_t *r,
    sluice_core_text_t *value);
static int ngx_http_sluice_decide_given(const ngx_str_t *text,
    sluice_core_text_t *value);
static int ngx_http_sluice_decide_slot(const uint32_t *slot,
    sluice_core_text_t *value);
static int ngx_http_sluice_decide_of_consumer(
    const ngx_http_sluice_ctx_t *ctx, int kind, const uint32_t **slots);
static int ngx_http_sluice_decide_group(void *data, uint32_t group,
    sluice_core_text_t *name);
static int ngx_http_sluice_decide_label(void *data,
    const sluice_core_text_t *kind, uint32_t *next, sluice_core_text_t *name);
static int ngx_http_sluice_decide_header(void *data,
    const sluice_core_text_t *name, uint32_t index, sluice_core_text_t *value);
static ngx_table_elt_t *ngx_http_sluice_decide_line(ngx_list_t *headers,
    const sluice_core_text_t *name, uint32_t index);
static int ngx_http_sluice_decide_joined(void *data,
    const sluice_core_text_t *name, sluice_core_text_t *value);
static int ngx_http_sluice_decide_credential(void *data,
    const sluice_core_text_t *kind, const sluice_core_text_t *key,
    sluice_decision_who_t *who);
static int ngx_http_sluice_decide_consumer(void *data,
    const sluice_core_text_t *name, sluice_core_found_t *consumer);
static int ngx_http_sluice_decide_code(int rc);
static void *ngx_http_sluice_decide_memory(void *data, size_t size);


const sluice_decision_calls_t  ngx_http_sluice_decide_calls = {
    ngx_http_sluice_decide_fact,
    ngx_http_sluice_decide_group,
    ngx_http_sluice_decide_label,
    ngx_http_sluice_decide_header,
    ngx_http_sluice_decide_joined,
    ngx_http_sluice_decide_credential,
    ngx_http_sluice_decide_consumer,
    ngx_sluice_crypto_digest,
    ngx_http_sluice_decide_memory
};


static int
ngx_http_sluice_decide_fact(void *data, int ask, sluice_core_text_t *value)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    int                     rc;
    ngx_http_request_t     *r;
    ngx_http_sluice_ctx_t  *ctx;

    r = asked->request;
    ctx = asked->ctx;

    switch (ask) {

    case SLUICE_ASK_METHOD:
        return ngx_http_sluice_decide_given(&r->method_name, value);

    case SLUICE_ASK_SCHEME:
        value->data = r->connection->ssl ? "https" : "http";
        value->length = r->connection->ssl ? 5 : 4;
        return SLUICE_FACT_OK;

    case SLUICE_ASK_PROTOCOL:
        return ngx_http_sluice_decide_given(&r->http_protocol, value);

    case SLUICE_ASK_HOST:
        return ngx_http_sluice_decide_given(&r->headers_in.server, value);

    case SLUICE_ASK_PATH:
        return ngx_http_sluice_decide_given(&ctx->path, value);

    case SLUICE_ASK_QUERY:
        return ngx_http_sluice_decide_given(&r->args, value);

    case SLUICE_ASK_ADDRESS:
        return ngx_http_sluice_decide_given(&r->connection->addr_text, value);

    case SLUICE_ASK_SERVER_NAME:
        return ngx_http_sluice_decide_fact_name(r, value);

    case SLUICE_ASK_ROUTE:
        return ngx_http_sluice_decide_slot(&ctx->route, value);

    case SLUICE_ASK_SERVICE:
        return ngx_http_sluice_decide_slot(&ctx->service_slot, value);

    case SLUICE_ASK_CONSUMER:
        return ngx_http_sluice_decide_given(&ctx->consumer, value);

    case SLUICE_ASK_USERNAME:
        return ngx_http_sluice_decide_given(&ctx->username, value);

    case SLUICE_ASK_CREDENTIAL:
        rc = ngx_http_sluice_decide_given(&ctx->credential, value);
        return ctx->own_credential ? SLUICE_FACT_OK : rc;

    case SLUICE_ASK_TARGET:
        return ngx_http_sluice_decide_given(&r->unparsed_uri, value);

    case SLUICE_ASK_BODY:
        return ngx_http_sluice_decide_fact_body(r, value);

    case SLUICE_ASK_AUTHENTICATED_GROUPS:
        return ctx->said_groups || !ctx->in_lua
               ? ngx_http_sluice_decide_given(&ctx->groups, value)
               : SLUICE_FACT_LUA;

    default:
        return SLUICE_FACT_UNKNOWN;
    }
}


static int
ngx_http_sluice_decide_fact_body(ngx_http_request_t *r,
    sluice_core_text_t *value)
{
    ngx_str_t  body;

    switch (ngx_http_sluice_body(r, &body)) {

    case NGX_OK:
        return body.len <= NGX_MAX_UINT32_VALUE
               ? ngx_http_sluice_decide_given(&body, value)
               : SLUICE_FACT_LARGE;

    case NGX_AGAIN:
        return SLUICE_FACT_LATER;

    case NGX_DECLINED:
        return SLUICE_FACT_LARGE;

    default:
        return SLUICE_FACT_MEMORY;
    }
}


static int
ngx_http_sluice_decide_fact_name(ngx_http_request_t *r,
    sluice_core_text_t *value)
{
    ngx_str_t  name;

    ngx_http_sluice_tls_name(r->connection, &name);

    return ngx_http_sluice_decide_given(&name, value);
}


static int
ngx_http_sluice_decide_given(const ngx_str_t *text, sluice_core_text_t *value)
{
    value->data = (const char *) text->data;
    value->length = (uint32_t) text->len;

    return text->len ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


/* its generation stands behind it */

static int
ngx_http_sluice_decide_slot(const uint32_t *slot, sluice_core_text_t *value)
{
    if (*slot == SLUICE_CORE_NOBODY) {
        return SLUICE_FACT_NONE;
    }

    value->data = (const char *) slot;
    value->length = 2 * sizeof(uint32_t);

    return SLUICE_FACT_OK;
}


_Static_assert(offsetof(ngx_http_sluice_ctx_t, route_generation)
               == offsetof(ngx_http_sluice_ctx_t, route) + sizeof(uint32_t)
               && offsetof(ngx_http_sluice_ctx_t, service_generation)
                  == offsetof(ngx_http_sluice_ctx_t, service_slot)
                     + sizeof(uint32_t),
               "slots stand before their generations");


/*
 * How many of a kind the consumer has, as what is published now has it; -1: he
 * is gone, and the slot may be another's.
 */

static int
ngx_http_sluice_decide_of_consumer(const ngx_http_sluice_ctx_t *ctx, int kind,
    const uint32_t **slots)
{
    sluice_core_found_t        found;
    sluice_core_entity_t       head;
    const sluice_core_view_t  *view;

    view = sluice_images_view();

    if (ctx->consumer_slot == SLUICE_CORE_NOBODY) {
        return 0;
    }

    found = sluice_core_by_slot(view, SLUICE_CORE_CONSUMER,
                                ctx->consumer_slot);

    if (found.record == NULL) {
        return -1;
    }

    sluice_core_head(&found, &head);

    if (head.generation != ctx->consumer_generation) {
        return -1;
    }

    return (int) sluice_core_children(view, kind, SLUICE_CORE_CONSUMER,
                                ctx->consumer_slot, slots);
}


static int
ngx_http_sluice_decide_group(void *data, uint32_t group,
    sluice_core_text_t *name)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    int                        n;
    uint32_t                   slot;
    const uint32_t            *slots;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    view = sluice_images_view();

    if (view == NULL) {
        return SLUICE_FACT_UNREADABLE;
    }

    n = ngx_http_sluice_decide_of_consumer(asked->ctx, SLUICE_CORE_MEMBERSHIP,
                                           &slots);

    if (n < 0 || group >= (uint32_t) n) {
        return SLUICE_FACT_NONE;
    }

    found = sluice_core_by_slot(view, SLUICE_CORE_MEMBERSHIP, slots[group]);

    if (found.record) {
        slot = sluice_core_number(&found, SLUICE_CORE_MEMBERSHIP_GROUP);
        found = sluice_core_by_slot(view, SLUICE_CORE_GROUP, slot);
    }

    if (found.record == NULL) {
        return SLUICE_FACT_NONE;
    }

    *name = sluice_core_text(&found, SLUICE_CORE_GROUP_NAME);

    return SLUICE_FACT_OK;
}


static int
ngx_http_sluice_decide_label(void *data, const sluice_core_text_t *kind,
    uint32_t *next, sluice_core_text_t *name)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    int                        n;
    const uint32_t            *slots;
    sluice_core_text_t         text;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    view = sluice_images_view();

    if (view == NULL) {
        return SLUICE_FACT_UNREADABLE;
    }

    n = ngx_http_sluice_decide_of_consumer(asked->ctx, SLUICE_CORE_LABEL,
                                           &slots);

    /* without him nobody knows what he was denied */

    if (n < 0) {
        return SLUICE_FACT_UNREADABLE;
    }

    while (*next < (uint32_t) n) {
        found = sluice_core_by_slot(view, SLUICE_CORE_LABEL,
                                    slots[(*next)++]);

        if (found.record == NULL) {
            continue;
        }

        text = sluice_core_text(&found, SLUICE_CORE_LABEL_KIND);

        if (text.length == kind->length
            && ngx_memcmp(text.data, kind->data, kind->length) == 0)
        {
            *name = sluice_core_text(&found, SLUICE_CORE_LABEL_NAME);
            return SLUICE_FACT_OK;
        }
    }

    return SLUICE_FACT_NONE;
}


static int
ngx_http_sluice_decide_header(void *data, const sluice_core_text_t *name,
    uint32_t index, sluice_core_text_t *value)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    ngx_uint_t        count;
    ngx_list_t       *headers;
    ngx_table_elt_t  *h;

    headers = &asked->request->headers_in.headers;

    h = ngx_http_sluice_header_find(headers, (u_char *) name->data,
                                    name->length, &count);

    if (index && index < count) {
        h = ngx_http_sluice_decide_line(headers, name, index);
    }

    if (index < count) {
        value->data = (const char *) h->value.data;
        value->length = (uint32_t) h->value.len;
    }

    return (int) count;
}


static ngx_table_elt_t *
ngx_http_sluice_decide_line(ngx_list_t *headers,
    const sluice_core_text_t *name, uint32_t index)
{
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    ngx_http_sluice_header_each(h, walk, headers) {

        if (ngx_http_sluice_header_named(h, name->data, name->length)
            && index-- == 0)
        {
            return h;
        }
    }

    return NULL;
}


/* by nginx's variable, which has them as an access log would */

static int
ngx_http_sluice_decide_joined(void *data, const sluice_core_text_t *name,
    sluice_core_text_t *value)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    u_char                     *p;
    ngx_str_t                   variable;
    ngx_http_variable_value_t  *vv;

    variable.len = sizeof("http_") - 1 + name->length;

    variable.data = ngx_pnalloc(asked->request->pool, variable.len);
    if (variable.data == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    p = ngx_cpymem(variable.data, "http_", sizeof("http_") - 1);
    ngx_memcpy(p, name->data, name->length);

    vv = ngx_http_get_variable(asked->request, &variable,
                               ngx_hash_key(variable.data, variable.len));

    if (vv == NULL || vv->not_found) {
        return SLUICE_FACT_NONE;
    }

    value->data = (const char *) vv->data;
    value->length = vv->len;

    return SLUICE_FACT_OK;
}


static int
ngx_http_sluice_decide_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who)
{
    int       rc;
    uint32_t  slot;

    rc = sluice_images_credential((const u_char *) kind->data, kind->length,
                                  (const u_char *) key->data, key->length,
                                  &who->credential);

    if (rc == SLUICE_CORE_OK) {
        slot = sluice_core_number(&who->credential,
                                  SLUICE_CORE_CREDENTIAL_CONSUMER);
        rc = sluice_images_by_slot(SLUICE_CORE_CONSUMER, slot, &who->consumer);
    }

    return ngx_http_sluice_decide_code(rc);
}


/* by its id or by its name, in what is published now */

static int
ngx_http_sluice_decide_consumer(void *data, const sluice_core_text_t *name,
    sluice_core_found_t *consumer)
{
    int        rc;
    ngx_str_t  id;

    rc = sluice_images_refresh();

    id.data = (u_char *) name->data;
    id.len = name->length;

    if (rc == SLUICE_CORE_OK
        && ngx_http_sluice_identity_find(&id, consumer) != NGX_OK)
    {
        rc = sluice_images_by_key(SLUICE_CORE_CONSUMER,
                                  (const u_char *) name->data, name->length,
                                  consumer);
    }

    return ngx_http_sluice_decide_code(rc);
}


/* who cannot read the configuration does not know what was revoked */

static int
ngx_http_sluice_decide_code(int rc)
{
    switch (rc) {

    case SLUICE_CORE_OK:
        return SLUICE_FACT_OK;

    case SLUICE_CORE_NONE:
        return SLUICE_FACT_NONE;

    default:
        return SLUICE_FACT_UNREADABLE;
    }
}


static void *
ngx_http_sluice_decide_memory(void *data, size_t size)
{
    ngx_http_sluice_decide_request_t  *asked = data;

    return ngx_palloc(asked->request->pool, size);
}
