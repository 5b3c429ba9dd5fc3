
/*
 * What plugins do with a response that is held back
 * (ngx_http_sluice_buffered.h).
 */


#include "ngx_http_sluice_buffered_data.h"


int
sluice_buffered_ask(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_buffered_t  *buffered;

    ctx = ngx_http_sluice_ctx_make(r);
    buffered = ctx ? ngx_http_sluice_buffered_make(r, ctx) : NULL;

    if (buffered == NULL) {
        return NGX_ERROR;
    }

    buffered->wanted = 1;

    return NGX_OK;
}


int
sluice_buffered_body(ngx_http_request_t *r, sluice_core_text_t *body)
{
    u_char                      *p;
    ngx_str_t                   *piece;
    ngx_uint_t                   i;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_buffered_t  *buffered;

    ctx = ngx_http_sluice_ctx(r);
    buffered = ctx ? ctx->buffered : NULL;

    body->data = "";
    body->length = 0;

    if (buffered == NULL || !buffered->wanted) {
        return NGX_DECLINED;
    }

    if (buffered->size == 0 || buffered->bounded) {
        return NGX_OK;
    }

    piece = buffered->pieces.elts;

    if (buffered->pieces.nelts > 1) {
        p = ngx_palloc(r->pool, buffered->size);
        if (p == NULL) {
            return NGX_ERROR;
        }

        body->data = (const char *) p;

        for (i = 0; i < buffered->pieces.nelts; i++) {
            p = ngx_cpymem(p, piece[i].data, piece[i].len);
            ngx_pfree(r->pool, piece[i].data);
        }

        piece->data = (u_char *) body->data;
        piece->len = buffered->size;
        buffered->pieces.nelts = 1;
        buffered->room = 0;
    }

    body->data = (const char *) piece->data;
    body->length = (uint32_t) piece->len;

    return NGX_OK;
}


void
sluice_buffered_release(ngx_http_request_t *r)
{
    ngx_table_elt_t             *ranges;
    ngx_http_sluice_buffered_t  *buffered;

    buffered = ngx_http_sluice_ctx(r)->buffered;
    ranges = r->headers_out.accept_ranges;

    /* what nginx's Lua module takes from each response that it sends */

    buffered->length = r->headers_out.content_length_n;
    buffered->ranges = ranges && ranges->hash ? ranges : NULL;
    buffered->state = NGX_HTTP_SLUICE_BUFFERED_RELEASED;
}


void
sluice_buffered_drop(ngx_http_request_t *r, int head)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL
        || ctx->buffered == NULL
        || ctx->buffered->state != NGX_HTTP_SLUICE_BUFFERED_WHOLE)
    {
        return;
    }

    ctx->buffered->state = NGX_HTTP_SLUICE_BUFFERED_PASSED;

    if (head) {
        ngx_http_clean_header(r);
    }
}


/* A second one replaces the first. */

int
sluice_buffered_replace(ngx_http_request_t *r, const char *body, size_t length)
{
    u_char                      *p;
    ngx_str_t                   *piece;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_buffered_t  *buffered;

    ctx = ngx_http_sluice_ctx_make(r);
    buffered = ctx ? ngx_http_sluice_buffered_make(r, ctx) : NULL;

    p = ngx_pnalloc(r->pool, length + 1);

    if (buffered == NULL || p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, body, length);

    buffered->state = NGX_HTTP_SLUICE_BUFFERED_REPLACED;
    buffered->pieces.nelts = 0;
    buffered->room = 0;
    buffered->size = 0;

    if (length) {
        piece = ngx_array_push(&buffered->pieces);
        if (piece == NULL) {
            return NGX_ERROR;
        }

        piece->data = p;
        piece->len = length;
    }

    r->filter_need_in_memory = 1;

    return NGX_OK;
}
