
/*
 * Readers of single variables.  They look at the request as nginx's handlers
 * do (http/ngx_http_variables.c), but know beforehand what those work out at
 * each read.
 */


#include "ngx_http_sluice_var.h"


#define ngx_http_sluice_var_offset(r, v, type)                                \
    ((type *) ((char *) (r) + (v)->data))


ngx_str_t
ngx_http_sluice_var_read_handler(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_str_t                  value;
    ngx_http_variable_value_t  vv;

    ngx_memzero(&vv, sizeof(ngx_http_variable_value_t));

    if (v->get_handler(r, &vv, v->data) != NGX_OK || vv.not_found) {
        return ngx_http_sluice_var_absent;
    }

    value.len = vv.len;
    value.data = vv.data;

    return value;
}


/* Of "set", "map" in a log format, ...: as cached as the others see it. */

ngx_str_t
ngx_http_sluice_var_read_indexed(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_str_t                   value;
    ngx_http_variable_value_t  *vv;

    vv = ngx_http_get_flushed_variable(r, v->index);

    if (vv == NULL || vv->not_found) {
        return ngx_http_sluice_var_absent;
    }

    value.len = vv->len;
    value.data = vv->data;

    return value;
}


ngx_str_t
ngx_http_sluice_var_read_absent(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    return ngx_http_sluice_var_absent;
}


/* ngx_http_variable_request() */

ngx_str_t
ngx_http_sluice_var_read_string(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_str_t  *value;

    value = ngx_http_sluice_var_offset(r, v, ngx_str_t);

    return value->data ? *value : ngx_http_sluice_var_absent;
}


ngx_str_t
ngx_http_sluice_var_read_host(ngx_http_request_t *r, ngx_http_sluice_var_t *v)
{
    ngx_http_core_srv_conf_t  *cscf;

    if (r->headers_in.server.len) {
        return r->headers_in.server;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    return cscf->server_name;
}


ngx_str_t
ngx_http_sluice_var_read_scheme(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    static const ngx_str_t  http = ngx_string("http");

#if (NGX_HTTP_SSL)
    static const ngx_str_t  https = ngx_string("https");

    if (r->connection->ssl) {
        return https;
    }
#endif

    return http;
}


ngx_str_t
ngx_http_sluice_var_read_method(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_str_t  *value;

    value = &r->main->method_name;

    return value->data ? *value : ngx_http_sluice_var_absent;
}


ngx_str_t
ngx_http_sluice_var_read_remote_addr(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    return r->connection->addr_text;
}


#if (nginx_version < 1023000)

/* ngx_http_variable_header() */

ngx_str_t
ngx_http_sluice_var_read_header(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_table_elt_t  *header;

    header = *ngx_http_sluice_var_offset(r, v, ngx_table_elt_t *);

    return header ? header->value : ngx_http_sluice_var_absent;
}


/* ngx_http_variable_headers(), and _cookies(), which join several lines */

ngx_str_t
ngx_http_sluice_var_read_headers(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_array_t       *lines;
    ngx_table_elt_t  **line;

    lines = ngx_http_sluice_var_offset(r, v, ngx_array_t);
    line = lines->elts;

    if (lines->nelts == 1 && line[0]->hash != 0) {
        return line[0]->value;
    }

    return lines->nelts ? ngx_http_sluice_var_read_handler(r, v)
                        : ngx_http_sluice_var_absent;
}

#endif
