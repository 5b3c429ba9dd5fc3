
/*
 * Variables of Kong's nginx.conf that say what the upstream is asked, for
 * plugins in Lua: $upstream_uri and its kin.  Nothing is kept for them, so
 * they cost who does not read them nothing: a reader is told what will be
 * sent, or was.  To write one is to change that (ngx_http_sluice_changed.h),
 * as the kit's functions do where they may.
 */


#include "ngx_http_sluice_changed.h"
#include "ngx_http_sluice_head.h"
#include "ngx_http_sluice_kong_variables.h"
#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_upstream_uri.h"
#include "ngx_http_sluice_value.h"


static ngx_int_t ngx_http_sluice_kong_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_sluice_kong_put_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_sluice_kong_put_scheme(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_sluice_kong_put_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_kong_scheme(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_kong_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_kong_forwarded(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void ngx_http_sluice_kong_put_forwarded(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_kong_forwarded_early(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_variable_value_t *v, ngx_uint_t line);
static ngx_int_t ngx_http_sluice_kong_mode(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_sluice_ctx_t *ngx_http_sluice_kong_ctx(ngx_http_request_t *r);

#define ngx_http_sluice_kong_variable(name, get, data)                        \
    { ngx_string(name), NULL, get, data, NGX_HTTP_VAR_NOCACHEABLE, 0 }

#define ngx_http_sluice_kong_writable(name, put, get)                         \
    { ngx_string(name), put, get, 0,                                          \
      NGX_HTTP_VAR_CHANGEABLE|NGX_HTTP_VAR_NOCACHEABLE, 0 }

#define ngx_http_sluice_kong_line(name, which)                                \
    { ngx_string(name), ngx_http_sluice_kong_put_forwarded,                   \
      ngx_http_sluice_kong_forwarded, which,                                  \
      NGX_HTTP_VAR_CHANGEABLE|NGX_HTTP_VAR_NOCACHEABLE, 0 }

static ngx_http_variable_t  ngx_http_sluice_kong_list[] = {

    ngx_http_sluice_kong_writable("upstream_uri",
        ngx_http_sluice_kong_put_uri, ngx_http_sluice_kong_uri),
    ngx_http_sluice_kong_writable("upstream_scheme",
        ngx_http_sluice_kong_put_scheme, ngx_http_sluice_kong_scheme),
    ngx_http_sluice_kong_writable("upstream_host",
        ngx_http_sluice_kong_put_host, ngx_http_sluice_kong_host),

    ngx_http_sluice_kong_line("upstream_x_forwarded_for",
        NGX_HTTP_SLUICE_FORWARDED_FOR),
    ngx_http_sluice_kong_line("upstream_x_forwarded_proto",
        NGX_HTTP_SLUICE_FORWARDED_PROTO),
    ngx_http_sluice_kong_line("upstream_x_forwarded_host",
        NGX_HTTP_SLUICE_FORWARDED_HOST),
    ngx_http_sluice_kong_line("upstream_x_forwarded_port",
        NGX_HTTP_SLUICE_FORWARDED_PORT),
    ngx_http_sluice_kong_line("upstream_x_forwarded_path",
        NGX_HTTP_SLUICE_FORWARDED_PATH),
    ngx_http_sluice_kong_line("upstream_x_forwarded_prefix",
        NGX_HTTP_SLUICE_FORWARDED_PREFIX),

    ngx_http_sluice_kong_variable("kong_proxy_mode",
        ngx_http_sluice_kong_mode, 0),

      ngx_http_null_variable
};


ngx_int_t
ngx_http_sluice_kong_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_sluice_kong_list; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->set_handler = v->set_handler;
        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/*
 * NULL where the request has no service, and so no upstream: then they are
 * empty.  One of a timer of Lua has not even variables.
 */

static ngx_http_sluice_ctx_t *
ngx_http_sluice_kong_ctx(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = r->variables ? ngx_http_sluice_ctx(r) : NULL;

    return ctx && ctx->service ? ctx : NULL;
}


/* Path and, once the request is on its way, query. */

static ngx_int_t
ngx_http_sluice_kong_uri(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t               uri;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_kong_ctx(r);

    ngx_str_null(&uri);

    if (ctx && ngx_http_sluice_upstream_uri_get(r, ctx, &uri) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_value(v, uri.data, uri.len);
}


static void
ngx_http_sluice_kong_put_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    (void) ngx_http_sluice_changed_set_path(r, v->data, v->len);
}


static ngx_int_t
ngx_http_sluice_kong_scheme(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_uint_t              https;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_kong_ctx(r);

    if (ctx == NULL) {
        return ngx_http_sluice_value(v, NULL, 0);
    }

    https = ctx->service->https;

    if (ctx->changed && ctx->changed->scheme) {
        https = ctx->changed->scheme == NGX_HTTP_SLUICE_CHANGED_HTTPS;
    }

    return ngx_http_sluice_value(v, (u_char *) "https", https ? 5 : 4);
}


/* What is neither is not taken: nginx would not know how to speak it. */

static void
ngx_http_sluice_kong_put_scheme(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    if (ngx_http_sluice_changed_set_scheme(r, v->data, v->len)
        == NGX_DECLINED)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "$upstream_scheme can be http or https, not \"%v\"", v);
    }
}


/*
 * As in Kong: until the upstream is asked only what a plugin has said, or
 * what preserve_host wants, then what its Host header was.
 */

static ngx_int_t
ngx_http_sluice_kong_host(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t                  *host;
    ngx_http_sluice_ctx_t      *ctx;
    ngx_http_variable_value_t  *sent;

    static ngx_str_t            name = ngx_string("sluice_host");

    ctx = ngx_http_sluice_kong_ctx(r);

    if (ctx == NULL) {
        return ngx_http_sluice_value(v, NULL, 0);
    }

    if (ctx->has_peer) {
        sent = ngx_http_get_variable(r, &name,
                                     ngx_hash_key(name.data, name.len));
        if (sent == NULL) {
            return NGX_ERROR;
        }

        return ngx_http_sluice_value(v, sent->data,
                                     sent->not_found ? 0 : sent->len);
    }

    if (ctx->changed && ctx->changed->host.data) {
        host = &ctx->changed->host;
        return ngx_http_sluice_value(v, host->data, host->len);
    }

    if (ctx->route_flags & SLUICE_ROUTE_PRESERVE_HOST) {
        host = &r->headers_in.server;
        return ngx_http_sluice_value(v, host->data, host->len);
    }

    return ngx_http_sluice_value(v, NULL, 0);
}


static void
ngx_http_sluice_kong_put_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    (void) ngx_http_sluice_changed_set_host(r, v->data, v->len);
}


static ngx_int_t
ngx_http_sluice_kong_forwarded(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_sluice_ctx_t      *ctx;
    ngx_http_variable_value_t  *set;

    ctx = ngx_http_sluice_kong_ctx(r);

    if (ctx == NULL) {
        return ngx_http_sluice_value(v, NULL, 0);
    }

    set = ngx_http_sluice_changed_forwarded(ctx, data);

    if (set) {
        return ngx_http_sluice_value(v, set->data, set->len);
    }

    if (!ctx->has_peer && (data == NGX_HTTP_SLUICE_FORWARDED_PATH
                           || data == NGX_HTTP_SLUICE_FORWARDED_PREFIX))
    {
        return ngx_http_sluice_kong_forwarded_early(r, ctx, v, data);
    }

    return ngx_http_sluice_head_forwarded(r, data, v);
}


/* Before there is a route they are not known: Kong sets them then. */

static void
ngx_http_sluice_kong_put_forwarded(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    if (ngx_http_sluice_kong_ctx(r)) {
        (void) ngx_http_sluice_changed_set_forwarded(r, data, v->data, v->len);
    }
}


/*
 * Of the path, which is taken apart when the plugins are done: what a trusted
 * proxy says, or what it will come to.  The variables of the head must not be
 * read yet: they would keep what they were.
 */

static ngx_int_t
ngx_http_sluice_kong_forwarded_early(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_variable_value_t *v, ngx_uint_t line)
{
    ngx_str_t                  *name, text;
    ngx_http_variable_value_t  *claimed;

    static ngx_str_t            path = ngx_string("sluice_client_path");
    static ngx_str_t            prefix = ngx_string("sluice_client_prefix");

    name = line == NGX_HTTP_SLUICE_FORWARDED_PATH ? &path : &prefix;

    claimed = ngx_http_get_variable(r, name,
                                    ngx_hash_key(name->data, name->len));
    if (claimed == NULL) {
        return NGX_ERROR;
    }

    if (!claimed->not_found && claimed->len) {
        return ngx_http_sluice_value(v, claimed->data, claimed->len);
    }

    if (line == NGX_HTTP_SLUICE_FORWARDED_PATH) {
        return ngx_http_sluice_value(v, ctx->raw.data, ctx->raw.len);
    }

    if (ngx_http_sluice_upstream_uri_prefix(r, ctx, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_value(v, text.data, text.len);
}


/* Kong has a location for each way of buffering; here all is one. */

static ngx_int_t
ngx_http_sluice_kong_mode(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    return ngx_http_sluice_value(v, (u_char *) "http", 4);
}
