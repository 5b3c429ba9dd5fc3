
/*
 * The phases of native plugins before the access phase, certificate and
 * rewrite (ngx_http_sluice_plugin.h), and what they keep of requests; and
 * whether a handshake has a plugin in Lua.  Only
 * configurations run there that are bound to nothing: nobody knows yet which
 * service or consumer it will be.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_compiled.h"


ngx_int_t
ngx_http_sluice_early_certificate(ngx_connection_t *c, ngx_str_t *server_name)
{
    ngx_uint_t                   i, lua;
    ngx_http_sluice_compiled_t  *compiled;
    ngx_http_sluice_step_t      *step;
    ngx_http_sluice_chain_t     *chain;

    /* a plugin that cannot be asked lets nobody in */

    if (sluice_images_refresh() != SLUICE_CORE_OK) {
        return NGX_ERROR;
    }

    compiled = ngx_http_sluice_compiled();
    chain = compiled ? ngx_http_sluice_chain(compiled, SLUICE_CORE_NOBODY, 0,
                                             SLUICE_CORE_NOBODY, 0)
                 : NULL;

    if (chain == NULL) {
        return NGX_ERROR;
    }

    for (i = 0, lua = 0; i < chain->nelts; i++) {
        step = &chain->steps[i];

        if (step->conf == NULL) {
            continue;
        }

        lua |= step->conf->phases & NGX_HTTP_SLUICE_PHASE_CERTIFICATE;

        if (!(step->plugin->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_CERTIFICATE))
        {
            continue;
        }

        if (step->conf->failure.len
            || step->plugin->native->certificate(c, server_name,
                                                 step->conf->data)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return lua ? NGX_DONE : NGX_OK;
}


ngx_int_t
ngx_http_sluice_early_rewrite(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    ngx_int_t                rc;
    ngx_uint_t               i;
    ngx_http_sluice_step_t  *step;

    for (i = 0; i < ctx->chain->nelts; i++) {
        step = &ctx->chain->steps[i];

        if (step->conf == NULL
            || !(step->plugin->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_REWRITE))
        {
            continue;
        }

        if (step->conf->failure.len) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "sluice: %V",
                          &step->conf->failure);
            return ngx_http_sluice_refusal(refusal,
                                           NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        rc = step->plugin->native->rewrite(r, ctx, step->conf->data, refusal);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


void *
ngx_http_sluice_plugin_state(ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_plugin_t *plugin)
{
    return ctx->states ? ctx->states[plugin->number] : NULL;
}


ngx_int_t
ngx_http_sluice_plugin_set_state(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_plugin_t *plugin, void *state)
{
    ngx_uint_t  n;

    if (ctx->states == NULL) {
        (void) ngx_http_sluice_chain_plugins(&n);

        /* as long as the request, which its subrequests share */

        ctx->states = ngx_pcalloc(r->main->pool, n * sizeof(void *));
        if (ctx->states == NULL) {
            return NGX_ERROR;
        }
    }

    ctx->states[plugin->number] = state;

    return NGX_OK;
}
