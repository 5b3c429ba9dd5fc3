
/*
 * Variables of Kong's nginx.conf that say what the upstream is asked
 * (ngx_http_sluice_kong_variables.c).
 */


#ifndef NGX_HTTP_SLUICE_KONG_VARIABLES_H_INCLUDED
#define NGX_HTTP_SLUICE_KONG_VARIABLES_H_INCLUDED


#include "ngx_http_sluice_module.h"


/* Before the configuration is read. */
ngx_int_t ngx_http_sluice_kong_variables_add(ngx_conf_t *cf);


#endif /* NGX_HTTP_SLUICE_KONG_VARIABLES_H_INCLUDED */
