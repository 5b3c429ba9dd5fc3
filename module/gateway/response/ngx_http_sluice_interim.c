
/*
 * Sends interim responses (ngx_http_sluice_interim.h) by HTTP/1.1, and says
 * who takes them.
 */


#include "ngx_http_sluice_buffered_data.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_interim.h"


ngx_uint_t
ngx_http_sluice_interim_wanted(ngx_http_request_t *r)
{
    ngx_connection_t       *c;
    ngx_http_sluice_ctx_t  *ctx;

    c = r->connection;
    ctx = ngx_http_sluice_ctx(r);

    return r == r->main
           && r->http_version >= NGX_HTTP_VERSION_11
           && !r->header_sent
           && !c->error
           && !c->buffered
           && (ctx == NULL || ctx->buffered == NULL);
}


ngx_int_t
ngx_http_sluice_interim_send(ngx_http_request_t *r, ngx_str_t *status_line,
    ngx_list_t *headers)
{
    u_char                         *p;
    ngx_buf_t                      *b;
    ngx_chain_t                     out;
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    b = ngx_create_temp_buf(r->pool, sizeof("HTTP/1.1 \r\n\r\n") - 1
                                     + status_line->len
                                     + ngx_http_sluice_interim_size(headers));
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(b->last, "HTTP/1.1 ", sizeof("HTTP/1.1 ") - 1);
    p = ngx_cpymem(p, status_line->data, status_line->len);
    *p++ = CR; *p++ = LF;

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

    (void) ngx_http_write_filter(r, &out);

    return NGX_OK;
}


size_t
ngx_http_sluice_interim_size(ngx_list_t *headers)
{
    size_t                          size;
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    size = 0;

    ngx_http_sluice_header_each(h, walk, headers) {
        size += h->key.len + sizeof(": \r\n") - 1 + h->value.len;
    }

    return size;
}
