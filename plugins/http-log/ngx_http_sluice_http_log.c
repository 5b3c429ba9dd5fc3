
/*
 * The http-log plugin: workers put entries of requests into the spool; the
 * control worker sends them (deliver() of handler.lua).
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_http_log.h"


static ngx_int_t ngx_http_sluice_http_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_http_log = {
    .name = ngx_string("http-log"),
    .decision = &sluice_http_log,
    .access = ngx_http_sluice_http_log_access,
    .logs = 1
};


/* It refuses nothing, so that nobody has to ask what it decides. */

static ngx_int_t
ngx_http_sluice_http_log_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    return NGX_OK;
}
