
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


#include "ngx_http_sluice_fault.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_hop_by_hop.h"
#include "ngx_http_sluice_sanitize.h"
#include "ngx_http_sluice_spoofed_headers.h"
#include "authority.h"
#include "refusal.h"
#include "traversal.h"


static ngx_int_t ngx_http_sluice_sanitize_authority(ngx_http_request_t *r,
    uint32_t *fault);
static ngx_int_t ngx_http_sluice_sanitize_set_host(ngx_http_request_t *r,
    const sluice_core_text_t *port);
static ngx_uint_t ngx_http_sluice_sanitize_hides(ngx_http_request_t *r);


/* nginx goes to the page of an error internally: its request has been here */

ngx_int_t
ngx_http_sluice_sanitize_handler(ngx_http_request_t *r)
{
    uint32_t                          fault;
    ngx_int_t                         rc;
    ngx_http_sluice_sanitize_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, sanitize);

    if (r->internal) {
        return ngx_http_sluice_spoofed_headers_page(r);
    }

    if (!conf->check || r != r->main) {
        return NGX_DECLINED;
    }

    fault = 0;

    rc = ngx_http_sluice_sanitize_authority(r, &fault);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_hop_by_hop_apply(r, &fault);
    }

    if (rc == NGX_OK && conf->reject_traversal
        && ngx_http_sluice_sanitize_hides(r))
    {
        fault = SLUICE_FAULT_TRAVERSAL;
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return fault ? ngx_http_sluice_fault_refuse(r, fault) : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_sanitize_authority(ngx_http_request_t *r, uint32_t *fault)
{
    ngx_str_t           *host;
    const u_char        *end;
    sluice_core_text_t   text, port;

    if (r->host_end) {
        end = r->host_end;

        if (*end == ':') {

            /* what stops the loop is there: nginx has parsed the line */

            do {
                end++;
            } while (*end >= '0' && *end <= '9');
        }

        text.data = (const char *) r->host_start;
        text.length = (uint32_t) (end - r->host_start);

    } else if (r->headers_in.host) {
        host = &r->headers_in.host->value;
        text.data = (const char *) host->data;
        text.length = (uint32_t) host->len;

    } else {
        return NGX_OK;
    }

    if (!sluice_authority_port(&text, &port)) {
        *fault = SLUICE_FAULT_AUTHORITY;
        return NGX_DECLINED;
    }

    return ngx_http_sluice_sanitize_set_host(r, &port);
}


static ngx_int_t
ngx_http_sluice_sanitize_set_host(ngx_http_request_t *r,
    const sluice_core_text_t *port)
{
    u_char           *p;
    size_t            length;
    ngx_str_t        *server;
    ngx_table_elt_t  *host;

    server = &r->headers_in.server;
    length = server->len + (port->length ? 1 + port->length : 0);
    host = r->headers_in.host;

    if (host
        && host->value.len == length
        && ngx_memcmp(host->value.data, server->data, server->len) == 0
        && (port->length == 0 || host->value.data[server->len] == ':')
        && ngx_memcmp(host->value.data + length - port->length, port->data,
                      port->length) == 0)
    {
        return NGX_OK;
    }

    if (host == NULL) {
        host = ngx_http_sluice_header_list_push(&r->headers_in.headers,
                                                r->pool);
        if (host == NULL) {
            return NGX_ERROR;
        }

        ngx_str_set(&host->key, "Host");
        host->lowcase_key = (u_char *) "host";
        host->hash = ngx_hash(ngx_hash(ngx_hash('h', 'o'), 's'), 't');
        r->headers_in.host = host;
    }

    /* a header of nginx ends with a NUL */

    p = ngx_pnalloc(r->pool, length + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    host->value.data = p;
    host->value.len = length;

    p = ngx_cpymem(p, server->data, server->len);

    if (port->length) {
        *p++ = ':';
        p = ngx_cpymem(p, port->data, port->length);
    }

    *p = '\0';

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_sanitize_hides(ngx_http_request_t *r)
{
    u_char  *path, *end, *query;

    path = r->unparsed_uri.data;
    end = path + r->unparsed_uri.len;
    query = memchr(path, '?', end - path);

    return sluice_traversal_hides(path, query ? query : end);
}


ngx_uint_t
ngx_http_sluice_sanitize_passes_traversal(ngx_http_request_t *r)
{
    ngx_http_sluice_sanitize_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, sanitize);

    return !conf->reject_traversal;
}
