
/*
 * Whose a response is, as plugins ask for it (kong.response.get_source).
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"


/* A page of an error is nginx's, whoever writes it. */

void
ngx_http_sluice_answer_note(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    /* what nginx's Lua module sends a body by, too */

    ngx_http_sluice_answer_method(r);

    ctx = ngx_http_sluice_ctx(r);

    if (ctx) {
        ctx->answered = r->err_status ? NGX_HTTP_SLUICE_CTX_FAILED
                                      : NGX_HTTP_SLUICE_CTX_EXITED;
    }
}


/* The method that plugins have chosen is the upstream's. */

void
ngx_http_sluice_answer_method(ngx_http_request_t *r)
{
    ngx_uint_t  heads;

    heads = ngx_http_sluice_client_heads(r);

    if (heads != (r->method == NGX_HTTP_HEAD)) {
        r->method = heads ? NGX_HTTP_HEAD : NGX_HTTP_GET;
    }
}


int
sluice_answer_source(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx && ctx->answered == NGX_HTTP_SLUICE_CTX_EXITED) {
        return SLUICE_ANSWER_OF_EXIT;
    }

    if ((ctx && ctx->answered == NGX_HTTP_SLUICE_CTX_FAILED)
        || r->upstream == NULL
        || r->upstream->headers_in.status_n == 0
        || r->err_status)
    {
        return SLUICE_ANSWER_OF_NGINX;
    }

    return SLUICE_ANSWER_OF_UPSTREAM;
}


int
sluice_answer_exit(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->answered = NGX_HTTP_SLUICE_CTX_EXITED;

    return NGX_OK;
}
