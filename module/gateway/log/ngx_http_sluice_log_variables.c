
/*
 * Variables for the formats of access logs (cli/nginx/logs.lua).  They are
 * made when nginx writes a line, and cost others nothing.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_times.h"
#include "ngx_http_sluice_tries.h"
#include "decimal.h"
#include "uuid.h"


typedef ngx_str_t (*ngx_http_sluice_log_line_pt)(ngx_http_request_t *r);
typedef ngx_uint_t (*ngx_http_sluice_log_has_pt)(ngx_http_request_t *r);


static ngx_int_t ngx_http_sluice_log_get_line(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_has(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_source(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_failed(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_label(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_name(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_sluice_named_t *ngx_http_sluice_log_named(
    ngx_http_request_t *r, uintptr_t offset);
static ngx_int_t ngx_http_sluice_log_get_consumer(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_uint_t ngx_http_sluice_log_has(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_log_set_text(ngx_http_variable_value_t *v,
    ngx_str_t *text);


static ngx_http_variable_t  ngx_http_sluice_log_variables[] = {

    /* for the gateway's own formats */

    { ngx_string("sluice_access_log_line"), NULL,
      ngx_http_sluice_log_get_line, (uintptr_t) ngx_http_sluice_log_line,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_access_log_has"), NULL,
      ngx_http_sluice_log_get_has, (uintptr_t) ngx_http_sluice_log_has,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_audit_log_line"), NULL,
      ngx_http_sluice_log_get_line, (uintptr_t) ngx_http_sluice_log_audit,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_audit_log_has"), NULL,
      ngx_http_sluice_log_get_has, (uintptr_t) ngx_http_sluice_log_audit_has,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    /* for everybody's: docs/logs.md */

    { ngx_string("sluice_source"), NULL,
      ngx_http_sluice_log_get_source, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_failed_tries"), NULL,
      ngx_http_sluice_log_get_failed, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_route"), NULL,
      ngx_http_sluice_log_get_label, offsetof(ngx_http_sluice_names_t, route),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_service"), NULL,
      ngx_http_sluice_log_get_label,
      offsetof(ngx_http_sluice_names_t, service),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_route_id"), NULL,
      ngx_http_sluice_log_get_id, offsetof(ngx_http_sluice_names_t, route),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_route_name"), NULL,
      ngx_http_sluice_log_get_name, offsetof(ngx_http_sluice_names_t, route),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_service_id"), NULL,
      ngx_http_sluice_log_get_id, offsetof(ngx_http_sluice_names_t, service),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_service_name"), NULL,
      ngx_http_sluice_log_get_name, offsetof(ngx_http_sluice_names_t, service),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_consumer_id"), NULL,
      ngx_http_sluice_log_get_consumer,
      offsetof(ngx_http_sluice_ctx_t, consumer),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_consumer_username"), NULL,
      ngx_http_sluice_log_get_consumer,
      offsetof(ngx_http_sluice_ctx_t, username),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_tries"), NULL,
      ngx_http_sluice_log_get_time, offsetof(ngx_http_sluice_times_t, tries),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_total_ms"), NULL,
      ngx_http_sluice_log_get_time, offsetof(ngx_http_sluice_times_t, total),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_tries_ms"), NULL,
      ngx_http_sluice_log_get_time,
      offsetof(ngx_http_sluice_times_t, upstream),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("sluice_gateway_ms"), NULL,
      ngx_http_sluice_log_get_time, offsetof(ngx_http_sluice_times_t, gateway),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_sluice_log_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_sluice_log_variables; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* nginx indexes those variables that formats name */

void
ngx_http_sluice_log_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {
        if (v[i].data == (uintptr_t) ngx_http_sluice_log_line
            || v[i].get_handler == ngx_http_sluice_log_get_label
            || v[i].get_handler == ngx_http_sluice_log_get_id
            || v[i].get_handler == ngx_http_sluice_log_get_name)
        {
            ngx_http_sluice_names_are_logged = 1;
        }
    }
}


static ngx_int_t
ngx_http_sluice_log_get_line(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  line;

    line = ((ngx_http_sluice_log_line_pt) data)(r);

    return ngx_http_sluice_log_set_text(v, &line);
}


/* for "access_log ... if=" */

static ngx_int_t
ngx_http_sluice_log_get_has(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    static ngx_str_t  digits[] = { ngx_string("0"), ngx_string("1") };

    return ngx_http_sluice_log_set_text(v,
                       &digits[((ngx_http_sluice_log_has_pt) data)(r) != 0]);
}


/* Whether the access log has this request. */

static ngx_uint_t
ngx_http_sluice_log_has(ngx_http_request_t *r)
{
    ngx_uint_t              status;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->logged == NGX_HTTP_SLUICE_LOGGED) {
        return 1;
    }

    if (ctx->logged == NGX_HTTP_SLUICE_LOGGED_NOT) {
        return 0;
    }

    status = ngx_http_sluice_log_status(r);

    return status == 0 || status >= NGX_HTTP_BAD_REQUEST;
}


static ngx_int_t
ngx_http_sluice_log_get_source(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    static ngx_str_t  sources[] = {
        ngx_string("gateway"), ngx_string("upstream")
    };

    return ngx_http_sluice_log_set_text(v,
                                 &sources[ngx_http_sluice_log_is_proxied(r)]);
}


/* "127.0.0.1:80 connection refused, 127.0.0.1:81 read timeout" */

static ngx_int_t
ngx_http_sluice_log_get_failed(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                     *p;
    size_t                      size;
    ngx_str_t                   text;
    ngx_uint_t                  i, n;
    const char                 *word;
    ngx_http_upstream_state_t  *state;

    ngx_str_null(&text);

    n = r->upstream_states ? r->upstream_states->nelts : 0;
    state = n ? r->upstream_states->elts : NULL;
    size = 0;

    for (i = 0; i < n; i++) {
        word = ngx_http_sluice_tries_word(ngx_http_sluice_tries_error(r, i));

        if (word && state[i].peer) {
            size += state[i].peer->len + ngx_strlen(word) + sizeof(" , ") - 1;
        }
    }

    if (size == 0) {
        return ngx_http_sluice_log_set_text(v, &text);
    }

    text.data = ngx_pnalloc(r->pool, size);
    if (text.data == NULL) {
        return NGX_ERROR;
    }

    p = text.data;

    for (i = 0; i < n; i++) {
        word = ngx_http_sluice_tries_word(ngx_http_sluice_tries_error(r, i));

        if (word && state[i].peer) {
            p = ngx_sprintf(p, "%V %s, ", state[i].peer, word);
        }
    }

    text.len = p - text.data - (sizeof(", ") - 1);

    return ngx_http_sluice_log_set_text(v, &text);
}


/* a name, or the id of who has none */

static ngx_int_t
ngx_http_sluice_log_get_label(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_sluice_named_t  *named;

    named = ngx_http_sluice_log_named(r, data);

    if (named && named->name.len) {
        return ngx_http_sluice_log_set_text(v, &named->name);
    }

    return ngx_http_sluice_log_get_id(r, v, data);
}


static ngx_int_t
ngx_http_sluice_log_get_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 text;
    ngx_http_sluice_named_t  *named;

    named = ngx_http_sluice_log_named(r, data);

    ngx_str_null(&text);

    if (named) {
        text.len = SLUICE_UUID_TEXT;
        text.data = ngx_pnalloc(r->pool, text.len);
        if (text.data == NULL) {
            return NGX_ERROR;
        }

        sluice_uuid_write((char *) text.data, named->id);
    }

    return ngx_http_sluice_log_set_text(v, &text);
}


static ngx_int_t
ngx_http_sluice_log_get_name(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 text;
    ngx_http_sluice_named_t  *named;

    named = ngx_http_sluice_log_named(r, data);

    ngx_str_null(&text);

    return ngx_http_sluice_log_set_text(v, named ? &named->name : &text);
}


/* NULL: the request has none */

static ngx_http_sluice_named_t *
ngx_http_sluice_log_named(ngx_http_request_t *r, uintptr_t offset)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL
        || ctx->names == NULL
        || (offset == offsetof(ngx_http_sluice_names_t, service)
            && ctx->service_slot == SLUICE_CORE_NOBODY))
    {
        return NULL;
    }

    return (ngx_http_sluice_named_t *) ((u_char *) ctx->names + offset);
}


static ngx_int_t
ngx_http_sluice_log_get_consumer(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t               text;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    ngx_str_null(&text);

    return ngx_http_sluice_log_set_text(v,
               ctx ? (ngx_str_t *) ((u_char *) ctx + data) : &text);
}


static ngx_int_t
ngx_http_sluice_log_get_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                text;
    ngx_http_sluice_times_t  times;

    text.data = ngx_pnalloc(r->pool, SLUICE_CORE_DECIMAL);
    if (text.data == NULL) {
        return NGX_ERROR;
    }

    ngx_http_sluice_times(r, &times);

    text.len = (u_char *) sluice_core_decimal((char *) text.data,
                                     *(uint32_t *) ((u_char *) &times + data))
               - text.data;

    return ngx_http_sluice_log_set_text(v, &text);
}


/* "-" where there is none, as nginx has it */

static ngx_int_t
ngx_http_sluice_log_set_text(ngx_http_variable_value_t *v, ngx_str_t *text)
{
    v->data = text->data;
    v->len = text->len;
    v->valid = text->len != 0;
    v->not_found = text->len == 0;
    v->no_cacheable = 1;

    return NGX_OK;
}
