
/*
 * The plugin bot-detection in nginx: sluice_bot_detection.c decides, with
 * patterns that this worker has compiled.  They are no routes': those may be
 * put off to another turn of the event loop, and these may not.
 */


#include "ngx_http_sluice_decide.h"
#include "sluice_bot_detection.h"


#define NGX_HTTP_SLUICE_BOT_DETECTION_PATTERNS  (32 * 1024 * 1024)


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
    static sluice_core_regexes_t  *regexes;

    if (regexes == NULL) {
        regexes = sluice_core_regexes_create(
                                       NGX_HTTP_SLUICE_BOT_DETECTION_PATTERNS);
    }

    return ngx_http_sluice_decide(&sluice_bot_detection, r, ctx, conf,
                                  regexes);
}
