
#ifndef NGX_HTTP_SLUICE_CONNECTION_H
#define NGX_HTTP_SLUICE_CONNECTION_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_SLUICE_CONNECTION_MAX_NAMES  32


/* distinct names, and a bit for each length of one; begins with zeros */

typedef struct {
    ngx_uint_t  count;
    uint64_t    lengths;
    ngx_str_t   name[NGX_HTTP_SLUICE_CONNECTION_MAX_NAMES];
} ngx_http_sluice_connection_names_t;


/* Those of one line of Connection; NGX_DECLINED: too many. */

ngx_int_t ngx_http_sluice_connection_add_names(
    ngx_http_sluice_connection_names_t *names, ngx_str_t *line);

ngx_uint_t ngx_http_sluice_connection_named(
    ngx_http_sluice_connection_names_t *names, u_char *name, size_t length);

/*
 * NGX_OK, or the status with which the request is to be refused: for more than
 * 32 distinct names, more than 1,000 header lines, or for want of memory.
 */

ngx_int_t ngx_http_sluice_connection_apply(ngx_http_request_t *r);


#endif
