
/*
 * From a matched route and what plugins have left of the request to the
 * variables of which its head is made (ngx_http_sluice_head.c).  Usually the
 * upstream is asked for what came, and nothing is set.
 */


#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_request.h"
#include "ngx_http_sluice_target.h"
#include "path.h"


typedef enum {
    NGX_HTTP_SLUICE_TARGET_URI = 0,
    NGX_HTTP_SLUICE_TARGET_REQUEST_PATH,
    NGX_HTTP_SLUICE_TARGET_PREFIX,
    NGX_HTTP_SLUICE_TARGET_PROXY_MS,
    NGX_HTTP_SLUICE_TARGET_VARIABLES
} ngx_http_sluice_target_variable_e;


typedef struct {
    ngx_uint_t  variables[NGX_HTTP_SLUICE_TARGET_VARIABLES];
} ngx_http_sluice_target_conf_t;


static ngx_int_t ngx_http_sluice_target_set_uri(ngx_http_request_t *r,
    const sluice_path_request_t *request);
static ngx_int_t ngx_http_sluice_target_set_prefix(ngx_http_request_t *r,
    const sluice_path_request_t *request);
static ngx_int_t ngx_http_sluice_target_set_time(ngx_http_request_t *r);
static void ngx_http_sluice_target_text(sluice_core_text_t *text,
    const ngx_str_t *string);
static void ngx_http_sluice_target_put(ngx_http_request_t *r,
    ngx_http_sluice_target_variable_e variable, const void *data,
    size_t length);
static void *ngx_http_sluice_target_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_target_init(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_sluice_target_module;


static ngx_http_module_t  ngx_http_sluice_target_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_target_init,           /* postconfiguration */

    ngx_http_sluice_target_create_conf,    /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_target_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_target_module_ctx,    /* module context */
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


ngx_int_t
ngx_http_sluice_target_set(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t              rc;
    sluice_path_request_t  request;

    ngx_http_sluice_target_text(&request.raw, &ctx->raw);
    ngx_http_sluice_target_text(&request.query, &ctx->query);
    ngx_http_sluice_target_text(&request.path, &ctx->path);
    ngx_http_sluice_target_text(&request.base, &ctx->destination->path);
    ngx_http_sluice_target_text(&request.args, &r->args);

    request.prefix = ctx->prefix;

    request.flags = (ctx->chain ? SLUICE_PATH_ARGS : 0)
        | (ngx_http_sluice_request_passes_climbs(r) ? SLUICE_PATH_CLIMBS : 0)
        | (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_STRIP_PATH
           ? SLUICE_PATH_STRIP : 0)
        | (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_PATH_V1
           ? SLUICE_PATH_V1 : 0);

    rc = ngx_http_sluice_target_set_uri(r, &request);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_target_set_prefix(r, &request);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_target_set_time(r);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ctx->query.len) {
        ngx_http_sluice_target_put(r, NGX_HTTP_SLUICE_TARGET_REQUEST_PATH,
                                   ctx->raw.data, ctx->raw.len);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_target_set_uri(ngx_http_request_t *r,
    const sluice_path_request_t *request)
{
    int                  rc;
    char                *buffer;
    size_t               size;
    sluice_core_text_t   uri;

    rc = sluice_path_upstream(request, NULL, 0, &uri);

    if (rc == SLUICE_CORE_FULL) {
        size = sluice_path_upstream_bound(request);

        buffer = ngx_pnalloc(r->pool, size);
        if (buffer == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = sluice_path_upstream(request, buffer, size, &uri);
    }

    if (rc != SLUICE_CORE_OK) {
        return NGX_HTTP_BAD_REQUEST;
    }

    if (uri.data != request->raw.data) {
        ngx_http_sluice_target_put(r, NGX_HTTP_SLUICE_TARGET_URI, uri.data,
                                   uri.length);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_target_set_prefix(ngx_http_request_t *r,
    const sluice_path_request_t *request)
{
    char                *buffer;
    size_t               size;
    sluice_core_text_t   prefix, whole;

    if (sluice_path_stripped(request, NULL, 0, &prefix) != SLUICE_CORE_OK) {

        whole.data = request->path.data;
        whole.length = (uint32_t) request->prefix;
        size = sluice_path_escape_bound(&whole);

        buffer = ngx_pnalloc(r->pool, size);
        if (buffer == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        (void) sluice_path_stripped(request, buffer, size, &prefix);
    }

    if (prefix.length) {
        ngx_http_sluice_target_put(r, NGX_HTTP_SLUICE_TARGET_PREFIX,
                                   prefix.data, prefix.length);
    }

    return NGX_OK;
}


/* milliseconds since the request came */

static ngx_int_t
ngx_http_sluice_target_set_time(ngx_http_request_t *r)
{
    u_char          *p;
    ngx_time_t      *tp;
    ngx_msec_int_t   ms;

    tp = ngx_timeofday();

    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (ngx_msec_int_t) tp->msec
                           - (ngx_msec_int_t) r->start_msec);

    if (ms <= 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_sluice_target_put(r, NGX_HTTP_SLUICE_TARGET_PROXY_MS, p,
                               ngx_sprintf(p, "%M", (ngx_msec_t) ms) - p);

    return NGX_OK;
}


static void
ngx_http_sluice_target_text(sluice_core_text_t *text, const ngx_str_t *string)
{
    text->data = (const char *) string->data;
    text->length = (uint32_t) string->len;
}


static void
ngx_http_sluice_target_put(ngx_http_request_t *r,
    ngx_http_sluice_target_variable_e variable, const void *data,
    size_t length)
{
    ngx_http_variable_value_t      *v;
    ngx_http_sluice_target_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_sluice_target_module);
    v = &r->variables[conf->variables[variable]];

    v->data = (u_char *) data;
    v->len = length;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}


static void *
ngx_http_sluice_target_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_target_conf_t));
}


static ngx_int_t
ngx_http_sluice_target_init(ngx_conf_t *cf)
{
    ngx_int_t                       index;
    ngx_uint_t                      i;
    ngx_http_sluice_target_conf_t  *conf;

    static ngx_str_t  names[] = {
        ngx_string("sluice_uri"),
        ngx_string("sluice_request_path"),
        ngx_string("sluice_prefix"),
        ngx_string("sluice_proxy_ms")
    };

    conf = ngx_http_conf_get_module_main_conf(cf,
                                              ngx_http_sluice_target_module);

    for (i = 0; i < NGX_HTTP_SLUICE_TARGET_VARIABLES; i++) {

        index = ngx_http_get_variable_index(cf, &names[i]);
        if (index == NGX_ERROR) {
            return NGX_ERROR;
        }

        conf->variables[i] = index;
    }

    return NGX_OK;
}
