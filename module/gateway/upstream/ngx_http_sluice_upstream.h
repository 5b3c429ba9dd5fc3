
/*
 * Upstream blocks in which a module of ours stands between nginx and the
 * balancer, and is asked first when a request begins.
 *
 * The module's server configuration begins with what is declared here.  Its
 * directive calls _enable, its postconfiguration _wrap.  Of two modules the
 * later in module/config stands outside.
 */


#ifndef NGX_HTTP_SLUICE_UPSTREAM_H_INCLUDED
#define NGX_HTTP_SLUICE_UPSTREAM_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct {
    ngx_uint_t                      enabled;
    ngx_http_upstream_init_peer_pt  init_peer;  /* of who stands within */
} ngx_http_sluice_upstream_conf_t;


char *ngx_http_sluice_upstream_enable(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void *ngx_http_sluice_upstream_create_conf(ngx_conf_t *cf);
ngx_int_t ngx_http_sluice_upstream_wrap(ngx_conf_t *cf, ngx_module_t *module,
    ngx_http_upstream_init_peer_pt init_peer);


#endif /* NGX_HTTP_SLUICE_UPSTREAM_H_INCLUDED */
