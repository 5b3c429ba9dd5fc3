
/*
 * The context of a request (ngx_http_sluice_ctx.h): made once, found by the
 * place of a variable.
 */


#include "ngx_http_sluice_ctx.h"


typedef struct {
    ngx_uint_t  index;                        /* of $sluice_ctx */
} ngx_http_sluice_ctx_conf_t;


static ngx_int_t ngx_http_sluice_ctx_add_variable(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_ctx_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void *ngx_http_sluice_ctx_create_conf(ngx_conf_t *cf);
static ngx_http_variable_value_t *ngx_http_sluice_ctx_place(
    ngx_http_request_t *r);


extern ngx_module_t  ngx_http_sluice_ctx_module;


static ngx_http_module_t  ngx_http_sluice_ctx_module_ctx = {
    ngx_http_sluice_ctx_add_variable,      /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_sluice_ctx_create_conf,       /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_ctx_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_ctx_module_ctx,       /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_str_t  ngx_http_sluice_ctx_name = ngx_string("sluice_ctx");


static ngx_int_t
ngx_http_sluice_ctx_add_variable(ngx_conf_t *cf)
{
    ngx_int_t                    index;
    ngx_http_variable_t         *var;
    ngx_http_sluice_ctx_conf_t  *conf;

    var = ngx_http_add_variable(cf, &ngx_http_sluice_ctx_name, 0);
    if (var == NULL) {
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_sluice_ctx_variable;

    index = ngx_http_get_variable_index(cf, &ngx_http_sluice_ctx_name);
    if (index == NGX_ERROR) {
        return NGX_ERROR;
    }

    conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_ctx_module);
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


static void *
ngx_http_sluice_ctx_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_ctx_conf_t));
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
    ctx->service = SLUICE_CORE_NOBODY;
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


/* Zeroes until a context is there: nginx has cleared all places. */

static ngx_http_variable_value_t *
ngx_http_sluice_ctx_place(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_sluice_ctx_module);

    return &r->variables[conf->index];
}
