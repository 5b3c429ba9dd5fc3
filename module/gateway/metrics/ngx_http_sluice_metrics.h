
/*
 * Which servers count their requests (ngx_http_sluice_metrics.c).
 */


#ifndef NGX_HTTP_SLUICE_METRICS_H_INCLUDED
#define NGX_HTTP_SLUICE_METRICS_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef struct {
    ngx_flag_t  enabled;
} ngx_http_sluice_metrics_conf_t;


#define NGX_HTTP_SLUICE_METRICS_DIRECTIVES(at)                                \
    { ngx_string("sluice_metrics"),                                           \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                     \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_metrics_conf_t, enabled),                 \
      NULL }


extern const size_t  ngx_http_sluice_metrics_at;


/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_metrics_handler(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_METRICS_H_INCLUDED */
