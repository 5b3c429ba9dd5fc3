
/*
 * WebSocket through the gateway (ngx_http_sluice_upgrade.h).  When the
 * upstream has switched, nginx carries the bytes of both sides until one of
 * them closes, or none has sent any for as long as a read may take.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_upgrade.h"


static ngx_uint_t ngx_http_sluice_upgrade_only(ngx_list_t *headers);
static ngx_uint_t ngx_http_sluice_upgrade_drops(ngx_table_elt_t *h,
    void *data);


/* what marks a line: no other value has this address */

static u_char  ngx_http_sluice_upgrade_websocket[] = "websocket";

static ngx_str_t  ngx_http_sluice_upgrade_name = ngx_string("Upgrade");


ngx_uint_t
ngx_http_sluice_upgrade_accept(ngx_http_request_t *r)
{
    if (r->headers_in.upgrade == NULL
        || r->method != NGX_HTTP_GET
        || r->http_version != NGX_HTTP_VERSION_11
        || r->headers_in.chunked
        || r->headers_in.content_length_n > 0
        || !ngx_http_sluice_upgrade_only(&r->headers_in.headers))
    {
        return 0;
    }

    r->headers_in.upgrade->value.data = ngx_http_sluice_upgrade_websocket;

    return 1;
}


ngx_uint_t
ngx_http_sluice_upgrade_asked(ngx_http_request_t *r)
{
    return r->headers_in.upgrade
           && r->headers_in.upgrade->value.data
              == ngx_http_sluice_upgrade_websocket;
}


ngx_int_t
ngx_http_sluice_upgrade_switch(ngx_http_request_t *r)
{
    ngx_http_upstream_t  *u;

    static ngx_str_t      websocket =
                                ngx_string(ngx_http_sluice_upgrade_websocket);

    u = r->upstream;

    if (!ngx_http_sluice_upgrade_asked(r)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream switched protocols without being asked");
        return NGX_DECLINED;
    }

    if (!ngx_http_sluice_upgrade_only(&u->headers_in.headers)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream switched to another protocol than asked");
        return NGX_DECLINED;
    }

    if (ngx_http_sluice_header_list_drop(&u->headers_in.headers, r->pool,
                                         ngx_http_sluice_upgrade_drops, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    u->headers_in.content_length = NULL;
    u->headers_in.content_length_n = -1;

    /* not the upstream's line: no such line of an upstream passes */

    return ngx_http_sluice_answer_push(r, &ngx_http_sluice_upgrade_name,
                                       &websocket)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_sluice_upgrade_require(ngx_http_request_t *r, ngx_str_t *protocols)
{
    static ngx_str_t  connection = ngx_string("Connection");

    if (r->http_version >= NGX_HTTP_VERSION_20) {
        return NGX_OK;
    }

    /* nginx writes a line of Connection as well, for what it does itself */

    if (ngx_http_sluice_answer_push(r, &connection,
                                    &ngx_http_sluice_upgrade_name)
        == NULL)
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_answer_push(r, &ngx_http_sluice_upgrade_name,
                                       protocols)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_sluice_upgrade_required(ngx_http_request_t *r)
{
    ngx_uint_t                     n;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    if (r->http_version >= NGX_HTTP_VERSION_20) {
        return NGX_OK;
    }

    n = 0;

    ngx_http_sluice_header_each(h, walk, &r->upstream->headers_in.headers) {

        if (!ngx_http_sluice_header_named(h, "upgrade", 7)) {
            continue;
        }

        if (n++ == 0) {

            if (ngx_http_sluice_upgrade_require(r, &h->value) != NGX_OK) {
                return NGX_ERROR;
            }

        } else if (ngx_http_sluice_answer_push(r,
                                               &ngx_http_sluice_upgrade_name,
                                               &h->value)
                   == NULL)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* whether one line of Upgrade is there, and all it has is websocket */

static ngx_uint_t
ngx_http_sluice_upgrade_only(ngx_list_t *headers)
{
    ngx_str_t                     *value;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    value = NULL;

    ngx_http_sluice_header_each(h, walk, headers) {

        if (!ngx_http_sluice_header_named(h, "upgrade", 7)) {
            continue;
        }

        if (value) {
            return 0;
        }

        value = &h->value;
    }

    return value
           && value->len == sizeof(ngx_http_sluice_upgrade_websocket) - 1
           && ngx_strncasecmp(value->data, ngx_http_sluice_upgrade_websocket,
                              value->len)
              == 0;
}


/* The head of a 101 has no length (RFC 9110, 8.6), though some say one. */

static ngx_uint_t
ngx_http_sluice_upgrade_drops(ngx_table_elt_t *h, void *data)
{
    return ngx_http_sluice_header_named(h, "upgrade", 7)
           || ngx_http_sluice_header_named(h, "content-length", 14);
}
