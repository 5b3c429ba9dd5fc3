
/*
 * The access-log plugin: which requests of a route, a service or all of them
 * the access log has.  It runs before all other plugins, so that those which
 * they refuse are counted among the rest.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_packed.h"
#include "ngx_http_sluice_plugin.h"


#define NGX_HTTP_SLUICE_LOG_ALL  ((uint32_t) 1 << 31)


typedef struct {
    uint32_t     share;         /* of NGX_HTTP_SLUICE_LOG_ALL */
    ngx_uint_t   errors;        /* those are logged in any case */
} ngx_http_sluice_access_log_t;


static void *ngx_http_sluice_access_log_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_int_t ngx_http_sluice_access_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);


ngx_http_sluice_plugin_t  ngx_http_sluice_access_log_plugin = {
    ngx_string("access-log"),
    ngx_http_sluice_access_log_compile,
    ngx_http_sluice_access_log_access
};


/* What plugins/access-log/init.lua has packed. */

static void *
ngx_http_sluice_access_log_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_http_sluice_packed_t       packed;
    ngx_http_sluice_access_log_t  *conf;

    conf = ngx_palloc(pool, sizeof(ngx_http_sluice_access_log_t));
    if (conf == NULL) {
        return NULL;
    }

    ngx_http_sluice_packed_open(&packed, &binding->packed);

    conf->share = (uint32_t) (ngx_http_sluice_packed_double(&packed)
                              * NGX_HTTP_SLUICE_LOG_ALL);
    conf->errors = ngx_http_sluice_packed_number(&packed);

    if (ngx_http_sluice_packed_done(&packed) != NGX_OK) {
        ngx_str_set(words, "its bytes are of another version");
        return NULL;
    }

    return conf;
}


static ngx_int_t
ngx_http_sluice_access_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_http_sluice_access_log_t  *conf = data;

    ctx->log_limited = 1;
    ctx->log_share = conf->share;
    ctx->log_errors = conf->errors != 0;

    return NGX_OK;
}


ngx_uint_t
ngx_http_sluice_access_log_has(ngx_http_request_t *r)
{
    ngx_uint_t              status;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || !ctx->log_limited) {
        return 1;
    }

    if (ctx->log_errors) {
        status = ngx_http_sluice_log_status(r);

        if (status == 0 || status >= NGX_HTTP_BAD_REQUEST) {
            return 1;
        }
    }

    /* of random() 31 bits */

    return (uint32_t) ngx_random() < ctx->log_share;
}
