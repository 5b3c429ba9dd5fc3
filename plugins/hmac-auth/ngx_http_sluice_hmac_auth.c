
/*
 * The plugin hmac-auth in nginx: sluice_hmac_auth.c decides.
 */


#include "ngx_http_sluice_decide.h"
#include "sluice_hmac_auth.h"


static ngx_int_t ngx_http_sluice_hmac_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static int64_t ngx_http_sluice_hmac_auth_date(const sluice_core_text_t *text);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_hmac_auth = {
    .name = ngx_string("hmac-auth"),
    .decision = &sluice_hmac_auth,
    .access = ngx_http_sluice_hmac_auth_access
};


static sluice_hmac_auth_own_t  ngx_http_sluice_hmac_auth_own = {
    ngx_http_sluice_hmac_auth_date
};


static ngx_int_t
ngx_http_sluice_hmac_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    return ngx_http_sluice_decide(&sluice_hmac_auth, r, ctx, data,
                                  &ngx_http_sluice_hmac_auth_own);
}


static int64_t
ngx_http_sluice_hmac_auth_date(const sluice_core_text_t *text)
{
    return (int64_t) ngx_parse_http_time((u_char *) text->data, text->length);
}
