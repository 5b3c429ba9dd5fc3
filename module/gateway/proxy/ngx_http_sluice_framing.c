
/*
 * A plugin in Lua may write the Content-Length of a request, which nginx
 * believes: it would read so much of the client, and tell the upstream so
 * much.  What was read as a body, or sent as one, and what the header says are
 * two lengths then, and the rest of a body is read as the next request of the
 * connection, the client's or the upstream's.  So what the client has said
 * counts as long as the body was not read, and of a body that is there, or was
 * replaced, its bytes.
 */


#include "ngx_http_sluice_framing.h"


void
ngx_http_sluice_framing_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    if (!ctx->is_framed) {
        ctx->is_framed = 1;
        ctx->announced = r->headers_in.content_length_n;
    }
}


void
ngx_http_sluice_framing_end(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    off_t         length;
    ngx_chain_t  *cl;

    if (!ctx->is_framed || r->discard_body) {
        return;
    }

    length = 0;

    if (r->request_body) {

        /* it is read whole, in memory or in a file, before Lua goes on */

        for (cl = r->request_body->bufs; cl; cl = cl->next) {
            length += ngx_buf_size(cl->buf);
        }

        if (length || ctx->announced > 0 || r->headers_in.chunked) {
            r->headers_in.content_length_n = length;
            return;
        }
    }

    r->headers_in.content_length_n = ctx->announced;
}
