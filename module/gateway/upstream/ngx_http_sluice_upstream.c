
/*
 * How our modules come between nginx and the balancer of an upstream block.
 */


#include "ngx_http_sluice_upstream.h"


char *
ngx_http_sluice_upstream_enable(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sluice_upstream_conf_t  *ucf = conf;

    if (ucf->enabled) {
        return "is duplicate";
    }

    ucf->enabled = 1;

    return NGX_CONF_OK;
}


void *
ngx_http_sluice_upstream_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_upstream_conf_t));
}


/*
 * To be called when the configuration has been read: by then each block has
 * its balancer, wherever that stands in it.
 */

ngx_int_t
ngx_http_sluice_upstream_wrap(ngx_conf_t *cf, ngx_module_t *module,
    ngx_http_upstream_init_peer_pt init_peer)
{
    ngx_uint_t                         i;
    ngx_http_upstream_srv_conf_t     **us;
    ngx_http_upstream_main_conf_t     *umcf;
    ngx_http_sluice_upstream_conf_t   *ucf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    us = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        /* a proxy_pass to an address has none */

        if (us[i]->srv_conf == NULL) {
            continue;
        }

        ucf = us[i]->srv_conf[module->ctx_index];

        if (ucf->enabled) {
            ucf->init_peer = us[i]->peer.init;
            us[i]->peer.init = init_peer;
        }
    }

    return NGX_OK;
}
