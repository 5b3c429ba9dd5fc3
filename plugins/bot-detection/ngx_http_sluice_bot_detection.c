
/*
 * The plugin bot-detection in nginx: sluice_bot_detection.c decides, with the
 * patterns that this worker has compiled.
 */


#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_patterns.h"
#include "sluice_bot_detection.h"


static ngx_int_t ngx_http_sluice_bot_detection_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_bot_detection = {
    .name = ngx_string("bot-detection"),
    .decision = &sluice_bot_detection,
    .access = ngx_http_sluice_bot_detection_access
};


static ngx_int_t
ngx_http_sluice_bot_detection_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf)
{
    return ngx_http_sluice_decide(&sluice_bot_detection, r, ctx, conf,
                                  ngx_http_sluice_patterns());
}
