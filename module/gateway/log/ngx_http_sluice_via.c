
/*
 * What Via says of a request's way, and of its response's
 * (RFC 9110, 7.6.3).
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_value.h"
#include "ngx_http_sluice_via.h"


static ngx_int_t ngx_http_sluice_via_append(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_list_t *headers);
static size_t ngx_http_sluice_via_others(ngx_list_t *headers, u_char *p);


ngx_int_t
ngx_http_sluice_via_of_request(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_via_append(r, v, &r->headers_in.headers);
}


ngx_int_t
ngx_http_sluice_via_of_response(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    static ngx_list_t  none;

    return ngx_http_sluice_via_append(r, v,
               r->upstream ? &r->upstream->headers_in.headers : &none);
}


/* all Via lines in one, with ours behind them */

static ngx_int_t
ngx_http_sluice_via_append(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_list_t *headers)
{
    u_char                      *text, *p;
    size_t                       length;
    ngx_http_sluice_via_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, via);

    length = ngx_http_sluice_via_others(headers, NULL);

    if (length == 0) {
        return ngx_http_sluice_value(v, conf->own.data, conf->own.len);
    }

    text = ngx_pnalloc(r->pool, length + conf->own.len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = text + ngx_http_sluice_via_others(headers, text);
    ngx_memcpy(p, conf->own.data, conf->own.len);

    return ngx_http_sluice_value(v, text, length + conf->own.len);
}


/* writes what these lines say, unless p is NULL; returns its length */

static size_t
ngx_http_sluice_via_others(ngx_list_t *headers, u_char *p)
{
    size_t                         length;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    length = 0;

    ngx_http_sluice_header_each(h, walk, headers) {

        if (!ngx_http_sluice_header_named(h, "via", 3) || h->value.len == 0) {
            continue;
        }

        length += h->value.len + sizeof(", ") - 1;

        if (p) {
            p = ngx_cpymem(p, h->value.data, h->value.len);
            p = ngx_cpymem(p, ", ", sizeof(", ") - 1);
        }
    }

    return length;
}
