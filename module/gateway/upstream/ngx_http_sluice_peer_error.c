
/*
 * Why a try has failed (ngx_http_sluice_tries.h keeps it).  nginx tells a
 * balancer only that it has; flags of the connection, and how far the request
 * came, say by what.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_peer_data.h"
#include "ngx_http_sluice_tries.h"


static ngx_uint_t ngx_http_sluice_peer_error_failed(ngx_http_request_t *r,
    ngx_connection_t *c);
static ngx_uint_t ngx_http_sluice_peer_error_connect(ngx_http_request_t *r,
    ngx_connection_t *c);
static ngx_uint_t ngx_http_sluice_peer_error_number(ngx_err_t number);
static ngx_uint_t ngx_http_sluice_peer_error_body(ngx_http_upstream_t *u,
    ngx_connection_t *c);


void
ngx_http_sluice_peer_error(ngx_http_request_t *r, ngx_peer_connection_t *pc,
    ngx_uint_t state)
{
    ngx_uint_t  error;

    if (state & NGX_PEER_FAILED) {
        error = ngx_http_sluice_peer_error_failed(r, pc->connection);

    } else if (pc->connection) {
        error = ngx_http_sluice_peer_error_body(r->upstream, pc->connection);

    } else {
        return;
    }

    if (error != NGX_HTTP_SLUICE_TRY_OK) {
        ngx_http_sluice_tries_fail(r, error);
    }
}


/* before there was a response */

static ngx_uint_t
ngx_http_sluice_peer_error_failed(ngx_http_request_t *r, ngx_connection_t *c)
{
    /* connect() itself has failed: the rest is of an earlier try */

    if (c == NULL || !r->upstream->request_sent) {
        return ngx_http_sluice_peer_error_connect(r, c);
    }

    if (c->write->timedout) {
        return NGX_HTTP_SLUICE_TRY_WRITE_TIMEOUT;
    }

    if (c->read->timedout) {
        return NGX_HTTP_SLUICE_TRY_READ_TIMEOUT;
    }

    if (c->read->error || c->write->error) {
        return NGX_HTTP_SLUICE_TRY_RESET;
    }

    return c->read->eof ? NGX_HTTP_SLUICE_TRY_CLOSED
                        : NGX_HTTP_SLUICE_TRY_INVALID;
}


/* TCP, then TLS: nothing was sent yet */

static ngx_uint_t
ngx_http_sluice_peer_error_connect(ngx_http_request_t *r, ngx_connection_t *c)
{
    SSL        *ssl;
    ngx_err_t   number;

    if (c && c->write->timedout) {
        return NGX_HTTP_SLUICE_TRY_CONNECT_TIMEOUT;
    }

    number = ngx_http_sluice_error_log_connect(r);

    if (c == NULL || c->ssl == NULL || number) {
        return ngx_http_sluice_peer_error_number(number);
    }

    ssl = c->ssl->connection;

    if (c->ssl->handshaked
        || ((SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER)
            && SSL_get_verify_result(ssl) != X509_V_OK))
    {
        return NGX_HTTP_SLUICE_TRY_CERTIFICATE;
    }

    return NGX_HTTP_SLUICE_TRY_TLS;
}


/* 0: the error log leaves such lines out */

static ngx_uint_t
ngx_http_sluice_peer_error_number(ngx_err_t number)
{
    switch (number) {

    case NGX_ECONNREFUSED:
        return NGX_HTTP_SLUICE_TRY_REFUSED;

    case NGX_ECONNRESET:
        return NGX_HTTP_SLUICE_TRY_RESET;

    case NGX_ETIMEDOUT:
        return NGX_HTTP_SLUICE_TRY_CONNECT_TIMEOUT;

    case NGX_ENETDOWN:
    case NGX_ENETUNREACH:
    case NGX_EHOSTDOWN:
    case NGX_EHOSTUNREACH:
        return NGX_HTTP_SLUICE_TRY_UNREACHABLE;

    default:
        return NGX_HTTP_SLUICE_TRY_NOT_CONNECTED;
    }
}


/*
 * Behind a head, as nginx looks at it: whoever leaves before the end of the
 * body has cut the response.
 */

static ngx_uint_t
ngx_http_sluice_peer_error_body(ngx_http_upstream_t *u, ngx_connection_t *c)
{
    ngx_event_pipe_t  *p;

    if (u->state->header_time == (ngx_msec_t) -1) {
        return NGX_HTTP_SLUICE_TRY_OK;
    }

    if (c->read->timedout) {
        return NGX_HTTP_SLUICE_TRY_READ_TIMEOUT;
    }

    if (c->write->timedout) {
        return NGX_HTTP_SLUICE_TRY_WRITE_TIMEOUT;
    }

    if (c->read->error) {
        return NGX_HTTP_SLUICE_TRY_RESET;
    }

    if (u->upgrade) {
        return NGX_HTTP_SLUICE_TRY_OK;
    }

    if (u->buffering) {
        p = u->pipe;

        return p->upstream_eof && !p->upstream_done && p->length != -1
               ? NGX_HTTP_SLUICE_TRY_CLOSED : NGX_HTTP_SLUICE_TRY_OK;
    }

    return c->read->eof && u->length != 0 && u->length != -1
           ? NGX_HTTP_SLUICE_TRY_CLOSED : NGX_HTTP_SLUICE_TRY_OK;
}
