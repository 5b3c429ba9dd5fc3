
/*
 * What all logs say of a request in the same way.
 */


#include "ngx_http_sluice_log.h"


/* as $request_method */

ngx_str_t
ngx_http_sluice_log_method(ngx_http_request_t *r)
{
    ngx_str_t  head;

    /* refused in its first line; of others the page of errors has GET */

    if (r->method_name.len == 0 && r->method == NGX_HTTP_HEAD) {
        ngx_str_set(&head, "HEAD");
        return head;
    }

    return r->method_name;
}


/* as $status */

ngx_uint_t
ngx_http_sluice_log_status(ngx_http_request_t *r)
{
    if (r->err_status) {
        return r->err_status;
    }

    if (r->headers_out.status) {
        return r->headers_out.status;
    }

    return r->http_version == NGX_HTTP_VERSION_9 ? 9 : 0;
}


/* "127.0.0.1:80", "[::1]:80" */

ngx_uint_t
ngx_http_sluice_log_address(ngx_str_t *peer, ngx_str_t *host, ngx_int_t *port)
{
    u_char  *colon, *last;

    last = peer->data + peer->len;
    colon = memrchr(peer->data, ':', peer->len);

    if (colon == NULL) {
        return 0;
    }

    *port = ngx_atoi(colon + 1, last - colon - 1);

    if (*port == NGX_ERROR) {
        return 0;
    }

    host->data = peer->data;
    host->len = colon - peer->data;

    if (host->len >= 2 && host->data[0] == '[') {
        host->data++;
        host->len -= 2;
    }

    return 1;
}


ngx_str_t
ngx_http_sluice_log_variable(ngx_http_request_t *r,
    ngx_http_sluice_log_name_t *name)
{
    ngx_str_t                   value;
    ngx_http_variable_value_t  *v;

    if (name->hash == 0) {
        name->hash = ngx_hash_key(name->name.data, name->name.len);
    }

    ngx_str_null(&value);

    v = ngx_http_get_variable(r, &name->name, name->hash);

    if (v && !v->not_found) {
        value.data = v->data;
        value.len = v->len;
    }

    return value;
}
