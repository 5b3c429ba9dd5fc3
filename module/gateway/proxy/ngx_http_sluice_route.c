
/*
 * Routing, without Lua:
 *
 *     server {
 *         sluice_check_requests on;
 *         sluice_route on;
 *     }
 *
 * In the server rewrite phase, behind the checks of that directive, a request
 * is matched with what is published and put into the location that has the
 * phases which its plugins need; nginx's own search for a location by the URI
 * is skipped.
 */


#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_phase.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_turn.h"
#include "path.h"


typedef struct {
    ngx_flag_t  enabled;
} ngx_http_sluice_route_conf_t;


static ngx_int_t ngx_http_sluice_route_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_internal(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_skip_search(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);
static ngx_uint_t ngx_http_sluice_route_is_too_large(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_read_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static void *ngx_http_sluice_route_create_conf(ngx_conf_t *cf);
static char *ngx_http_sluice_route_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_sluice_route_init(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_sluice_route_module;


static ngx_command_t  ngx_http_sluice_route_commands[] = {

    { ngx_string("sluice_route"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_sluice_route_conf_t, enabled),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_route_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_route_init,            /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_route_create_conf,     /* create server configuration */
    ngx_http_sluice_route_merge_conf,      /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_route_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_route_module_ctx,     /* module context */
    ngx_http_sluice_route_commands,        /* module directives */
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
ngx_http_sluice_route_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_http_sluice_ctx_t         *ctx;
    ngx_http_sluice_refusal_t      refusal;
    ngx_http_sluice_route_conf_t  *conf;

    conf = ngx_http_get_module_srv_conf(r, ngx_http_sluice_route_module);

    if (!conf->enabled || r != r->main) {
        return NGX_DECLINED;
    }

    if (r->internal) {
        return ngx_http_sluice_route_internal(r);
    }

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_sluice_route_begin(r, ctx, &refusal);

    if (rc == NGX_AGAIN) {
        return ngx_http_sluice_turn(r, ctx);
    }

    if (rc != NGX_OK) {
        ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_NATIVE);
        return ngx_http_sluice_refuse(r, &refusal);
    }

    return ngx_http_sluice_route_skip_search(r);
}


/*
 * To the page of an error, of a request that was refused before it was routed:
 * so that the late phases of global plugins see it.  Where else nginx goes
 * internally it finds the way itself.
 */

static ngx_int_t
ngx_http_sluice_route_internal(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL || ctx->routed) {
        return NGX_DECLINED;
    }

    (void) ngx_http_sluice_route_look(r, ctx);
    ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_ERROR);

    return ngx_http_sluice_route_skip_search(r);
}


/* The phase that comes next is not that which searches for the location. */

static ngx_int_t
ngx_http_sluice_route_skip_search(ngx_http_request_t *r)
{
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    r->phase_handler = cmcf->phase_engine.location_rewrite_index - 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_route_begin(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_refusal_t *refusal)
{
    ngx_int_t  rc;

    if (ngx_http_sluice_route_read_path(r, ctx) != NGX_OK) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    rc = ngx_http_sluice_route_look(r, ctx);

    if (ngx_http_sluice_route_is_too_large(r)) {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       NULL);
    }

    if (rc != NGX_OK) {
        return ngx_http_sluice_route_refuse_unread(refusal);
    }

    if (ctx->chain->phases & NGX_HTTP_SLUICE_PHASE_REWRITE) {
        ngx_http_sluice_route_enter(r, NGX_HTTP_SLUICE_LOCATION_LUA);
        return NGX_OK;
    }

    return ngx_http_sluice_route(r, ctx, refusal);
}


/* What nginx checks when it has found a location: all have the same limit. */

static ngx_uint_t
ngx_http_sluice_route_is_too_large(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->headers_in.content_length_n == -1
        || r->discard_body
        || clcf->client_max_body_size == 0
        || r->headers_in.content_length_n <= clcf->client_max_body_size)
    {
        return 0;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "client intended to send too large body: %O bytes",
                  r->headers_in.content_length_n);

    r->expect_tested = 1;
    (void) ngx_http_discard_request_body(r);

    return 1;
}


static ngx_int_t
ngx_http_sluice_route_read_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    char                *buffer;
    size_t               size;
    sluice_core_text_t   target, raw, query, path;

    target.data = (const char *) r->unparsed_uri.data;
    target.length = (uint32_t) r->unparsed_uri.len;

    sluice_path_split(&target, &raw, &query);

    if (sluice_path_normalize(&raw, NULL, 0, &path) != SLUICE_CORE_OK) {
        size = sluice_path_normalize_bound(&raw);

        buffer = ngx_pnalloc(r->pool, size);
        if (buffer == NULL) {
            return NGX_ERROR;
        }

        (void) sluice_path_normalize(&raw, buffer, size, &path);
    }

    ctx->raw.data = (u_char *) raw.data;
    ctx->raw.len = raw.length;
    ctx->query.data = (u_char *) query.data;
    ctx->query.len = query.length;
    ctx->path.data = (u_char *) path.data;
    ctx->path.len = path.length;

    return NGX_OK;
}


static void *
ngx_http_sluice_route_create_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_route_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_sluice_route_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->enabled = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_sluice_route_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_sluice_route_conf_t  *prev = parent;
    ngx_http_sluice_route_conf_t  *conf = child;

    ngx_conf_merge_value(conf->enabled, prev->enabled, 0);

    return NGX_CONF_OK;
}


/* Behind the request's checks: this module stands before theirs. */

static ngx_int_t
ngx_http_sluice_route_init(ngx_conf_t *cf)
{
    return ngx_http_sluice_phase_add(cf, NGX_HTTP_SERVER_REWRITE_PHASE,
                                     ngx_http_sluice_route_handler);
}
