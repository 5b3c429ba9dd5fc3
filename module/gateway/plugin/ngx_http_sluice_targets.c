
/*
 * Where the entry of a request goes (ngx_http_sluice_plugin.h, logs): the step
 * of the log phase that puts it into the spool.  No request waits for what
 * comes then: an entry without room is dropped, and the spool counts it.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_log.h"


void
ngx_http_sluice_targets_log(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_uint_t                i;
    sluice_core_text_t        text;
    ngx_http_sluice_step_t   *step;
    ngx_http_sluice_chain_t  *chain;

    chain = ngx_http_sluice_chain_now(r, ctx);

    if (chain == NULL) {
        return;
    }

    text.data = NULL;

    for (i = 0; i < chain->nelts; i++) {
        step = &chain->steps[i];

        if (!(step->plugin->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_LOG)
            || step->conf == NULL || step->conf->data == NULL)
        {
            continue;
        }

        if (text.data == NULL
            && sluice_log_entry(r, NULL, 0, 1, &text) != NGX_OK)
        {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "sluice: no memory for a log entry");
            return;
        }

        ngx_http_sluice_targets_write(step->plugin->native, step->conf, &text);
    }
}


void *
ngx_http_sluice_targets_copy(ngx_pool_t *pool,
    const ngx_http_sluice_plugin_t *plugin, const void *conf)
{
    ngx_str_t        *copy;
    const ngx_str_t  *target = conf;

    /* whether there is one is all that is asked then */

    if (plugin->deliver == NULL) {
        return (void *) plugin;
    }

    copy = ngx_palloc(pool, sizeof(ngx_str_t));
    if (copy == NULL) {
        return NULL;
    }

    copy->len = target->len;
    copy->data = ngx_pstrdup(pool, (ngx_str_t *) target);

    return copy->data ? copy : NULL;
}
