
/*
 * What plugins read of an upstream's response (kong.service.response).  Its
 * lines are there as long as the request, without those that ended here.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_response_read.h"


static ngx_http_upstream_t *ngx_http_sluice_response_read(
    ngx_http_request_t *r);
static void ngx_http_sluice_response_text(sluice_core_text_t *text,
    const ngx_str_t *string);


/* NULL: no head has come; of a list that nobody has made there is no pool. */

static ngx_http_upstream_t *
ngx_http_sluice_response_read(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    return u && u->headers_in.status_n && u->headers_in.headers.pool
           ? u : NULL;
}


int
sluice_response_status(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u;

    u = ngx_http_sluice_response_read(r);

    return u ? (int) u->headers_in.status_n : 0;
}


int
sluice_response_line_of(ngx_http_request_t *r, const char *name, size_t length,
    sluice_core_text_t *value)
{
    ngx_table_elt_t               *h;
    ngx_http_upstream_t           *u;
    ngx_http_sluice_header_walk_t  walk;

    u = ngx_http_sluice_response_read(r);

    if (u == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_sluice_header_each(h, walk, &u->headers_in.headers) {

        if (ngx_http_sluice_header_named(h, name, length)) {
            ngx_http_sluice_response_text(value, &h->value);
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


int
sluice_response_line(ngx_http_request_t *r, int i, sluice_core_text_t *name,
    sluice_core_text_t *value)
{
    int                            n;
    ngx_table_elt_t               *h;
    ngx_http_upstream_t           *u;
    ngx_http_sluice_header_walk_t  walk;

    u = ngx_http_sluice_response_read(r);

    if (u == NULL) {
        return -1;
    }

    n = 0;

    ngx_http_sluice_header_each(h, walk, &u->headers_in.headers) {

        if (n++ == i) {
            ngx_http_sluice_response_text(name, &h->key);
            ngx_http_sluice_response_text(value, &h->value);
            return n;
        }
    }

    return -1;
}


static void
ngx_http_sluice_response_text(sluice_core_text_t *text,
    const ngx_str_t *string)
{
    text->data = (const char *) string->data;
    text->length = (uint32_t) string->len;
}
