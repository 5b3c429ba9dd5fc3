
/*
 * Requests that last: tunnels, downloads.  They need what their worker has
 * compiled (ngx_http_sluice_compiled.h) until their response begins, and a
 * little of it for logs and late phases, of which they get copies.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_route.h"


ngx_uint_t
ngx_http_sluice_route_detach(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx->compiled == NULL) {
        return 1;
    }

    if (r->upstream == NULL || !r->upstream->header_sent) {
        return 0;
    }

    /* a subrequest, a mirror's say, has its context and may try other peers */

    if (r->count != 1 || r->done) {
        return 0;
    }

    if (ngx_http_sluice_peer_detach(r) != NGX_OK
        || ngx_http_sluice_chain_detach(r, ctx) != NGX_OK)
    {
        return 0;
    }

    ctx->compiled = NULL;
    ctx->service = NULL;

    return 1;
}
