
/*
 * What the upstream is asked, and what it is told of the way there
 * (ngx_http_sluice_upstream_uri.c).
 */


#ifndef NGX_HTTP_SLUICE_UPSTREAM_URI_H_INCLUDED
#define NGX_HTTP_SLUICE_UPSTREAM_URI_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_module.h"


typedef enum {
    NGX_HTTP_SLUICE_UPSTREAM_URI_URI = 0,
    NGX_HTTP_SLUICE_UPSTREAM_URI_REQUEST_PATH,
    NGX_HTTP_SLUICE_UPSTREAM_URI_PREFIX,
    NGX_HTTP_SLUICE_UPSTREAM_URI_PROXY_MS,
    NGX_HTTP_SLUICE_UPSTREAM_URI_VARIABLES
} ngx_http_sluice_upstream_uri_variable_e;


typedef struct {
    ngx_uint_t  variables[NGX_HTTP_SLUICE_UPSTREAM_URI_VARIABLES];
} ngx_http_sluice_upstream_uri_conf_t;


extern const size_t  ngx_http_sluice_upstream_uri_at;


/* When the configuration has been read. */
ngx_int_t ngx_http_sluice_upstream_uri_init(ngx_conf_t *cf,
    ngx_http_sluice_upstream_uri_conf_t *conf);

/*
 * Sets those of $sluice_upstream, $sluice_uri, $sluice_request_path,
 * $sluice_prefix, $sluice_proxy_ms that differ from what they begin with.
 * The context has a service.  NGX_OK, or the status to refuse with: 400,
 * the path leads out of the service's; 500, no memory.
 */
ngx_int_t ngx_http_sluice_upstream_uri_set(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/*
 * What the upstream is asked, as far as it is known: when the plugins are done
 * with its query, before that the path alone.  NGX_OK, NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_upstream_uri_get(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *uri);

/* The same of X-Forwarded-Prefix; of length 0: nothing is stripped. */
ngx_int_t ngx_http_sluice_upstream_uri_prefix(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *prefix);


#endif /* NGX_HTTP_SLUICE_UPSTREAM_URI_H_INCLUDED */
