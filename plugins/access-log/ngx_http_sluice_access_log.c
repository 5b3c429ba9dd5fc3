
/*
 * The access-log plugin: which requests of a route, a service or all of them
 * the access log has.  It runs before all other plugins, so that those which
 * they refuse are counted among the rest.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_plugin.h"
#include "sluice_access_log.h"


static ngx_int_t ngx_http_sluice_access_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_access_log = {
    .name = ngx_string("access-log"),
    .decision = &sluice_access_log,
    .access = ngx_http_sluice_access_log_access
};


/* It refuses nothing, so that nobody has to ask what it decides. */

static ngx_int_t
ngx_http_sluice_access_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    sluice_access_log_t  *conf = data;

    /* of random() 31 bits */

    if ((uint32_t) ngx_random() < conf->share) {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED;

    } else if (conf->errors) {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED_ERRORS;

    } else {
        ctx->logged = NGX_HTTP_SLUICE_LOGGED_NOT;
    }

    return NGX_OK;
}
