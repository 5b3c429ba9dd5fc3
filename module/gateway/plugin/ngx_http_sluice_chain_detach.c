
/*
 * What the late phases of a request need of its chain
 * (ngx_http_sluice_chain.h), in the request's own memory.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_log.h"


static ngx_http_sluice_chain_t *ngx_http_sluice_chain_copy(ngx_pool_t *pool,
    ngx_http_sluice_chain_t *chain);


ngx_int_t
ngx_http_sluice_chain_detach(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_http_sluice_chain_t  *chain;

    if (ctx->chain == NULL) {
        return NGX_OK;
    }

    chain = NULL;

    if (ngx_http_sluice_chain_level(ctx->chain)
        || (ctx->chain->phases & (NGX_HTTP_SLUICE_PHASE_NATIVE_FINISH
                                  | NGX_HTTP_SLUICE_PHASE_NATIVE_LOG)))
    {
        if (ngx_http_sluice_log_detach(r, ctx) != NGX_OK) {
            return NGX_ERROR;
        }

        chain = ngx_http_sluice_chain_now(r, ctx);

        if (chain) {
            chain = ngx_http_sluice_chain_copy(r->pool, chain);
        }

        if (chain == NULL) {
            return NGX_ERROR;
        }
    }

    ctx->chain = chain;
    ctx->consumer_chain = NULL;

    return NGX_OK;
}


/* All that late phases need, and nothing that the access phase alone does. */

static ngx_http_sluice_chain_t *
ngx_http_sluice_chain_copy(ngx_pool_t *pool, ngx_http_sluice_chain_t *chain)
{
    size_t                    size;
    ngx_uint_t                i;
    ngx_http_sluice_conf_t   *conf;
    ngx_http_sluice_step_t   *step;
    ngx_http_sluice_chain_t  *copy;

    size = sizeof(ngx_http_sluice_step_t) + sizeof(ngx_http_sluice_conf_t);

    copy = ngx_pcalloc(pool, sizeof(ngx_http_sluice_chain_t)
                             + chain->nelts * size);
    if (copy == NULL) {
        return NULL;
    }

    copy->steps = (ngx_http_sluice_step_t *) &copy[1];
    copy->nelts = chain->nelts;
    copy->phases = chain->phases & ~NGX_HTTP_SLUICE_PHASE_NATIVE_HEAD;
    copy->ready = 1;

    conf = (ngx_http_sluice_conf_t *) &copy->steps[copy->nelts];

    for (i = 0; i < chain->nelts; i++) {
        step = &chain->steps[i];
        copy->steps[i].plugin = step->plugin;

        if (step->conf == NULL) {
            continue;
        }

        conf[i].revision = step->conf->revision;
        conf[i].slot = step->conf->slot;
        conf[i].generation = step->conf->generation;
        conf[i].phases = step->conf->phases;
        copy->steps[i].conf = &conf[i];

        if (step->plugin->native && step->plugin->native->finish
            && step->conf->data)
        {
            conf[i].data = ngx_palloc(pool, step->plugin->native->finish_size);
            if (conf[i].data == NULL) {
                return NULL;
            }

            ngx_memcpy(conf[i].data, step->conf->data,
                       step->plugin->native->finish_size);
        }

        if ((step->plugin->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_LOG)
            && step->conf->data)
        {
            conf[i].data = ngx_http_sluice_targets_copy(pool,
                                                        step->plugin->native,
                                                        step->conf->data);
            if (conf[i].data == NULL) {
                return NULL;
            }
        }
    }

    return copy;
}
