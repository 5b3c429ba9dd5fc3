
/*
 * Variables for the formats of access logs (cli/nginx_logs.lua).  They are
 * made when nginx writes a line, and cost others nothing.
 */


#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_times.h"
#include "decimal.h"


/* What needs the names of entities, which a request has to keep for it. */

typedef struct {
    ngx_array_t  need_names;    /* of ngx_http_variable_t * */
} ngx_http_sluice_log_conf_t;


typedef struct {
    ngx_str_t                  name;
    ngx_http_get_variable_pt   get_handler;
    uintptr_t                  data;
    ngx_uint_t                 needs_names;
} ngx_http_sluice_log_variable_t;


static void *ngx_http_sluice_log_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_log_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_log_init_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_sluice_log_get_line(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_has(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_audit(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_get_audit_has(ngx_http_request_t *r,
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
static ngx_int_t ngx_http_sluice_log_get_tries(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_log_set_switch(ngx_http_variable_value_t *v,
    ngx_uint_t on);
static ngx_int_t ngx_http_sluice_log_set_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uint64_t number);
static ngx_int_t ngx_http_sluice_log_set_text(ngx_http_variable_value_t *v,
    ngx_str_t *text);


static ngx_http_sluice_log_variable_t  ngx_http_sluice_log_variables[] = {

    /* for the gateway's own formats */

    { ngx_string("sluice_access_log_line"), ngx_http_sluice_log_get_line,
      0, 1 },

    { ngx_string("sluice_access_log_has"), ngx_http_sluice_log_get_has,
      0, 0 },

    { ngx_string("sluice_audit_log_line"), ngx_http_sluice_log_get_audit,
      0, 0 },

    { ngx_string("sluice_audit_log_has"), ngx_http_sluice_log_get_audit_has,
      0, 0 },

    /* for everybody's: docs/logs.md */

    { ngx_string("sluice_route_id"), ngx_http_sluice_log_get_id,
      offsetof(ngx_http_sluice_names_t, route), 1 },

    { ngx_string("sluice_route_name"), ngx_http_sluice_log_get_name,
      offsetof(ngx_http_sluice_names_t, route), 1 },

    { ngx_string("sluice_service_id"), ngx_http_sluice_log_get_id,
      offsetof(ngx_http_sluice_names_t, service), 1 },

    { ngx_string("sluice_service_name"), ngx_http_sluice_log_get_name,
      offsetof(ngx_http_sluice_names_t, service), 1 },

    { ngx_string("sluice_consumer_id"), ngx_http_sluice_log_get_consumer,
      offsetof(ngx_http_sluice_ctx_t, consumer), 0 },

    { ngx_string("sluice_consumer_username"),
      ngx_http_sluice_log_get_consumer,
      offsetof(ngx_http_sluice_ctx_t, username), 0 },

    { ngx_string("sluice_tries"), ngx_http_sluice_log_get_tries, 0, 0 },

    { ngx_string("sluice_total_ms"), ngx_http_sluice_log_get_time,
      offsetof(ngx_http_sluice_times_t, total), 0 },

    { ngx_string("sluice_tries_ms"), ngx_http_sluice_log_get_time,
      offsetof(ngx_http_sluice_times_t, upstream), 0 },

    { ngx_string("sluice_gateway_ms"), ngx_http_sluice_log_get_time,
      offsetof(ngx_http_sluice_times_t, gateway), 0 },

      { ngx_null_string, NULL, 0, 0 }
};


static ngx_http_module_t  ngx_http_sluice_log_module_ctx = {
    ngx_http_sluice_log_add_variables,     /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_sluice_log_create_conf,       /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_log_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_log_module_ctx,       /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_sluice_log_init_process,      /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_sluice_log_create_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_log_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_sluice_log_conf_t));

    if (conf == NULL
        || ngx_array_init(&conf->need_names, cf->pool, 5,
                          sizeof(ngx_http_variable_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static ngx_int_t
ngx_http_sluice_log_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t              *var, **needs;
    ngx_http_sluice_log_conf_t       *conf;
    ngx_http_sluice_log_variable_t   *v;

    conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_log_module);

    for (v = ngx_http_sluice_log_variables; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;

        if (v->needs_names) {
            needs = ngx_array_push(&conf->need_names);
            if (needs == NULL) {
                return NGX_ERROR;
            }

            *needs = var;
        }
    }

    return NGX_OK;
}


/* nginx indexes those variables that formats name */

static ngx_int_t
ngx_http_sluice_log_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                    i;
    ngx_http_variable_t         **needs;
    ngx_http_sluice_log_conf_t   *conf;

    conf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_sluice_log_module);

    if (conf == NULL) {
        return NGX_OK;
    }

    needs = conf->need_names.elts;

    for (i = 0; i < conf->need_names.nelts; i++) {
        if (needs[i]->flags & NGX_HTTP_VAR_INDEXED) {
            ngx_http_sluice_names_are_logged = 1;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_log_get_line(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  line;

    line = ngx_http_sluice_log_line(r);

    return ngx_http_sluice_log_set_text(v, &line);
}


static ngx_int_t
ngx_http_sluice_log_get_has(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_log_set_switch(v,
                                          ngx_http_sluice_access_log_has(r));
}


static ngx_int_t
ngx_http_sluice_log_get_audit(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  line;

    line = ngx_http_sluice_log_audit(r);

    return ngx_http_sluice_log_set_text(v, &line);
}


static ngx_int_t
ngx_http_sluice_log_get_audit_has(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_log_set_switch(v, ngx_http_sluice_log_audit_has(r));
}


/* for "access_log ... if=" */

static ngx_int_t
ngx_http_sluice_log_set_switch(ngx_http_variable_value_t *v, ngx_uint_t on)
{
    ngx_str_t  text;

    if (on) {
        ngx_str_set(&text, "1");

    } else {
        ngx_str_set(&text, "0");
    }

    return ngx_http_sluice_log_set_text(v, &text);
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
        text.len = NGX_HTTP_SLUICE_UUID;
        text.data = ngx_pnalloc(r->pool, text.len);
        if (text.data == NULL) {
            return NGX_ERROR;
        }

        ngx_http_sluice_identity_uuid(text.data, named->id);
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
            && ctx->service == SLUICE_CORE_NOBODY))
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
ngx_http_sluice_log_get_tries(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_sluice_times_t  times;

    ngx_http_sluice_times(r, &times);

    return ngx_http_sluice_log_set_number(r, v, times.tries);
}


static ngx_int_t
ngx_http_sluice_log_get_time(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_sluice_times_t  times;

    ngx_http_sluice_times(r, &times);

    return ngx_http_sluice_log_set_number(r, v,
                                   *(uint32_t *) ((u_char *) &times + data));
}


static ngx_int_t
ngx_http_sluice_log_set_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uint64_t number)
{
    ngx_str_t  text;

    text.data = ngx_pnalloc(r->pool, SLUICE_CORE_DECIMAL);
    if (text.data == NULL) {
        return NGX_ERROR;
    }

    text.len = (u_char *) sluice_core_decimal((char *) text.data, number)
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
