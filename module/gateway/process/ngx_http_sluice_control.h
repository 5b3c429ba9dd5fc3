
/*
 * Servers of the control worker (ngx_http_sluice_control.c).
 */


#ifndef NGX_HTTP_SLUICE_CONTROL_H_INCLUDED
#define NGX_HTTP_SLUICE_CONTROL_H_INCLUDED


#include "ngx_http_sluice_module.h"


/* Whose servers they are: each kind has connections of its own. */

typedef enum {
    NGX_HTTP_SLUICE_CONTROL_NONE = 0,
    NGX_HTTP_SLUICE_CONTROL_ADMIN,
    NGX_HTTP_SLUICE_CONTROL_STATUS,
    NGX_HTTP_SLUICE_CONTROL_KINDS
} ngx_http_sluice_control_kind_e;


typedef struct {
    ngx_http_sluice_control_kind_e  kind;
} ngx_http_sluice_control_conf_t;


#define NGX_HTTP_SLUICE_CONTROL_DIRECTIVES(at)                                \
    { ngx_string("sluice_control_server"),                                    \
      NGX_HTTP_SRV_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,                       \
      ngx_http_sluice_control_mark,                                           \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_control_at;


char *ngx_http_sluice_control_mark(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* NGX_HTTP_SLUICE_CONTROL_H_INCLUDED */
