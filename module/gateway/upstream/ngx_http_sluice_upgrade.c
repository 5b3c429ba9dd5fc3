
/*
 * WebSocket through the gateway (ngx_http_sluice_upgrade.h).  When the
 * upstream has switched, nginx carries the bytes of both sides until one of
 * them closes, or none has sent any for as long as a read may take.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_upgrade.h"


static ngx_int_t ngx_http_sluice_upgrade_push(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static ngx_uint_t ngx_http_sluice_upgrade_only(ngx_list_t *headers);
static ngx_uint_t ngx_http_sluice_upgrade_drops(ngx_table_elt_t *h,
    void *data);
static ngx_uint_t ngx_http_sluice_upgrade_is(ngx_table_elt_t *h,
    const char *name, size_t length);


/* what marks a line: no other value has this address */

static u_char  ngx_http_sluice_upgrade_websocket[] = "websocket";


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

    return ngx_http_sluice_upgrade_push(r, "Upgrade", &websocket);
}


ngx_int_t
ngx_http_sluice_upgrade_require(ngx_http_request_t *r, ngx_str_t *protocols)
{
    static ngx_str_t  upgrade = ngx_string("Upgrade");

    if (r->http_version >= NGX_HTTP_VERSION_20) {
        return NGX_OK;
    }

    /* nginx writes a line of Connection as well, for what it does itself */

    if (ngx_http_sluice_upgrade_push(r, "Connection", &upgrade) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_upgrade_push(r, "Upgrade", protocols);
}


ngx_int_t
ngx_http_sluice_upgrade_required(ngx_http_request_t *r)
{
    ngx_int_t         rc;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (r->http_version >= NGX_HTTP_VERSION_20) {
        return NGX_OK;
    }

    rc = NGX_DECLINED;                            /* there is none yet */

    for (part = &r->upstream->headers_in.headers.part; part;
         part = part->next)
    {
        h = part->elts;

        for (i = 0; i < part->nelts && rc != NGX_ERROR; i++) {

            if (h[i].key.len != 7
                || ngx_strncasecmp(h[i].key.data, (u_char *) "upgrade", 7)
                   != 0)
            {
                continue;
            }

            rc = (rc == NGX_OK)
                 ? ngx_http_sluice_upgrade_push(r, "Upgrade", &h[i].value)
                 : ngx_http_sluice_upgrade_require(r, &h[i].value);
        }
    }

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upgrade_push(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_http_sluice_header_list_push(&r->headers_out.headers, r->pool);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;

    return NGX_OK;
}


/* whether one line of Upgrade is there, and all it has is websocket */

static ngx_uint_t
ngx_http_sluice_upgrade_only(ngx_list_t *headers)
{
    ngx_str_t        *value;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    value = NULL;

    for (part = &headers->part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (!ngx_http_sluice_upgrade_is(&h[i], "upgrade", 7)) {
                continue;
            }

            if (value) {
                return 0;
            }

            value = &h[i].value;
        }
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
    return ngx_http_sluice_upgrade_is(h, "upgrade", 7)
           || ngx_http_sluice_upgrade_is(h, "content-length", 14);
}


static ngx_uint_t
ngx_http_sluice_upgrade_is(ngx_table_elt_t *h, const char *name, size_t length)
{
    return h->key.len == length
           && ngx_memcmp(h->lowcase_key, name, length) == 0;
}
