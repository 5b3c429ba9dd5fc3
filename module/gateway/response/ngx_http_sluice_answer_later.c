
/*
 * Answers of requests whose plugins Lua runs.  C could not send them: a filter
 * in Lua would run within a call of FFI, which LuaJIT does not allow.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"


static ngx_int_t ngx_http_sluice_answer_keep(ngx_http_request_t *r,
    ngx_str_t *kept, ngx_str_t *text);


ngx_uint_t
ngx_http_sluice_answer_is_lua(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    return ctx && ctx->in_lua;
}


ngx_int_t
ngx_http_sluice_answer_later(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *message, ngx_str_t *type)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    ctx->answer = (uint32_t) status;

    if (ngx_http_sluice_answer_keep(r, &ctx->answer_message, message)
        != NGX_OK
        || ngx_http_sluice_answer_keep(r, &ctx->answer_type, type) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_HTTP_SLUICE_ANSWER_LATER;
}


/* data NULL: there is none */

static ngx_int_t
ngx_http_sluice_answer_keep(ngx_http_request_t *r, ngx_str_t *kept,
    ngx_str_t *text)
{
    ngx_str_null(kept);

    if (text == NULL) {
        return NGX_OK;
    }

    kept->data = ngx_pnalloc(r->pool, text->len + 1);
    if (kept->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(kept->data, text->data, text->len);
    kept->len = text->len;

    return NGX_OK;
}
