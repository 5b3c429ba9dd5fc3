
/*
 * Sends interim responses (ngx_http_sluice_interim.h) by HTTP/1.1, and says
 * who takes them.
 */


#include "ngx_http_sluice_buffered_data.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_interim.h"


#define NGX_HTTP_SLUICE_INTERIM_HINTS  103


/* not the upstream's: a client may read another status in its line */

#define ngx_http_sluice_interim_reason(status)                                \
    ((status) == NGX_HTTP_SLUICE_INTERIM_HINTS ? "Early Hints" : "")


ngx_uint_t
ngx_http_sluice_interim_wanted(ngx_http_request_t *r)
{
    ngx_connection_t                *c;
    ngx_http_sluice_ctx_t           *ctx;
    ngx_http_sluice_interim_conf_t  *conf;

    c = r->connection;
    ctx = ngx_http_sluice_ctx(r);
    conf = ngx_http_sluice_srv_conf(r, interim);

    return conf->enabled
           && r == r->main
           && (r->stream || r->http_version == NGX_HTTP_VERSION_11)
           && !r->header_sent
           && !c->error
           && !c->buffered
           && (ctx == NULL || ctx->buffered == NULL);
}


ngx_int_t
ngx_http_sluice_interim_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_list_t *headers)
{
    off_t                           sent;
    u_char                         *p;
    ngx_buf_t                      *b;
    ngx_chain_t                     out;
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    b = ngx_create_temp_buf(r->pool,
                            ngx_http_sluice_interim_size(status, headers));
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(b->last, "HTTP/1.1 %03ui %s" CRLF, status,
                    ngx_http_sluice_interim_reason(status));

    ngx_http_sluice_header_each(h, walk, headers) {
        p = ngx_cpymem(p, h->key.data, h->key.len);
        *p++ = ':'; *p++ = ' ';
        p = ngx_cpymem(p, h->value.data, h->value.len);
        *p++ = CR; *p++ = LF;
    }

    *p++ = CR; *p++ = LF;

    b->last = p;
    b->flush = 1;

    out.buf = b;
    out.next = NULL;

    /*
     * What the socket does not take goes before the final response.  A client
     * who has left is found by who waits for that.
     */

    sent = r->connection->sent;

    (void) ngx_http_write_filter(r, &out);

    r->connection->sent = sent;

    return NGX_OK;
}


size_t
ngx_http_sluice_interim_size(ngx_uint_t status, ngx_list_t *headers)
{
    size_t                          size;
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    size = sizeof("HTTP/1.1 103 \r\n\r\n") - 1
           + ngx_strlen(ngx_http_sluice_interim_reason(status));

    ngx_http_sluice_header_each(h, walk, headers) {
        size += h->key.len + sizeof(": \r\n") - 1 + h->value.len;
    }

    return size;
}
