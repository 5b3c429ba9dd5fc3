
/*
 * Why tries of a request have failed (ngx_http_sluice_tries.h).
 */


#include "ngx_http_sluice_tries.h"


static const char *const
    ngx_http_sluice_tries_words[NGX_HTTP_SLUICE_TRY_ERRORS] =
{
    [NGX_HTTP_SLUICE_TRY_REFUSED] = "connection refused",
    [NGX_HTTP_SLUICE_TRY_UNREACHABLE] = "host unreachable",
    [NGX_HTTP_SLUICE_TRY_NOT_CONNECTED] = "connect failed",
    [NGX_HTTP_SLUICE_TRY_CONNECT_TIMEOUT] = "connect timeout",
    [NGX_HTTP_SLUICE_TRY_TLS] = "TLS handshake failed",
    [NGX_HTTP_SLUICE_TRY_CERTIFICATE] = "certificate not verified",
    [NGX_HTTP_SLUICE_TRY_WRITE_TIMEOUT] = "write timeout",
    [NGX_HTTP_SLUICE_TRY_READ_TIMEOUT] = "read timeout",
    [NGX_HTTP_SLUICE_TRY_RESET] = "connection reset",
    [NGX_HTTP_SLUICE_TRY_CLOSED] = "connection closed",
    [NGX_HTTP_SLUICE_TRY_INVALID] = "invalid response"
};


const char *
ngx_http_sluice_tries_word(ngx_uint_t error)
{
    return ngx_http_sluice_tries_words[error];
}


/* Without memory it is not known, as where a request has no context. */

void
ngx_http_sluice_tries_fail(ngx_http_request_t *r, ngx_uint_t error)
{
    u_char                 *errors;
    ngx_uint_t              missing;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    /* the context is the main request's, too */

    if (ctx == NULL || r != r->main) {
        return;
    }

    if (ctx->tries == NULL) {
        ctx->tries = ngx_array_create(r->pool, 4, sizeof(u_char));
        if (ctx->tries == NULL) {
            return;
        }
    }

    if (ctx->tries->nelts >= r->upstream_states->nelts) {
        return;
    }

    missing = r->upstream_states->nelts - ctx->tries->nelts;

    errors = ngx_array_push_n(ctx->tries, missing);
    if (errors == NULL) {
        return;
    }

    ngx_memset(errors, NGX_HTTP_SLUICE_TRY_OK, missing);
    errors[missing - 1] = (u_char) error;
}


ngx_uint_t
ngx_http_sluice_tries_error(ngx_http_request_t *r, ngx_uint_t i)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || r != r->main || ctx->tries == NULL
        || i >= ctx->tries->nelts)
    {
        return NGX_HTTP_SLUICE_TRY_OK;
    }

    return ((u_char *) ctx->tries->elts)[i];
}


int
sluice_tries_peer(ngx_http_request_t *r, unsigned i,
    sluice_core_text_t *address)
{
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL || i >= r->upstream_states->nelts) {
        return -1;
    }

    state = r->upstream_states->elts;
    state += i;

    address->data = state->peer ? (const char *) state->peer->data : "";
    address->length = state->peer ? (uint32_t) state->peer->len : 0;

    return (int) state->status;
}
