
/*
 * The phases of native plugins behind the access phase: header_filter,
 * body_filter and log (ngx_http_sluice_plugin.h).  Here nginx is told of all
 * that they have.
 *
 * A plugin takes part in them of requests in which it has state, and in none
 * else: so they need nothing of what the worker has compiled, which a long
 * response outlives.  Before the head is sent that is still there: head() has
 * the configuration.  Where no plugin of the module has such a callback, nginx
 * is told of no filter.  The log phase is a step of ngx_http_sluice_steps.c.
 *
 * Filters run behind those of Lua and of nginx's own headers, and before the
 * body is encoded for the client (module/config).
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_tls.h"


static ngx_int_t ngx_http_sluice_late_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_late_head(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_late_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_sluice_late_finish(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_late_init(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_sluice_late_module;


static ngx_http_output_header_filter_pt  ngx_http_sluice_late_next_header;
static ngx_http_output_body_filter_pt    ngx_http_sluice_late_next_body;


static ngx_http_module_t  ngx_http_sluice_late_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_late_init,             /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_late_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_late_module_ctx,      /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_sluice_late_header_filter(ngx_http_request_t *r)
{
    ngx_uint_t                   i, n;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_plugin_t    *native;
    ngx_http_sluice_declared_t  *plugin;

    ctx = (r == r->main) ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx
        && ctx->chain
        && (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_HEAD)
        && ngx_http_sluice_late_head(r, ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx == NULL || ctx->states == NULL) {
        return ngx_http_sluice_late_next_header(r);
    }

    plugin = ngx_http_sluice_chain_plugins(&n);

    for (i = 0; i < n; i++) {
        native = plugin[i].native;

        if (ctx->states[i] == NULL) {
            continue;
        }

        if (native->body_filter) {
            r->filter_need_in_memory = 1;
        }

        if (native->header_filter
            && native->header_filter(r, ctx, ctx->states[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_late_next_header(r);
}


/* By the request's configurations, but for those that cannot be used. */

static ngx_int_t
ngx_http_sluice_late_head(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_sluice_step_t    *step;
    ngx_http_sluice_chain_t   *chain;
    ngx_http_sluice_plugin_t  *native;

    chain = ngx_http_sluice_chain_now(r, ctx);

    if (chain == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < chain->nelts; i++) {
        step = &chain->steps[i];
        native = step->plugin->native;

        if (step->conf == NULL
            || step->conf->failure.len
            || !(step->plugin->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_HEAD))
        {
            continue;
        }

        rc = native->head
             ? native->head(r, ctx, step->conf->data)
             : ngx_http_sluice_decide_head(native->decision, r, ctx,
                                           step->conf->data, NULL);
        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_late_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_uint_t                   i, n;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_declared_t  *plugin;

    ctx = (in && r == r->main) ? ngx_http_sluice_ctx(r) : NULL;

    if (ctx == NULL || ctx->states == NULL) {
        return ngx_http_sluice_late_next_body(r, in);
    }

    plugin = ngx_http_sluice_chain_plugins(&n);

    for (i = 0; i < n; i++) {

        if (ctx->states[i]
            && plugin[i].native->body_filter
            && plugin[i].native->body_filter(r, ctx, ctx->states[i], &in)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_late_next_body(r, in);
}


ngx_int_t
ngx_http_sluice_late_log_handler(ngx_http_request_t *r)
{
    ngx_uint_t                   i, n;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_declared_t  *plugin;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL) {
        return NGX_OK;
    }

    if (ctx->chain
        && (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_LOG))
    {
        ngx_http_sluice_targets_log(r, ctx);
    }

    if (ctx->states) {
        plugin = ngx_http_sluice_chain_plugins(&n);

        for (i = 0; i < n; i++) {

            if (ctx->states[i] && plugin[i].native->log) {
                plugin[i].native->log(r, ctx, ctx->states[i]);
            }
        }
    }

    if (ctx->chain
        && (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_NATIVE_FINISH))
    {
        ngx_http_sluice_late_finish(r, ctx);
    }

    return NGX_OK;
}


/* By configurations, not by state: these plugins need not have run. */

static void
ngx_http_sluice_late_finish(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_uint_t                i;
    ngx_http_sluice_step_t   *step;
    ngx_http_sluice_chain_t  *chain;

    chain = ngx_http_sluice_chain_now(r, ctx);

    for (i = 0; chain && i < chain->nelts; i++) {
        step = &chain->steps[i];

        if (step->conf && step->conf->data && step->plugin->native
            && step->plugin->native->finish)
        {
            step->plugin->native->finish(r, ctx, step->conf->data);
        }
    }
}


static ngx_int_t
ngx_http_sluice_late_init(ngx_conf_t *cf)
{
    ngx_uint_t                  heads, bodies;
    ngx_http_sluice_plugin_t  **native;

    heads = 0;
    bodies = 0;

    for (native = ngx_http_sluice_plugins; *native; native++) {
        bodies |= (*native)->body_filter != NULL;
        heads |= (*native)->header_filter || (*native)->head
                 || ((*native)->decision && (*native)->decision->head);
    }

    ngx_http_sluice_tls_more = ngx_http_sluice_early_certificate;

    /* the head's asks for bodies in memory */

    if (heads || bodies) {
        ngx_http_sluice_late_next_header = ngx_http_top_header_filter;
        ngx_http_top_header_filter = ngx_http_sluice_late_header_filter;
    }

    if (bodies) {
        ngx_http_sluice_late_next_body = ngx_http_top_body_filter;
        ngx_http_top_body_filter = ngx_http_sluice_late_body_filter;
    }

    return NGX_OK;
}
