
/*
 * Bodies that plugins have bounded (ngx_http_sluice_body.h): each piece is
 * counted before it is kept or passed on, so a body without a length costs no
 * more than its bound and the buffer that goes beyond it.
 */


#include "ngx_http_sluice_body.h"


static off_t ngx_http_sluice_body_bound_count(ngx_chain_t *in);
static ngx_int_t ngx_http_sluice_body_bound_filter(ngx_http_request_t *r,
    ngx_chain_t *in);


static ngx_http_request_body_filter_pt  ngx_http_sluice_body_bound_next;


ngx_int_t
ngx_http_sluice_body_set_bound(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_decision_bound_t *bound)
{
    ctx->bound = ngx_pcalloc(r->main->pool, sizeof(ngx_http_sluice_bound_t));
    if (ctx->bound == NULL) {
        return NGX_ERROR;
    }

    ctx->bound->size = bound->size;
    ctx->bound->status = bound->status;
    ctx->bound->message.data = (u_char *) bound->message.data;
    ctx->bound->message.len = bound->message.length;

    if (r->request_body) {
        ctx->bound->received = ngx_http_sluice_body_bound_count(
                                                       r->request_body->bufs);
    }

    return ctx->bound->received > ctx->bound->size ? NGX_DECLINED : NGX_OK;
}


static off_t
ngx_http_sluice_body_bound_count(ngx_chain_t *in)
{
    off_t  size;

    for (size = 0; in; in = in->next) {
        size += ngx_buf_size(in->buf);
    }

    return size;
}


static ngx_int_t
ngx_http_sluice_body_bound_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_sluice_ctx_t    *ctx;
    ngx_http_sluice_bound_t  *bound;

    ctx = r == r->main ? ngx_http_sluice_ctx(r) : NULL;
    bound = ctx ? ctx->bound : NULL;

    if (bound == NULL) {
        return ngx_http_sluice_body_bound_next(r, in);
    }

    bound->received += ngx_http_sluice_body_bound_count(in);

    if (bound->received <= bound->size) {
        return ngx_http_sluice_body_bound_next(r, in);
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "client sent a body of more than %O bytes", bound->size);

    /* as nginx ends one that is too large for it */

    r->keepalive = 0;
    r->lingering_close = 1;

    return (ngx_int_t) bound->status;
}


void
ngx_http_sluice_body_bound_init(void)
{
    ngx_http_sluice_body_bound_next = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_sluice_body_bound_filter;
}
