
/*
 * Plugins that decide in plain C (module/core/plugin/decision.h) in nginx:
 * they are asked of a request, and what they say is done.
 */


#ifndef NGX_HTTP_SLUICE_DECIDE_H_INCLUDED
#define NGX_HTTP_SLUICE_DECIDE_H_INCLUDED


#include "ngx_http_sluice_plugin.h"
#include "decision.h"


/*
 * A plugin's compile(): the configuration, which has size bytes, of which the
 * plugin's own are the first; the rest is zeroed.
 */
void *ngx_http_sluice_decide_compile(const sluice_decision_plugin_t *plugin,
    size_t size, ngx_pool_t *pool, const ngx_http_sluice_binding_t *binding,
    ngx_str_t *words);

/*
 * A plugin's access(), which returns what this returns.  own: what the
 * plugin's header asks for beside the request; NULL: nothing.
 */
ngx_int_t ngx_http_sluice_decide(const sluice_decision_plugin_t *plugin,
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx, void *conf, void *own);

/* A plugin's head(), in the same way. */
ngx_int_t ngx_http_sluice_decide_head(const sluice_decision_plugin_t *plugin,
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx, void *conf, void *own);


#endif /* NGX_HTTP_SLUICE_DECIDE_H_INCLUDED */
