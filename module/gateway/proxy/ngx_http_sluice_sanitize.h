
/*
 * What the checks of a request say to others (ngx_http_sluice_sanitize.c).
 */


#ifndef NGX_HTTP_SLUICE_SANITIZE_H_INCLUDED
#define NGX_HTTP_SLUICE_SANITIZE_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef struct {
    ngx_flag_t  check;
    ngx_flag_t  reject_traversal;
} ngx_http_sluice_sanitize_conf_t;


#define NGX_HTTP_SLUICE_SANITIZE_DIRECTIVES(at)                               \
    { ngx_string("sluice_check_requests"),                                    \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                     \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_sanitize_conf_t, check),                  \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_reject_path_traversal"),                             \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                     \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_sanitize_conf_t, reject_traversal),       \
      NULL }


extern const size_t  ngx_http_sluice_sanitize_at;


/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_sanitize_handler(ngx_http_request_t *r);

/* Whether a traversal that only an upstream would see passes (traversal.h). */
ngx_uint_t ngx_http_sluice_sanitize_passes_traversal(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_SANITIZE_H_INCLUDED */
