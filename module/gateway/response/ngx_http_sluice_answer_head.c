
/*
 * Heads of the gateway's own responses (ngx_http_sluice_answer.h).
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_header.h"


ngx_int_t
ngx_http_sluice_answer_set_server(ngx_http_request_t *r, ngx_str_t *product)
{
    static ngx_str_t  name = ngx_string("Server");

    if (r->headers_out.server) {
        r->headers_out.server->hash = 0;
    }

    r->headers_out.server = ngx_http_sluice_answer_push(r, &name, product);

    return r->headers_out.server ? NGX_OK : NGX_ERROR;
}


/* milliseconds since the request came */

ngx_int_t
ngx_http_sluice_answer_set_latency(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_str_t                      value;
    ngx_time_t                    *tp;
    ngx_msec_int_t                 ms;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    /* of an answer that was not sent */

    ngx_http_sluice_header_each(h, walk, &r->headers_out.headers) {

        if (ngx_http_sluice_header_named(h, name->data, name->len)) {
            h->hash = 0;
        }
    }

    tp = ngx_timeofday();

    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (tp->msec - r->start_msec));

    value.data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%M", (ngx_msec_t) ngx_max(ms, 0))
                - value.data;

    return ngx_http_sluice_answer_push(r, name, &value) ? NGX_OK : NGX_ERROR;
}


ngx_table_elt_t *
ngx_http_sluice_answer_push(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_http_sluice_header_list_push(&r->headers_out.headers, r->pool);
    if (h == NULL) {
        return NULL;
    }

    h->hash = 1;
    h->key = *name;
    h->value = *value;

    return h;
}


/*
 * A request whose header is too large, or that is plain where TLS is spoken,
 * has nginx's own status in the logs, 494 or 497, and in what is sent the one
 * that clients know.
 */

void
sluice_answer_status(ngx_http_request_t *r, int status)
{
    if (r->header_sent) {
        return;
    }

    r->err_status = 0;
    r->headers_out.status = status;
    ngx_str_null(&r->headers_out.status_line);

    if (status == NGX_HTTP_REQUEST_HEADER_TOO_LARGE
        || status == NGX_HTTP_TO_HTTPS)
    {
        ngx_str_set(&r->headers_out.status_line, "400 Bad Request");
    }
}
