
/*
 * What plugins decide, in nginx (ngx_http_sluice_decide.h): what is done of
 * it.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_body.h"
#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_decide_request.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_identity.h"


typedef int (*ngx_http_sluice_decide_pt)(void *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


static void *ngx_http_sluice_decide_allocate(void *pool, size_t size);
static ngx_int_t ngx_http_sluice_decide_bound(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_decision_bound_t *bound);
static int ngx_http_sluice_decide_ask(const sluice_decision_plugin_t *plugin,
    ngx_http_sluice_decide_pt decide, ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf, void *own,
    sluice_decision_result_t *result);
static void ngx_http_sluice_decide_note(ngx_http_request_t *r,
    const sluice_decision_plugin_t *plugin,
    const sluice_decision_result_t *result);
static ngx_int_t ngx_http_sluice_decide_apply(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_decision_result_t *result);
static void ngx_http_sluice_decide_sample(ngx_http_sluice_ctx_t *ctx,
    const sluice_decision_sample_t *sample);
static ngx_int_t ngx_http_sluice_decide_edit(ngx_http_request_t *r,
    const sluice_decision_edit_t *edit);
static ngx_uint_t ngx_http_sluice_decide_is_alike(ngx_table_elt_t *h,
    void *data);
static ngx_int_t ngx_http_sluice_decide_challenge(ngx_http_request_t *r,
    const sluice_decision_edit_t *edit);


void *
ngx_http_sluice_decide_compile(const sluice_decision_plugin_t *plugin,
    size_t size, ngx_pool_t *pool, const ngx_http_sluice_binding_t *binding,
    ngx_str_t *words)
{
    int                        rc;
    void                      *conf;
    sluice_packed_memory_t     memory;
    sluice_decision_source_t   source;

    conf = ngx_pcalloc(pool, size);
    if (conf == NULL) {
        return NULL;
    }

    memory.allocate = ngx_http_sluice_decide_allocate;
    memory.data = pool;

    source.packed.data = (const char *) binding->packed.data;
    source.packed.length = (uint32_t) binding->packed.len;
    source.slot = binding->slot;
    source.generation = binding->generation;

    rc = sluice_decision_compile(plugin, &source, &memory, conf);

    if (rc == SLUICE_CORE_BAD) {
        ngx_str_set(words, "the packed configuration is damaged");
    }

    return rc == SLUICE_CORE_OK ? conf : NULL;
}


static void *
ngx_http_sluice_decide_allocate(void *pool, size_t size)
{
    return ngx_palloc(pool, size);
}


ngx_int_t
ngx_http_sluice_decide(const sluice_decision_plugin_t *plugin,
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx, void *conf, void *own)
{
    int                        decision;
    ngx_str_t                  message, type;
    sluice_decision_result_t   result;

    decision = ngx_http_sluice_decide_ask(plugin, plugin->decide, r, ctx, conf,
                                          own, &result);

    if (decision == SLUICE_DECISION_BODY) {
        return NGX_AGAIN;
    }

    if (decision == SLUICE_DECISION_LUA) {
        return NGX_BUSY;
    }

    if ((decision != SLUICE_DECISION_PASS
         && decision != SLUICE_DECISION_RESPOND)
        || ngx_http_sluice_decide_apply(r, ctx, &result) != NGX_OK)
    {
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    if (decision == SLUICE_DECISION_PASS) {
        return result.bound.message.data
               ? ngx_http_sluice_decide_bound(r, ctx, &result.bound) : NGX_OK;
    }

    message.data = (u_char *) result.message.data;
    message.len = result.message.length;

    if (result.type.data == NULL) {
        return ngx_http_sluice_answer(r, result.status,
                                      message.data ? &message : NULL);
    }

    type.data = (u_char *) result.type.data;
    type.len = result.type.length;

    return ngx_http_sluice_answer_body(r, result.status, &type, &message);
}


/* A body that a plugin before has read may be too long already. */

static ngx_int_t
ngx_http_sluice_decide_bound(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_decision_bound_t *bound)
{
    switch (ngx_http_sluice_body_set_bound(r, ctx, bound)) {

    case NGX_OK:
        return NGX_OK;

    case NGX_DECLINED:
        return ngx_http_sluice_answer(r, bound->status, &ctx->bound->message);

    default:
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }
}


ngx_int_t
ngx_http_sluice_decide_head(const sluice_decision_plugin_t *plugin,
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx, void *conf, void *own)
{
    int                        decision;
    sluice_decision_result_t   result;

    decision = ngx_http_sluice_decide_ask(plugin, plugin->head, r, ctx, conf,
                                          own, &result);

    return decision == SLUICE_DECISION_PASS
           ? ngx_http_sluice_decide_apply(r, ctx, &result) : NGX_ERROR;
}


/* In nginx everything is known: what is not all the same is a mistake. */

static int
ngx_http_sluice_decide_ask(const sluice_decision_plugin_t *plugin,
    ngx_http_sluice_decide_pt decide, ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf, void *own,
    sluice_decision_result_t *result)
{
    int                               decision;
    sluice_decision_request_t         request;
    ngx_http_sluice_decide_request_t  asked;

    asked.request = r;
    asked.ctx = ctx;

    request.calls = &ngx_http_sluice_decide_calls;
    request.data = &asked;
    request.own = own;
    request.now = ngx_time();

    sluice_decision_begin(result);

    decision = decide(conf, &request, result);

    if (result->note.length) {
        ngx_http_sluice_decide_note(r, plugin, result);
    }

    if (decision == SLUICE_DECISION_UNKNOWN) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "%s: nobody knows %s", plugin->name, result->unknown);
    }

    return decision;
}


/* It may have texts of a configuration, which are to end no line. */

static void
ngx_http_sluice_decide_note(ngx_http_request_t *r,
    const sluice_decision_plugin_t *plugin,
    const sluice_decision_result_t *result)
{
    u_char      *text;
    uint32_t     i;
    ngx_uint_t   level;

    text = ngx_pnalloc(r->pool, result->note.length);
    if (text == NULL) {
        return;
    }

    for (i = 0; i < result->note.length; i++) {
        text[i] = (u_char) result->note.data[i];
        text[i] = text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    }

    level = result->is_error ? NGX_LOG_ERR : NGX_LOG_INFO;

    ngx_log_error(level, r->connection->log, 0, "%s: %*s", plugin->name,
                  (size_t) i, text);
}


/* NGX_ERROR: no memory */

static ngx_int_t
ngx_http_sluice_decide_apply(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_decision_result_t *result)
{
    uint32_t   i;
    ngx_str_t  body;

    if (result->query.data) {
        r->args.data = (u_char *) result->query.data;
        r->args.len = result->query.length;
        r->valid_unparsed_uri = 0;
    }

    if (result->body.data) {
        body.data = (u_char *) result->body.data;
        body.len = result->body.length;

        if (ngx_http_sluice_body_replace(r, &body) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (result->log_name.data
        && ngx_http_sluice_ctx_log(r, ctx, &result->log_name,
                                   &result->log_value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (result->shared_name.data
        && ngx_http_sluice_ctx_share(r, ctx, &result->shared_name,
                                     &result->shared_value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (result->sample.is_set) {
        ngx_http_sluice_decide_sample(ctx, &result->sample);
    }

    for (i = 0; i < result->edits_count; i++) {

        if (ngx_http_sluice_decide_edit(r, &result->edits[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (result->identity != SLUICE_DECISION_NOBODY
        && ngx_http_sluice_identity_set(r, ctx, &result->who.consumer,
                                        result->identity
                                        == SLUICE_DECISION_CREDENTIAL
                                        ? &result->who.credential : NULL,
                                        &result->identifier)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return result->lines_count
           ? ngx_http_sluice_header_set_response(r, result->lines,
                                                 result->lines_count)
           : NGX_OK;
}


static void
ngx_http_sluice_decide_sample(ngx_http_sluice_ctx_t *ctx,
    const sluice_decision_sample_t *sample)
{
    /* of random() 31 bits */

    if ((uint32_t) ngx_random() < sample->share) {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED;

    } else if (sample->errors) {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED_ERRORS;

    } else {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED_NOT;
    }
}


static ngx_int_t
ngx_http_sluice_decide_edit(ngx_http_request_t *r,
    const sluice_decision_edit_t *edit)
{
    u_char           *value;
    ngx_list_t       *list;
    sluice_header_t  *header;

    header = edit->header;
    value = (u_char *) edit->value.data;
    list = &r->headers_in.headers;

    switch (edit->verb) {

    case SLUICE_DECISION_UP_REMOVE_ALIKE:
        return ngx_http_sluice_header_clear_all(r,
                                              ngx_http_sluice_decide_is_alike,
                                              header);

    case SLUICE_DECISION_UP_REMOVE:
        return ngx_http_sluice_header_clear(r, header);

    case SLUICE_DECISION_UP_SET:

        if (ngx_http_sluice_header_clear(r, header) != NGX_OK) {
            return NGX_ERROR;
        }

        break;

    case SLUICE_DECISION_UP_ADD:
        break;

    case SLUICE_DECISION_DOWN_REMOVE:
        return ngx_http_sluice_header_list_drop(&r->headers_out.headers,
                                                r->pool,
                                                ngx_http_sluice_header_is,
                                                header);

    case SLUICE_DECISION_DOWN_CHALLENGE:
        return ngx_http_sluice_decide_challenge(r, edit);

    default:                                 /* SLUICE_DECISION_DOWN_ADD */
        list = &r->headers_out.headers;
    }

    return ngx_http_sluice_header_add(r, list, header, value,
                                      edit->value.length);
}


/* As an upstream may read it that makes variables of headers. */

static ngx_uint_t
ngx_http_sluice_decide_is_alike(ngx_table_elt_t *h, void *data)
{
    sluice_header_t  *header = data;

    u_char  a, b;
    size_t  i;

    if (h->key.len != header->length) {
        return 0;
    }

    for (i = 0; i < header->length; i++) {
        a = ngx_tolower(h->key.data[i]);
        b = header->lowcase[i];

        if ((a == '_' ? '-' : a) != (b == '_' ? '-' : b)) {
            return 0;
        }
    }

    return 1;
}


static ngx_int_t
ngx_http_sluice_decide_challenge(ngx_http_request_t *r,
    const sluice_decision_edit_t *edit)
{
    ngx_str_t  name, value;

    if (r->headers_out.www_authenticate) {
        r->headers_out.www_authenticate->hash = 0;
    }

    name.data = edit->header->name;
    name.len = edit->header->length;
    value.data = (u_char *) edit->value.data;
    value.len = edit->value.length;

    r->headers_out.www_authenticate = ngx_http_sluice_answer_push(r, &name,
                                                                  &value);

    return r->headers_out.www_authenticate ? NGX_OK : NGX_ERROR;
}
