
/*
 * The options that lines of Connection name (RFC 9110, 7.6.1): names of
 * headers that go no further, but for those that nginx acts upon itself.
 */


#ifndef NGX_HTTP_SLUICE_HEADER_OPTIONS_H_INCLUDED
#define NGX_HTTP_SLUICE_HEADER_OPTIONS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_SLUICE_HEADER_OPTIONS_MAX  32


/* distinct names, and a bit for each length of one; begins with zeros */

typedef struct {
    ngx_uint_t  count;
    uint64_t    lengths;
    ngx_str_t   name[NGX_HTTP_SLUICE_HEADER_OPTIONS_MAX];
} ngx_http_sluice_header_options_t;


/* Those of one line of Connection; NGX_DECLINED: too many. */

ngx_int_t ngx_http_sluice_header_options_add(
    ngx_http_sluice_header_options_t *names, ngx_str_t *line);

ngx_uint_t ngx_http_sluice_header_options_has(
    ngx_http_sluice_header_options_t *names, u_char *name, size_t length);


#endif /* NGX_HTTP_SLUICE_HEADER_OPTIONS_H_INCLUDED */
