
/*
 * Answers of requests whose plugins Lua runs.  C could not send them: a filter
 * in Lua would run within a call of FFI, which LuaJIT does not allow.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"


ngx_uint_t
ngx_http_sluice_answer_is_lua(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    return ctx && ctx->in_lua;
}


ngx_int_t
ngx_http_sluice_answer_later(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *message)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    ctx->answer = (uint32_t) status;
    ngx_str_null(&ctx->answer_message);

    if (message) {
        ctx->answer_message.data = ngx_pstrdup(r->pool, message);
        if (ctx->answer_message.data == NULL) {
            return NGX_ERROR;
        }

        ctx->answer_message.len = message->len;
    }

    return NGX_HTTP_SLUICE_ANSWER_LATER;
}
