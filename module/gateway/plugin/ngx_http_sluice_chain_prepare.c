
/*
 * A plugin cannot wait while it runs patterns, nor while it looks at the head
 * of a response: so those of a chain are compiled before a request has it, in
 * the turns that the router's have.  Those of configurations that only some
 * consumers have are compiled when they are run.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_patterns.h"


static ngx_int_t ngx_http_sluice_chain_prepare_conf(
    const sluice_core_view_t *view, ngx_http_sluice_conf_t *conf);


/* Of the view that it was compiled of.  NGX_AGAIN: in another turn. */

ngx_int_t
ngx_http_sluice_chain_prepare(ngx_http_sluice_chain_t *chain,
    const sluice_core_view_t *view)
{
    ngx_uint_t               i;
    ngx_http_sluice_conf_t  *conf;

    for (i = 0; i < chain->nelts; i++) {
        conf = chain->steps[i].conf;

        if (conf && !conf->prepared
            && ngx_http_sluice_chain_prepare_conf(view, conf) == NGX_AGAIN)
        {
            return NGX_AGAIN;
        }
    }

    chain->prepared = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_prepare_conf(const sluice_core_view_t *view,
    ngx_http_sluice_conf_t *conf)
{
    sluice_core_found_t  found;

    found = sluice_core_by_slot(view, SLUICE_CORE_PLUGIN, conf->slot);

    if (found.record
        && sluice_core_prepare(&found, ngx_http_sluice_patterns(),
                               &conf->pattern)
           == SLUICE_CORE_AGAIN)
    {
        return NGX_AGAIN;
    }

    conf->prepared = 1;

    return NGX_OK;
}
