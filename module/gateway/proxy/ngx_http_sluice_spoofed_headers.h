
/*
 * Headers that a client must not set in the gateway's name
 * (ngx_http_sluice_spoofed_headers.c).
 */


#ifndef NGX_HTTP_SLUICE_SPOOFED_HEADERS_H_INCLUDED
#define NGX_HTTP_SLUICE_SPOOFED_HEADERS_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef struct {
    ngx_array_t  *names;            /* NULL: none */
    uint32_t      letters;          /* with which dropped names begin */
} ngx_http_sluice_spoofed_headers_conf_t;


#define NGX_HTTP_SLUICE_SPOOFED_HEADERS_DIRECTIVES(at)                        \
    { ngx_string("sluice_guard_headers"),                                     \
      NGX_HTTP_SRV_CONF|NGX_CONF_1MORE,                                       \
      ngx_http_sluice_spoofed_headers_add,                                    \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_drop_headers"),                                      \
      NGX_HTTP_SRV_CONF|NGX_CONF_1MORE,                                       \
      ngx_http_sluice_spoofed_headers_add,                                    \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at,                                                                     \
      (void *) 1 }


extern const size_t  ngx_http_sluice_spoofed_headers_at;


char *ngx_http_sluice_spoofed_headers_add(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_spoofed_headers_handler(ngx_http_request_t *r);

/* The same for the page of an error. */
ngx_int_t ngx_http_sluice_spoofed_headers_page(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_SPOOFED_HEADERS_H_INCLUDED */
