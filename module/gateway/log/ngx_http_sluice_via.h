
/*
 * Via, of requests and responses (ngx_http_sluice_via.c).
 */


#ifndef NGX_HTTP_SLUICE_VIA_H_INCLUDED
#define NGX_HTTP_SLUICE_VIA_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef struct {
    ngx_str_t  own;             /* what it says of this gateway */
} ngx_http_sluice_via_conf_t;


#define NGX_HTTP_SLUICE_VIA_DIRECTIVES(at)                                    \
    { ngx_string("sluice_via"),                                               \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_conf_set_str_slot,                                                  \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_via_conf_t, own),                         \
      NULL }


extern const size_t  ngx_http_sluice_via_at;


/* The variables. */
ngx_int_t ngx_http_sluice_via_of_request(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
ngx_int_t ngx_http_sluice_via_of_response(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_SLUICE_VIA_H_INCLUDED */
