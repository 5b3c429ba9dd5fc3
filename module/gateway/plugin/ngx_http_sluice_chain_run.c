
/*
 * Runs chains (ngx_http_sluice_chain.h): their native steps in the access
 * phase, and what Lua has to know to run its own.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_compiled.h"


static ngx_int_t ngx_http_sluice_chain_read_body(ngx_http_request_t *r);
static void ngx_http_sluice_chain_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_chain_look(ngx_http_sluice_chain_t *chain,
    sluice_step_t *next);
static ngx_int_t ngx_http_sluice_chain_run(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, sluice_step_t *next);
static ngx_int_t ngx_http_sluice_chain_native(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_step_t *step);
static void ngx_http_sluice_chain_describe(ngx_http_sluice_step_t *step,
    sluice_step_t *described);
static ngx_int_t ngx_http_sluice_chain_refuse(ngx_http_request_t *r,
    ngx_str_t *failure);


static ngx_str_t  ngx_http_sluice_chain_memory =
    ngx_string("no memory for the plugins of a request");

static ngx_str_t  ngx_http_sluice_chain_lua =
    ngx_string("a plugin in Lua met a request without an access phase in Lua");

static ngx_str_t  ngx_http_sluice_chain_twice =
    ngx_string("a plugin has asked for a body that was read");


ngx_int_t
ngx_http_sluice_chain_access(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t      rc;
    sluice_step_t  next;

    rc = ngx_http_sluice_chain_run(r, ctx, &next);

    switch (rc) {

    case NGX_HTTP_SLUICE_CHAIN_BODY:
        return ngx_http_sluice_chain_read_body(r);

    case NGX_HTTP_SLUICE_CHAIN_STEP:
        return ngx_http_sluice_chain_refuse(r, &ngx_http_sluice_chain_lua);

    default:
        return rc;
    }
}


/*
 * As ngx.req.read_body() does, so that the upstream gets the same whichever
 * language has read it.  The phase stays where it is until the body is there;
 * a client that goes away ends its request here.
 */

static ngx_int_t
ngx_http_sluice_chain_read_body(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    r->request_body_in_single_buf = 1;
    r->request_body_in_persistent_file = 1;
    r->request_body_in_clean_file = 1;

    rc = ngx_http_read_client_request_body(r,
                                          ngx_http_sluice_chain_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


static void
ngx_http_sluice_chain_body_handler(ngx_http_request_t *r)
{
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


/*
 * What Lua does next in the access phase (gateway/plugin/chain.lua): see the
 * codes in ngx_http_sluice_chain.h.  In next is the step, or the configuration
 * for sluice_chain_configured().
 */

int
sluice_chain_access(ngx_http_request_t *r, sluice_step_t *next)
{
    int                     rc;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->chain == NULL) {
        return NGX_ERROR;
    }

    if (ctx->step == 0 && !ctx->chain->ready
        && ngx_http_sluice_chain_look(ctx->chain, next) == NGX_AGAIN)
    {
        return NGX_HTTP_SLUICE_CHAIN_CONFIGURE;
    }

    /* an answer that C gives would run Lua's filters within a call of FFI */

    ctx->in_lua = 1;
    rc = (int) ngx_http_sluice_chain_run(r, ctx, next);
    ctx->in_lua = 0;

    return rc;
}


/*
 * The groups that NGX_HTTP_SLUICE_CHAIN_GROUPS asks for: a packed list of
 * names, of length 0 where no plugin has authenticated any.  NGX_OK,
 * NGX_ERROR: no memory.
 */

int
sluice_chain_groups(ngx_http_request_t *r, const char *packed, size_t length)
{
    ngx_str_t               groups;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->said_groups = 1;

    if (length == 0) {
        return NGX_OK;
    }

    groups.data = (u_char *) packed;
    groups.len = length;

    ctx->groups.data = ngx_pstrdup(r->pool, &groups);
    if (ctx->groups.data == NULL) {
        return NGX_ERROR;
    }

    ctx->groups.len = length;

    return NGX_OK;
}


/*
 * The answer that NGX_HTTP_SLUICE_CHAIN_ANSWER speaks of: its status, and in
 * message what is to be said; data NULL: Kong's words.  type: of a message
 * that is the body; data NULL: of one in the format that the client accepts.
 */

int
sluice_chain_answer(ngx_http_request_t *r, sluice_core_text_t *message,
    sluice_core_text_t *type)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    message->data = (const char *) ctx->answer_message.data;
    message->length = (uint32_t) ctx->answer_message.len;
    type->data = (const char *) ctx->answer_type.data;
    type->length = (uint32_t) ctx->answer_type.len;

    return (int) ctx->answer;
}


/* NGX_AGAIN: in next is one that Lua has to look at. */

static ngx_int_t
ngx_http_sluice_chain_look(ngx_http_sluice_chain_t *chain, sluice_step_t *next)
{
    ngx_uint_t               i;
    ngx_http_sluice_step_t  *look;
    ngx_http_sluice_conf_t  *conf;

    look = chain->looks.elts;

    for (i = 0; i < chain->looks.nelts; i++) {

        if (!look[i].conf->ready) {
            ngx_http_sluice_chain_describe(&look[i], next);
            return NGX_AGAIN;
        }
    }

    for (i = 0; i < chain->nelts; i++) {
        conf = chain->steps[i].conf;

        if (conf && conf->failure.len) {
            chain->failure = conf->failure;
        }
    }

    chain->ready = 1;

    return NGX_OK;
}


/*
 * Why a native plugin cannot do with the configuration that
 * sluice_chain_access() has named.  NGX_OK, NGX_DECLINED: it can.
 */

int
sluice_chain_failure(ngx_http_request_t *r, const sluice_step_t *step,
    sluice_core_text_t *failure)
{
    ngx_uint_t               i;
    ngx_http_sluice_ctx_t   *ctx;
    ngx_http_sluice_step_t  *look;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->chain == NULL) {
        return NGX_DECLINED;
    }

    look = ctx->chain->looks.elts;

    for (i = 0; i < ctx->chain->looks.nelts; i++) {

        if (look[i].conf->slot == step->slot && look[i].conf->failure.len) {
            failure->data = (const char *) look[i].conf->failure.data;
            failure->length = (uint32_t) look[i].conf->failure.len;

            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/*
 * Lua has looked at a configuration that sluice_chain_access() has named;
 * failure, of length 0 where there is none: why the plugin cannot do with it.
 * NGX_OK, NGX_ERROR: no memory.
 */

int
sluice_chain_configured(ngx_http_request_t *r, const sluice_step_t *step,
    const char *failure, size_t length)
{
    ngx_str_t                words;
    ngx_uint_t               i;
    ngx_http_sluice_ctx_t   *ctx;
    ngx_http_sluice_step_t  *look;
    ngx_http_sluice_conf_t  *conf;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->chain == NULL) {
        return NGX_ERROR;
    }

    look = ctx->chain->looks.elts;

    for (i = 0; i < ctx->chain->looks.nelts; i++) {
        conf = look[i].conf;

        if (conf->slot != step->slot) {
            continue;
        }

        if (length) {
            words.data = (u_char *) failure;
            words.len = length;

            conf->failure.data = ngx_pstrdup(ctx->compiled->pool, &words);
            if (conf->failure.data == NULL) {
                return NGX_ERROR;
            }

            conf->failure.len = length;
        }

        conf->ready = 1;
    }

    return NGX_OK;
}


/* The steps from ctx->step on, until one is not done or is Lua's. */

static ngx_int_t
ngx_http_sluice_chain_run(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    sluice_step_t *next)
{
    ngx_int_t                 rc;
    ngx_http_sluice_step_t   *step;
    ngx_http_sluice_chain_t  *chain;

    if (ctx->chain->failure.len) {
        return ngx_http_sluice_chain_refuse(r, &ctx->chain->failure);
    }

    for ( /* void */ ; ctx->step < ctx->chain->nelts; ctx->step++) {

        /* a step may have changed the consumer */

        chain = ngx_http_sluice_chain_now(r, ctx);

        if (chain == NULL) {
            return ngx_http_sluice_chain_refuse(r,
                                               &ngx_http_sluice_chain_memory);
        }

        if (chain->failure.len) {
            return ngx_http_sluice_chain_refuse(r, &chain->failure);
        }

        step = &chain->steps[ctx->step];

        if (step->conf == NULL) {
            continue;
        }

        if (step->plugin->native) {
            rc = ngx_http_sluice_chain_native(r, ctx, step);

            if (rc != NGX_OK) {
                return rc;
            }

        } else if (step->conf->phases & NGX_HTTP_SLUICE_PHASE_ACCESS) {
            ngx_http_sluice_chain_describe(step, next);
            ctx->step++;
            return NGX_HTTP_SLUICE_CHAIN_STEP;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_chain_native(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_step_t *step)
{
    ngx_int_t                  rc;
    ngx_http_sluice_plugin_t  *native;

    native = step->plugin->native;

    if (native->access == NULL && native->decision->decide == NULL) {
        return NGX_OK;
    }

    rc = native->access
         ? native->access(r, ctx, step->conf->data)
         : ngx_http_sluice_decide(native->decision, r, ctx, step->conf->data,
                                  NULL);

    if (rc == NGX_BUSY && native->access == NULL) {
        return NGX_HTTP_SLUICE_CHAIN_GROUPS;
    }

    if (rc != NGX_AGAIN) {
        return rc;
    }

    if (r->request_body || r->discard_body) {
        return ngx_http_sluice_chain_refuse(r, &ngx_http_sluice_chain_twice);
    }

    return NGX_HTTP_SLUICE_CHAIN_BODY;
}


/*
 * The steps of a phase that Lua runs: those before the access phase and those
 * after it.  Fills at most max; how many, or NGX_ERROR: no memory.
 */

int
sluice_chain_steps(ngx_http_request_t *r, uint32_t phase, sluice_step_t *steps,
    uint32_t max)
{
    uint32_t                  n;
    ngx_uint_t                i;
    ngx_http_sluice_ctx_t    *ctx;
    ngx_http_sluice_chain_t  *chain;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || ctx->chain == NULL) {
        return 0;
    }

    chain = ngx_http_sluice_chain_now(r, ctx);

    if (chain == NULL) {
        return NGX_ERROR;
    }

    for (i = 0, n = 0; i < chain->nelts && n < max; i++) {

        if (chain->steps[i].conf
            && (chain->steps[i].conf->phases & phase))
        {
            ngx_http_sluice_chain_describe(&chain->steps[i], &steps[n++]);
        }
    }

    return (int) n;
}


static void
ngx_http_sluice_chain_describe(ngx_http_sluice_step_t *step,
    sluice_step_t *described)
{
    described->plugin = step->plugin->number;
    described->slot = step->conf->slot;
    described->generation = step->conf->generation;
    described->revision = step->conf->revision;
    described->zero = 0;
}


static ngx_int_t
ngx_http_sluice_chain_refuse(ngx_http_request_t *r, ngx_str_t *failure)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "sluice: %V", failure);

    return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
}
