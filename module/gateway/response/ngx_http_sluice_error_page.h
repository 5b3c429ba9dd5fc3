
/*
 * Locations that answer for nginx's errors (ngx_http_sluice_error_page.c).
 */


#ifndef NGX_HTTP_SLUICE_ERROR_PAGE_H_INCLUDED
#define NGX_HTTP_SLUICE_ERROR_PAGE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_SLUICE_ERROR_PAGE_DIRECTIVES(at)                             \
    { ngx_string("sluice_error_page"),                                        \
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,                                      \
      ngx_http_sluice_error_page,                                             \
      NGX_HTTP_LOC_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL }


char *ngx_http_sluice_error_page(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* NGX_HTTP_SLUICE_ERROR_PAGE_H_INCLUDED */
