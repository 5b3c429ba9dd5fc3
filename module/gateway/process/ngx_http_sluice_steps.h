
/*
 * The steps of a request (ngx_http_sluice_steps.c).
 */


#ifndef NGX_HTTP_SLUICE_STEPS_H_INCLUDED
#define NGX_HTTP_SLUICE_STEPS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Gives nginx all of them, when the configuration is read. */
ngx_int_t ngx_http_sluice_steps_add(ngx_conf_t *cf);


#endif /* NGX_HTTP_SLUICE_STEPS_H_INCLUDED */
