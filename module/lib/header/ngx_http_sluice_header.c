
/*
 * Headers whose names are known beforehand, set without making a string of
 * them again for each request.  These functions do the plain case only, and
 * decline everything else, which the caller then does the slow way: a header
 * that is there already, a value that has to be escaped, a request that has no
 * headers (HTTP/0.9, timers) or whose answer has begun, and no request at all
 * (init_by_lua).
 */


#include "ngx_http_sluice_header.h"


static ngx_uint_t ngx_http_sluice_header_has(ngx_http_request_t *r);
static int ngx_http_sluice_header_push(ngx_http_request_t *r, ngx_list_t *list,
    sluice_header_t *header, const u_char *value, size_t length);
static ngx_int_t ngx_http_sluice_header_replaces(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n);


ngx_int_t  (*ngx_http_sluice_header_own)(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n);


/* how many such headers the request has, and the value of the first */

int
sluice_header_of_request(ngx_http_request_t *r, sluice_header_t *header,
    sluice_header_value_t *first)
{
    ngx_uint_t        count;
    ngx_table_elt_t  *elt;

    if (!ngx_http_sluice_header_has(r)) {
        return 0;
    }

    elt = ngx_http_sluice_header_find(&r->headers_in.headers, header->lowcase,
                                      header->length, &count);

    if (elt) {
        first->length = elt->value.len;
        first->data = elt->value.data;
    }

    return (int) count;
}


/* NGX_OK, NGX_DECLINED: nothing was done, NGX_ERROR: no memory */

int
sluice_header_to_request(ngx_http_request_t *r, sluice_header_t *header,
    const u_char *value, size_t length)
{
    /* ngx.req.set_header sets none of HTTP/0.9 */

    if (!ngx_http_sluice_header_has(r)
        || r->http_version < NGX_HTTP_VERSION_10)
    {
        return NGX_DECLINED;
    }

    return ngx_http_sluice_header_push(r, &r->headers_in.headers, header,
                                       value, length);
}


int
sluice_header_to_response(ngx_http_request_t *r, sluice_header_t *header,
    const u_char *value, size_t length)
{
    ngx_http_sluice_header_line_t  line;

    if (r == NULL
        || r->connection->fd == (ngx_socket_t) -1
        || r->header_sent)
    {
        return NGX_DECLINED;
    }

    if (header->own) {
        line.header = header;

        if (ngx_http_sluice_header_replaces(r, &line, 1) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_header_push(r, &r->headers_out.headers, header,
                                       value, length);
}


int
sluice_header_number_to_response(ngx_http_request_t *r,
    sluice_header_t *header, int64_t value)
{
    u_char  *last, text[NGX_INT64_LEN];

    last = ngx_sprintf(text, "%L", value);

    return sluice_header_to_response(r, header, text, last - text);
}


/*
 * Until the gateway adds to it HTTP/0.9 has no list of them, nor has a request
 * that nginx refused for its request line, nor a timer; init_by_lua has no
 * request.
 */

static ngx_uint_t
ngx_http_sluice_header_has(ngx_http_request_t *r)
{
    return r != NULL
           && r->connection->fd != (ngx_socket_t) -1
           && r->headers_in.headers.last != NULL;
}


static int
ngx_http_sluice_header_push(ngx_http_request_t *r, ngx_list_t *list,
    sluice_header_t *header, const u_char *value, size_t length)
{
    size_t       i;
    u_char      *copy;
    ngx_uint_t   count;

    if (length == 0) {
        return NGX_DECLINED;
    }

    for (i = 0; i < length; i++) {
        if (value[i] < 0x20 || value[i] == 0x7f) {
            return NGX_DECLINED;
        }
    }

    if (ngx_http_sluice_header_find(list, header->lowcase, header->length,
                                    &count))
    {
        return NGX_DECLINED;
    }

    copy = ngx_pnalloc(r->pool, length);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy, value, length);

    return (int) ngx_http_sluice_header_add(r, list, header, copy, length);
}


ngx_int_t
ngx_http_sluice_header_set_response(ngx_http_request_t *r,
    ngx_http_sluice_header_line_t *lines, ngx_uint_t n)
{
    ngx_uint_t   i, is_empty;
    ngx_list_t  *list;

    list = &r->headers_out.headers;
    is_empty = list->part.nelts == 0 && list->part.next == NULL;

    if (ngx_http_sluice_header_replaces(r, lines, n) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {

        if (!is_empty
            && ngx_http_sluice_header_list_drop(list, r->pool,
                                                ngx_http_sluice_header_is,
                                                lines[i].header)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (ngx_http_sluice_header_add(r, list, lines[i].header,
                                       lines[i].value.data,
                                       lines[i].value.length)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_header_replaces(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n)
{
    return ngx_http_sluice_header_own
           ? ngx_http_sluice_header_own(r, lines, n) : NGX_OK;
}


ngx_uint_t
ngx_http_sluice_header_is(ngx_table_elt_t *h, void *data)
{
    sluice_header_t  *header = data;

    return ngx_http_sluice_header_named(h, header->lowcase, header->length);
}


ngx_int_t
ngx_http_sluice_header_add(ngx_http_request_t *r, ngx_list_t *list,
    sluice_header_t *header, u_char *value, size_t length)
{
    ngx_table_elt_t  *elt;

    elt = ngx_http_sluice_header_list_push(list, r->pool);
    if (elt == NULL) {
        return NGX_ERROR;
    }

    elt->key.data = header->name;
    elt->key.len = header->length;
    elt->value.data = value;
    elt->value.len = length;
    elt->lowcase_key = header->lowcase;
    elt->hash = (ngx_uint_t) header->hash;

    return NGX_OK;
}
