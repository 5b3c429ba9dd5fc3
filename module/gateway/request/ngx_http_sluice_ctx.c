
/*
 * The context of a request (ngx_http_sluice_ctx.h): made once, found by the
 * place of a variable.
 */


#include "ngx_http_sluice_ctx.h"


static ngx_int_t ngx_http_sluice_ctx_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_variable_value_t *ngx_http_sluice_ctx_place(
    ngx_http_request_t *r);


static ngx_str_t  ngx_http_sluice_ctx_name = ngx_string("sluice_ctx");


ngx_int_t
ngx_http_sluice_ctx_add_variable(ngx_conf_t *cf,
    ngx_http_sluice_ctx_conf_t *conf)
{
    ngx_int_t             index;
    ngx_http_variable_t  *var;

    var = ngx_http_add_variable(cf, &ngx_http_sluice_ctx_name, 0);
    if (var == NULL) {
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_sluice_ctx_variable;

    index = ngx_http_get_variable_index(cf, &ngx_http_sluice_ctx_name);
    if (index == NGX_ERROR) {
        return NGX_ERROR;
    }

    conf->index = index;

    return NGX_OK;
}


/*
 * A value that is not found, and neither kept: so the place is as empty as it
 * was, unless a context is there, which nginx takes for one that is known.
 */

static ngx_int_t
ngx_http_sluice_ctx_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    v->not_found = 1;

    return NGX_OK;
}


ngx_http_sluice_ctx_t *
ngx_http_sluice_ctx(ngx_http_request_t *r)
{
    return (ngx_http_sluice_ctx_t *) ngx_http_sluice_ctx_place(r)->data;
}


ngx_http_sluice_ctx_t *
ngx_http_sluice_ctx_make(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t      *ctx;
    ngx_http_variable_value_t  *v;

    v = ngx_http_sluice_ctx_place(r);

    if (v->data) {
        return (ngx_http_sluice_ctx_t *) v->data;
    }

    /* the main request's: a subrequest has the same pool and variables */

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->route = SLUICE_CORE_NOBODY;
    ctx->service_slot = SLUICE_CORE_NOBODY;
    ctx->consumer_slot = SLUICE_CORE_NOBODY;
    ctx->credential_slot = SLUICE_CORE_NOBODY;
    ctx->prefix = -1;

    v->data = (u_char *) ctx;
    v->len = 0;
    v->valid = 0;
    v->not_found = 1;
    v->no_cacheable = 0;

    return ctx;
}


ngx_int_t
ngx_http_sluice_ctx_log(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_text_t *name, const sluice_core_text_t *value)
{
    ngx_http_sluice_logged_t  *logged;

    for (logged = ctx->log_values; logged; logged = logged->next) {

        if (logged->name.data == (u_char *) name->data) {
            break;
        }
    }

    if (logged == NULL) {
        logged = ngx_palloc(r->main->pool, sizeof(ngx_http_sluice_logged_t));
        if (logged == NULL) {
            return NGX_ERROR;
        }

        logged->name.data = (u_char *) name->data;
        logged->name.len = name->length;
        logged->next = ctx->log_values;
        ctx->log_values = logged;
    }

    logged->value.data = (u_char *) value->data;
    logged->value.len = value->length;

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_ctx_share(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_core_text_t *name, const sluice_core_text_t *value)
{
    ngx_http_sluice_shared_t  *shared;

    for (shared = ctx->shared; shared; shared = shared->next) {

        if (shared->pair.name.data == name->data) {
            break;
        }
    }

    if (shared == NULL) {
        shared = ngx_palloc(r->main->pool, sizeof(ngx_http_sluice_shared_t));
        if (shared == NULL) {
            return NGX_ERROR;
        }

        shared->pair.name = *name;
        shared->next = ctx->shared;
        ctx->shared = shared;
    }

    shared->pair.value = *value;

    return NGX_OK;
}


/* Zeroes until a context is there: nginx has cleared all places. */

static ngx_http_variable_value_t *
ngx_http_sluice_ctx_place(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, ctx);

    return &r->variables[conf->index];
}
