
/*
 * The plugin cors in nginx: sluice_cors.c decides, with the patterns that this
 * worker has compiled.
 */


#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_patterns.h"
#include "sluice_cors.h"


static ngx_int_t ngx_http_sluice_cors_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf);
static ngx_int_t ngx_http_sluice_cors_head(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_cors = {
    .name = ngx_string("cors"),
    .decision = &sluice_cors,
    .access = ngx_http_sluice_cors_access,
    .head = ngx_http_sluice_cors_head
};


static ngx_int_t
ngx_http_sluice_cors_access(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    void *conf)
{
    return ngx_http_sluice_decide(&sluice_cors, r, ctx, conf,
                                  ngx_http_sluice_patterns());
}


static ngx_int_t
ngx_http_sluice_cors_head(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    void *conf)
{
    return ngx_http_sluice_decide_head(&sluice_cors, r, ctx, conf,
                                       ngx_http_sluice_patterns());
}
