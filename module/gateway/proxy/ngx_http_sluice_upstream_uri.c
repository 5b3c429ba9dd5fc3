
/*
 * From a matched route and what plugins have left of the request to the
 * variables of which its head is made (ngx_http_sluice_head.c).  Usually the
 * upstream is asked for what came, and nothing is set.
 */


#include "ngx_http_sluice_changed.h"
#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_sanitize.h"
#include "ngx_http_sluice_upstream_uri.h"
#include "path.h"
#include "refusal.h"


static void ngx_http_sluice_upstream_uri_request(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, sluice_path_request_t *request);
static ngx_int_t ngx_http_sluice_upstream_uri_set_changed(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_upstream_uri_set_uri(ngx_http_request_t *r,
    const sluice_path_request_t *request);
static ngx_int_t ngx_http_sluice_upstream_uri_set_prefix(ngx_http_request_t *r,
    const sluice_path_request_t *request);
static ngx_int_t ngx_http_sluice_upstream_uri_stripped(ngx_http_request_t *r,
    const sluice_path_request_t *request, ngx_str_t *stripped);
static ngx_int_t ngx_http_sluice_upstream_uri_set_time(ngx_http_request_t *r);
static void ngx_http_sluice_upstream_uri_text(sluice_core_text_t *text,
    const ngx_str_t *string);
static void ngx_http_sluice_upstream_uri_put(ngx_http_request_t *r,
    ngx_http_sluice_upstream_uri_variable_e variable, const void *data,
    size_t length);


ngx_int_t
ngx_http_sluice_upstream_uri_set(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t              rc;
    sluice_path_request_t  request;

    ngx_http_sluice_upstream_uri_request(r, ctx, &request);

    rc = ctx->changed && ctx->changed->path.data
         ? ngx_http_sluice_upstream_uri_set_changed(r, ctx)
         : ngx_http_sluice_upstream_uri_set_uri(r, &request);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_upstream_uri_set_prefix(r, &request);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_upstream_uri_set_time(r);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ctx->query.len) {
        ngx_http_sluice_upstream_uri_put(
            r, NGX_HTTP_SLUICE_UPSTREAM_URI_REQUEST_PATH, ctx->raw.data,
            ctx->raw.len);
    }

    return NGX_OK;
}


static void
ngx_http_sluice_upstream_uri_request(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, sluice_path_request_t *request)
{
    ngx_http_sluice_upstream_uri_text(&request->raw, &ctx->raw);
    ngx_http_sluice_upstream_uri_text(&request->query, &ctx->query);
    ngx_http_sluice_upstream_uri_text(&request->path, &ctx->path);
    ngx_http_sluice_upstream_uri_text(&request->base, &ctx->service->path);
    ngx_http_sluice_upstream_uri_text(&request->args, &r->args);

    request->prefix = ctx->prefix;

    request->flags = (ctx->chain ? SLUICE_PATH_ARGS : 0)
        | (ngx_http_sluice_sanitize_passes_traversal(r)
           ? SLUICE_PATH_TRAVERSAL : 0)
        | (ctx->route_flags & SLUICE_ROUTE_STRIP_PATH
           ? SLUICE_PATH_STRIP : 0)
        | (ctx->route_flags & SLUICE_ROUTE_PATH_V1
           ? SLUICE_PATH_V1 : 0);
}


/* A plugin's path and the query, as plugins have left it. */

static ngx_int_t
ngx_http_sluice_upstream_uri_set_changed(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    char                *uri, *p;
    size_t               size;
    ngx_str_t           *path;
    sluice_core_text_t   args;

    path = &ctx->changed->path;
    ngx_http_sluice_upstream_uri_text(&args, &r->args);

    size = path->len + 1 + sluice_path_put_args_bound(&args);

    uri = ngx_pnalloc(r->pool, size);
    if (uri == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = (char *) ngx_cpymem(uri, path->data, path->len);

    /* nginx does not tell "/?" from "/": no args may be either */

    if (args.length || ctx->query.len == 1) {
        *p++ = '?';
        p = sluice_path_put_args(&args, p);
    }

    ngx_http_sluice_upstream_uri_put(r, NGX_HTTP_SLUICE_UPSTREAM_URI_URI, uri,
                                     p - uri);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_uri_set_uri(ngx_http_request_t *r,
    const sluice_path_request_t *request)
{
    int                  rc;
    char                *buffer;
    size_t               size;
    sluice_refusal_t     refusal;
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

    if (sluice_refusal_of_code(rc, &refusal)) {
        return refusal.status;
    }

    if (uri.data != request->raw.data) {
        ngx_http_sluice_upstream_uri_put(r, NGX_HTTP_SLUICE_UPSTREAM_URI_URI,
                                         uri.data, uri.length);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_uri_set_prefix(ngx_http_request_t *r,
    const sluice_path_request_t *request)
{
    ngx_str_t  prefix;

    if (ngx_http_sluice_upstream_uri_stripped(r, request, &prefix) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (prefix.len) {
        ngx_http_sluice_upstream_uri_put(
            r, NGX_HTTP_SLUICE_UPSTREAM_URI_PREFIX, prefix.data, prefix.len);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_uri_stripped(ngx_http_request_t *r,
    const sluice_path_request_t *request, ngx_str_t *stripped)
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
            return NGX_ERROR;
        }

        (void) sluice_path_stripped(request, buffer, size, &prefix);
    }

    stripped->data = (u_char *) prefix.data;
    stripped->len = prefix.length;

    return NGX_OK;
}


/* milliseconds since the request came */

static ngx_int_t
ngx_http_sluice_upstream_uri_set_time(ngx_http_request_t *r)
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

    ngx_http_sluice_upstream_uri_put(
        r, NGX_HTTP_SLUICE_UPSTREAM_URI_PROXY_MS, p,
        ngx_sprintf(p, "%M", (ngx_msec_t) ms) - p);

    return NGX_OK;
}


static void
ngx_http_sluice_upstream_uri_text(sluice_core_text_t *text,
    const ngx_str_t *string)
{
    text->data = (const char *) string->data;
    text->length = (uint32_t) string->len;
}


static void
ngx_http_sluice_upstream_uri_put(ngx_http_request_t *r,
    ngx_http_sluice_upstream_uri_variable_e variable, const void *data,
    size_t length)
{
    ngx_http_variable_value_t            *v;
    ngx_http_sluice_upstream_uri_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, upstream_uri);
    v = &r->variables[conf->variables[variable]];

    v->data = (u_char *) data;
    v->len = length;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}


ngx_int_t
ngx_http_sluice_upstream_uri_get(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *uri)
{
    char                                 *buffer;
    size_t                                size;
    sluice_core_text_t                    path;
    sluice_path_request_t                 request;
    ngx_http_variable_value_t            *v;
    ngx_http_sluice_upstream_uri_conf_t  *conf;

    if (ctx->has_peer) {
        conf = ngx_http_sluice_main_conf(r, upstream_uri);

        v = ngx_http_get_indexed_variable(
                r, conf->variables[NGX_HTTP_SLUICE_UPSTREAM_URI_URI]);
        if (v == NULL) {
            return NGX_ERROR;
        }

        uri->data = v->data;
        uri->len = v->len;

        return NGX_OK;
    }

    if (ctx->changed && ctx->changed->path.data) {
        *uri = ctx->changed->path;
        return NGX_OK;
    }

    ngx_http_sluice_upstream_uri_request(r, ctx, &request);

    request.query.length = 0;
    request.args.length = 0;

    if (sluice_path_upstream(&request, NULL, 0, &path) == SLUICE_CORE_FULL) {
        size = sluice_path_upstream_bound(&request);

        buffer = ngx_pnalloc(r->pool, size);
        if (buffer == NULL) {
            return NGX_ERROR;
        }

        if (sluice_path_upstream(&request, buffer, size, &path)
            != SLUICE_CORE_OK)
        {
            path.length = 0;
        }
    }

    /* a path that leads out of the service's will be refused: none */

    uri->data = (u_char *) path.data;
    uri->len = path.length;

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_upstream_uri_prefix(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *prefix)
{
    sluice_path_request_t  request;

    ngx_http_sluice_upstream_uri_request(r, ctx, &request);

    return ngx_http_sluice_upstream_uri_stripped(r, &request, prefix);
}


ngx_int_t
ngx_http_sluice_upstream_uri_init(ngx_conf_t *cf,
    ngx_http_sluice_upstream_uri_conf_t *conf)
{
    ngx_int_t   index;
    ngx_uint_t  i;

    static ngx_str_t  names[] = {
        ngx_string("sluice_uri"),
        ngx_string("sluice_request_path"),
        ngx_string("sluice_prefix"),
        ngx_string("sluice_proxy_ms")
    };

    for (i = 0; i < NGX_HTTP_SLUICE_UPSTREAM_URI_VARIABLES; i++) {

        index = ngx_http_get_variable_index(cf, &names[i]);
        if (index == NGX_ERROR) {
            return NGX_ERROR;
        }

        conf->variables[i] = index;
    }

    return NGX_OK;
}
