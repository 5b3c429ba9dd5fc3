
/*
 * Variables of the gateway's nginx.conf (ngx_http_sluice_variables.c).
 */


#ifndef NGX_HTTP_SLUICE_VARIABLES_H_INCLUDED
#define NGX_HTTP_SLUICE_VARIABLES_H_INCLUDED


#include "ngx_http_sluice_via.h"


/* Before the configuration is read; when a process begins. */
ngx_int_t ngx_http_sluice_variables_add(ngx_conf_t *cf);
ngx_int_t ngx_http_sluice_variables_init_process(ngx_cycle_t *cycle,
    ngx_http_sluice_via_conf_t *via);


#endif /* NGX_HTTP_SLUICE_VARIABLES_H_INCLUDED */
