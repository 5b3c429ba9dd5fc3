
/*
 * The head of an upstream's response, before nginx makes the client's of it
 * (which lines of it: ngx_http_sluice_response_lines.c).
 *
 * What stock nginx takes as it comes is read as RFC 9110 and 9112 have it:
 *
 *   interim responses (1xx but 101) are skipped, and passed to the client but
 *   for 100; nginx takes the first for the final one, and waits for its body;
 *
 *   101 is for a client that has asked for WebSocket, and for that alone
 *   (ngx_http_sluice_upgrade.c); nginx makes a tunnel of it for each client
 *   that has sent Upgrade;
 *
 *   headers that Connection names do not go on;
 *
 *   no status line is no response, nor has one a status of "2 0 0"; nginx
 *   takes the former for HTTP/0.9.
 *
 * And a header that the gateway has set as its own (sluice.header) replaces
 * the upstream's.
 *
 * nginx's proxy module calls u->process_header for each piece that it reads.
 * We stand before its functions, the one for the status line and the one for
 * the lines below it, and look at what they have read when the head is whole.
 */


#include "ngx_http_sluice_http2.h"
#include "ngx_http_sluice_interim.h"
#include "ngx_http_sluice_peer_data.h"
#include "ngx_http_sluice_upgrade.h"


#define NGX_HTTP_SLUICE_RESPONSE_UPGRADE  426
#define NGX_HTTP_SLUICE_RESPONSE_INTERIM  16  /* before the final response */


static ngx_int_t ngx_http_sluice_response_reinit(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_process_header(
    ngx_http_request_t *r);
static ngx_uint_t ngx_http_sluice_response_has_status(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_end(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_pass(ngx_http_request_t *r,
    ngx_http_sluice_response_t *response);
static ngx_int_t ngx_http_sluice_response_skip(ngx_http_request_t *r,
    ngx_http_sluice_response_t *response);

/*
 * The upstream's lines of these names are not passed on.  Their list is what
 * the module has for its context in a request.
 */

ngx_int_t
ngx_http_sluice_response_add_own(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n)
{
    ngx_uint_t                        i;
    sluice_header_t                 **header;
    ngx_http_sluice_response_own_t   *own;

    own = ngx_http_get_module_ctx(r, ngx_http_sluice_module);

    if (own == NULL) {
        own = ngx_palloc(r->pool, sizeof(ngx_http_sluice_response_own_t));
        if (own == NULL) {
            return NGX_ERROR;
        }

        own->hashes = 0;

        if (ngx_array_init(&own->headers, r->pool, 8,
                           sizeof(sluice_header_t *))
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_http_set_ctx(r, own, ngx_http_sluice_module);
    }

    header = ngx_array_push_n(&own->headers, n);
    if (header == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        header[i] = lines[i].header;
        own->hashes |= ngx_http_sluice_response_own_bit(header[i]->hash);
    }

    return NGX_OK;
}


void
ngx_http_sluice_response_begin(ngx_http_sluice_response_t *response,
    ngx_http_upstream_t *u)
{
    response->process_header = u->process_header;
    response->reinit_request = u->reinit_request;
    response->interim = 0;
    response->interim_size = 0;

    u->process_header = ngx_http_sluice_response_process_header;
    u->reinit_request = ngx_http_sluice_response_reinit;
}


/* For the next try, or the next head of this one. */

static ngx_int_t
ngx_http_sluice_response_reinit(ngx_http_request_t *r)
{
    ngx_http_upstream_t          *u;
    ngx_http_sluice_response_t   *response;
    ngx_http_sluice_peer_data_t  *peer;

    u = r->upstream;
    peer = u->peer.data;
    response = &peer->response;

    if (response->reinit_request(r) != NGX_OK) {
        return NGX_ERROR;
    }

    response->process_header = u->process_header;
    response->interim = 0;

    u->process_header = ngx_http_sluice_response_process_header;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_response_process_header(ngx_http_request_t *r)
{
    ngx_int_t                     rc;
    ngx_uint_t                    version;
    ngx_http_upstream_t          *u;
    ngx_http_sluice_response_t   *response;
    ngx_http_sluice_peer_data_t  *peer;

    u = r->upstream;
    peer = u->peer.data;
    response = &peer->response;

    version = r->http_version;

    for ( ;; ) {

        rc = response->process_header(r);

        if (u->process_header != ngx_http_sluice_response_process_header) {
            response->process_header = u->process_header;
            u->process_header = ngx_http_sluice_response_process_header;
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (!ngx_http_sluice_response_has_status(r)) {

            /* nginx would answer by HTTP/0.9 as well */

            r->http_version = version;
            return NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }

        if (u->headers_in.status_n >= NGX_HTTP_OK) {

            /* its line of Upgrade has to be there (RFC 9110, 15.5.22) */

            if (u->headers_in.status_n == NGX_HTTP_SLUICE_RESPONSE_UPGRADE
                && ngx_http_sluice_upgrade_required(r) != NGX_OK)
            {
                return NGX_ERROR;
            }

            return ngx_http_sluice_response_end(r);
        }

        if (u->headers_in.status_n == NGX_HTTP_SWITCHING_PROTOCOLS) {
            rc = ngx_http_sluice_upgrade_switch(r);

            if (rc == NGX_OK) {
                return ngx_http_sluice_response_end(r);
            }

            return rc == NGX_ERROR ? rc : NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }

        rc = ngx_http_sluice_response_pass(r, response);

        if (rc != NGX_OK) {
            return rc;
        }

        if (ngx_http_sluice_response_skip(r, response) != NGX_OK) {
            return NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }
    }
}


/*
 * nginx takes a status with blanks between its digits, and passes the text
 * from two before the last on: a client might read another one there.
 */

static ngx_uint_t
ngx_http_sluice_response_has_status(ngx_http_request_t *r)
{
    ngx_str_t            *line;
    ngx_uint_t            n;
    ngx_http_upstream_t  *u;

    u = r->upstream;
    n = u->headers_in.status_n;
    line = &u->headers_in.status_line;

    if (n < NGX_HTTP_CONTINUE) {

        /* nginx has logged it */

        return 0;
    }

    if (line->len < 3
        || line->data[0] != '0' + n / 100
        || line->data[1] != '0' + n / 10 % 10
        || line->data[2] != '0' + n % 10)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream sent an invalid status");
        return 0;
    }

    return 1;
}


static ngx_int_t
ngx_http_sluice_response_end(ngx_http_request_t *r)
{
    /* a plugin has made another method a HEAD: no such body will come */

    if (r->method == NGX_HTTP_HEAD && !ngx_http_sluice_client_heads(r)) {
        r->upstream->headers_in.content_length_n = 0;
    }

    /* nor has this one, whatever the upstream says (RFC 9110, 8.6) */

    if (r->upstream->headers_in.status_n == NGX_HTTP_NO_CONTENT) {
        r->upstream->headers_in.content_length_n = -1;
    }

    return ngx_http_sluice_response_drop_lines(r,
                    ngx_http_get_module_ctx(r, ngx_http_sluice_module));
}


/*
 * An interim response to the client (RFC 9110, 15.2), but 100, which is
 * nginx's own to say, and not while the client waits for 101.  Those of a
 * request have as many bytes as the head of a response may have; what is
 * beyond is dropped, and so is one that is not as it should be.
 */

static ngx_int_t
ngx_http_sluice_response_pass(ngx_http_request_t *r,
    ngx_http_sluice_response_t *response)
{
    size_t                size;
    ngx_int_t             rc;
    ngx_uint_t            status;
    ngx_http_upstream_t  *u;

    u = r->upstream;
    status = u->headers_in.status_n;

    if (status == NGX_HTTP_CONTINUE
        || ngx_http_sluice_upgrade_asked(r)
        || !ngx_http_sluice_interim_wanted(r))
    {
        return NGX_OK;
    }

    rc = ngx_http_sluice_response_drop_lines(r,
                    ngx_http_get_module_ctx(r, ngx_http_sluice_module));

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? rc : NGX_OK;
    }

    if (ngx_http_sluice_response_drop_nginx(r) != NGX_OK) {
        return NGX_ERROR;
    }

    size = ngx_http_sluice_interim_size(status, &u->headers_in.headers);

    if (size > u->conf->buffer_size - response->interim_size) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "upstream sent more than %uz bytes of interim "
                      "responses, dropped", u->conf->buffer_size);
        return NGX_OK;
    }

    response->interim_size += size;

    if (r->stream) {
        return ngx_http_sluice_http2_interim(r, status,
                                             &u->headers_in.headers);
    }

    return ngx_http_sluice_interim_send(r, status, &u->headers_in.headers);
}


/* Begins anew with what came behind an interim response. */

static ngx_int_t
ngx_http_sluice_response_skip(ngx_http_request_t *r,
    ngx_http_sluice_response_t *response)
{
    ngx_buf_t            *b;
    ngx_uint_t            interim;
    ngx_http_upstream_t  *u;

    interim = response->interim + 1;

    if (interim > NGX_HTTP_SLUICE_RESPONSE_INTERIM) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream sent more than %d interim responses",
                      NGX_HTTP_SLUICE_RESPONSE_INTERIM);
        return NGX_ERROR;
    }

    u = r->upstream;

    if (ngx_http_sluice_response_reinit(r) != NGX_OK) {
        return NGX_ERROR;
    }

    response->interim = interim;

    /* all of the buffer is the next head's; nginx has copied what it keeps */

    b = &u->buffer;

    b->last = ngx_movemem(b->start, b->pos, b->last - b->pos);
    b->pos = b->start;

    /* as ngx_http_upstream_reinit() */

    u->keepalive = 0;
    u->upgrade = 0;
    u->state->status = 0;

    ngx_memzero(&u->headers_in, sizeof(ngx_http_upstream_headers_in_t));
    u->headers_in.content_length_n = -1;
    u->headers_in.last_modified_time = -1;

    if (ngx_list_init(&u->headers_in.headers, r->pool, 8,
                      sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_list_init(&u->headers_in.trailers, r->pool, 2,
                         sizeof(ngx_table_elt_t));
}
