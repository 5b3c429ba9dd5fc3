
/*
 * What a request is made to be, or refused for, before anything of the gateway
 * looks at it (directive sluice_check_requests).
 *
 * Authority: the target's, if it has one, else that of the Host header (RFC
 * 9112, 3.2.2 and 3.3).  nginx routes by this, but leaves a Host header that
 * differs, or that has more in it than host and port, as it came.  Here the
 * header becomes what has routed, in one spelling, so that no reader of it can
 * see another one.
 *
 * Connection: what it names is removed (ngx_http_sluice_hop_by_hop.c).
 *
 * Path: dot segments that only an upstream would see (traversal.c).
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_hop_by_hop.h"
#include "ngx_http_sluice_sanitize.h"
#include "ngx_http_sluice_spoofed_headers.h"
#include "traversal.h"


static ngx_int_t ngx_http_sluice_sanitize_authority(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_sanitize_split(ngx_str_t *text,
    ngx_str_t *port);
static ngx_int_t ngx_http_sluice_sanitize_set_host(ngx_http_request_t *r,
    ngx_str_t *port);


/* in a host, besides what its kind has: letters, digits, "-._~!$&'()*+,;=" */

static uint32_t  ngx_sluice_request_host[8] = {
    0x00000000,
    0x2bff7fd2, /*    ?>=< ;:98 7654 3210 /.-, +*)( '&%$ #"!  */
    0x87fffffe, /*    _^]\  [ZYX WVUT SRQP ONML KJIH GFED CBA@ */
    0x47fffffe, /*     ~}| {zyx wvut srqp onml kjih gfed cba` */
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


/* nginx goes to the page of an error internally: its request has been here */

ngx_int_t
ngx_http_sluice_sanitize_handler(ngx_http_request_t *r)
{
    u_char                           *path, *end, *query;
    ngx_int_t                         rc;
    ngx_http_sluice_sanitize_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, sanitize);

    if (r->internal) {
        return ngx_http_sluice_spoofed_headers_page(r);
    }

    if (!conf->check || r != r->main) {
        return NGX_DECLINED;
    }

    rc = ngx_http_sluice_sanitize_authority(r);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_hop_by_hop_apply(r);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->reject_traversal) {
        path = r->unparsed_uri.data;
        end = path + r->unparsed_uri.len;
        query = memchr(path, '?', end - path);

        if (sluice_traversal_hides(path, query ? query : end)) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "client sent an encoded path traversal");
            return NGX_HTTP_BAD_REQUEST;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_sanitize_authority(ngx_http_request_t *r)
{
    ngx_str_t  text, port;

    ngx_str_null(&port);

    if (r->host_end) {
        text.data = r->host_start;
        text.len = r->host_end - r->host_start;

        if (*r->host_end == ':') {

            /* what stops the loop is there: nginx has parsed the line */

            do {
                text.len++;
            } while (text.data[text.len] >= '0' && text.data[text.len] <= '9');
        }

    } else if (r->headers_in.host) {
        text = r->headers_in.host->value;

    } else {
        return NGX_OK;
    }

    if (ngx_http_sluice_sanitize_split(&text, &port) != NGX_OK) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent invalid authority: \"%V\"", &text);
        return NGX_HTTP_BAD_REQUEST;
    }

    return ngx_http_sluice_sanitize_set_host(r, &port);
}


/* RFC 3986, 3.2.2: host, and a port if there is one, without leading zeros */

static ngx_int_t
ngx_http_sluice_sanitize_split(ngx_str_t *text, ngx_str_t *port)
{
    u_char     *p, *end;
    ngx_uint_t  literal;

    p = text->data;
    end = p + text->len;
    literal = (p < end && *p == '[');
    p += literal;

    for ( /* void */ ; p < end; p++) {

        if ((ngx_sluice_request_host[*p >> 5] & (1U << (*p & 0x1f)))
            || *p == (literal ? ':' : '%'))
        {
            continue;
        }

        if (*p == (literal ? ']' : ':')) {
            p += literal;
            break;
        }

        return NGX_DECLINED;
    }

    if (literal && p[-1] != ']') {
        return NGX_DECLINED;
    }

    port->data = p;
    port->len = 0;

    if (p == end) {
        return NGX_OK;
    }

    if (*p++ != ':') {
        return NGX_DECLINED;
    }

    while (end - p > 1 && *p == '0') {
        p++;
    }

    port->data = p;
    port->len = end - p;

    if (port->len == 0) {
        return NGX_OK;
    }

    if (port->len > sizeof("65535") - 1) {
        return NGX_DECLINED;
    }

    return (ngx_uint_t) ngx_atoi(port->data, port->len) <= 65535
           ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_sanitize_set_host(ngx_http_request_t *r, ngx_str_t *port)
{
    u_char           *p;
    size_t            length;
    ngx_str_t        *server;
    ngx_table_elt_t  *host;

    server = &r->headers_in.server;
    length = server->len + (port->len ? 1 + port->len : 0);
    host = r->headers_in.host;

    if (host
        && host->value.len == length
        && ngx_memcmp(host->value.data, server->data, server->len) == 0
        && (port->len == 0 || host->value.data[server->len] == ':')
        && ngx_memcmp(host->value.data + length - port->len, port->data,
                      port->len) == 0)
    {
        return NGX_OK;
    }

    if (host == NULL) {
        host = ngx_http_sluice_header_list_push(&r->headers_in.headers,
                                                r->pool);
        if (host == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_str_set(&host->key, "Host");
        host->lowcase_key = (u_char *) "host";
        host->hash = ngx_hash(ngx_hash(ngx_hash('h', 'o'), 's'), 't');
        r->headers_in.host = host;
    }

    /* a header of nginx ends with a NUL */

    p = ngx_pnalloc(r->pool, length + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    host->value.data = p;
    host->value.len = length;

    p = ngx_cpymem(p, server->data, server->len);

    if (port->len) {
        *p++ = ':';
        p = ngx_cpymem(p, port->data, port->len);
    }

    *p = '\0';

    return NGX_OK;
}


ngx_uint_t
ngx_http_sluice_sanitize_passes_traversal(ngx_http_request_t *r)
{
    ngx_http_sluice_sanitize_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, sanitize);

    return !conf->reject_traversal;
}
