
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
 *
 * No pointer into the image outlives this: what the request needs later is in
 * its context, or in what this worker has compiled (ngx_http_sluice_live.h).
 */


#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_route.h"
#include "ngx_sluice_abi.h"
#include "path.h"


#define NGX_HTTP_SLUICE_ROUTE_ID  36


typedef struct {
    ngx_flag_t  enabled;
} ngx_http_sluice_route_conf_t;


static ngx_int_t ngx_http_sluice_route_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_begin(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);
static ngx_uint_t ngx_http_sluice_route_is_too_large(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_route_read_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_route_keep(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_images_match_t *match);
static ngx_uint_t ngx_http_sluice_route_has_plugins(int kind, uint32_t slot);
static ngx_int_t ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal);
static void ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match);
static u_char *ngx_http_sluice_route_id(u_char *p, const uint8_t *id);
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
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_sluice_refusal_t      refusal;
    ngx_http_sluice_route_conf_t  *conf;

    conf = ngx_http_get_module_srv_conf(r, ngx_http_sluice_route_module);

    if (!conf->enabled || r->internal || r != r->main) {
        return NGX_DECLINED;
    }

    if (ngx_http_sluice_route_begin(r, &refusal) != NGX_OK) {
        ngx_http_sluice_location_enter(r, NGX_HTTP_SLUICE_LOCATION_NATIVE, 0);

        return ngx_http_sluice_refuse(r, &refusal);
    }

    /* the phase behind the one that looks for the location */

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    r->phase_handler = cmcf->phase_engine.location_rewrite_index - 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_route_begin(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    ngx_http_sluice_ctx_t  *ctx;

    if (ngx_http_sluice_route_is_too_large(r)) {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       NULL);
    }

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
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


ngx_int_t
ngx_http_sluice_route(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_refusal_t *refusal)
{
    int                    rc;
    sluice_images_match_t  match;

    if (ngx_http_sluice_route_read_path(r, ctx) != NGX_OK) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    rc = sluice_images_match(r, ctx->path.data, ctx->path.len, &match);

    if (rc != SLUICE_CORE_OK
        && (rc != SLUICE_CORE_NONE || match.epoch == 0))
    {
        return ngx_http_sluice_route_refuse(r, rc, &match, refusal);
    }

    if (ngx_http_sluice_route_keep(r, ctx, &match) != NGX_OK) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    return NGX_OK;
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


/* Keeps what the match has found, and goes where its plugins can run. */

static ngx_int_t
ngx_http_sluice_route_keep(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    const sluice_images_match_t *match)
{
    ctx->live = ngx_http_sluice_live();

    if (ctx->live == NULL
        || ngx_http_sluice_live_hold(ctx->live, r->pool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ctx->routed = 1;
    ctx->prefix = match->prefix;

    if (ngx_http_sluice_route_has_plugins(SLUICE_CORE_KINDS, 0)
        || ngx_http_sluice_route_has_plugins(SLUICE_CORE_ROUTE, match->slot)
        || ngx_http_sluice_route_has_plugins(SLUICE_CORE_SERVICE,
                                             match->service))
    {
        ngx_http_sluice_location_enter(r, NGX_HTTP_SLUICE_LOCATION_LUA, 0);
        return NGX_OK;
    }

    ngx_http_sluice_location_enter(r, NGX_HTTP_SLUICE_LOCATION_NATIVE, 0);

    if (match->route.record == NULL) {
        return NGX_OK;
    }

    ctx->route = match->slot;
    ctx->route_generation = match->generation;
    ctx->route_revision = match->revision;
    ctx->route_flags = sluice_core_number(&match->route,
                                          SLUICE_CORE_ROUTE_FLAGS);

    if (match->service == SLUICE_CORE_NOBODY) {
        return NGX_OK;
    }

    ctx->destination = ngx_http_sluice_destination_of(ctx->live,
                                                      match->service);
    if (ctx->destination) {
        ctx->service = match->service;
        ctx->service_generation = ctx->destination->generation;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_route_has_plugins(int kind, uint32_t slot)
{
    const uint32_t  *slots;

    return sluice_core_children(sluice_images_view(), SLUICE_CORE_PLUGIN, kind,
                                slot, &slots)
           > 0;
}


/* What keeps a request from being routed; no other route is a safe guess. */

static ngx_int_t
ngx_http_sluice_route_refuse(ngx_http_request_t *r, int rc,
    const sluice_images_match_t *match, ngx_http_sluice_refusal_t *refusal)
{
    switch (rc) {

    case SLUICE_CORE_LIMIT:
    case SLUICE_CORE_PATTERN:
    case SLUICE_CORE_MEMORY:
        ngx_http_sluice_route_log(r, match);
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);

    case SLUICE_CORE_LARGE:
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_BAD_REQUEST, NULL);

    default:
        /* it does not serve what was there before */
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "the configuration cannot be read");
    }
}


static void
ngx_http_sluice_route_log(ngx_http_request_t *r,
    const sluice_images_match_t *match)
{
    char                  reason[128];
    u_char                id[NGX_HTTP_SLUICE_ROUTE_ID];
    ngx_str_t             name;
    sluice_core_text_t    text;
    sluice_core_entity_t  head;

    text = sluice_core_text(&match->route, SLUICE_CORE_ROUTE_NAME);
    name.data = (u_char *) text.data;
    name.len = text.length;

    if (text.data == NULL) {
        sluice_core_head(&match->route, &head);
        name.data = id;
        name.len = ngx_http_sluice_route_id(id, head.id) - id;
    }

    sluice_core_reason(match->reason, reason, sizeof(reason));

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "route \"%V\": a regular expression gave up on a request, "
                  "which is refused: %s", &name, reason);
}


static u_char *
ngx_http_sluice_route_id(u_char *p, const uint8_t *id)
{
    ngx_uint_t  i;

    for (i = 0; i < 16; i++) {
        p = ngx_sprintf(p, i == 4 || i == 6 || i == 8 || i == 10
                           ? "-%02xd" : "%02xd", id[i]);
    }

    return p;
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


/*
 * nginx runs the handlers of a phase from the last to the first: this module
 * stands before that of the request's checks (module/config).
 */

static ngx_int_t
ngx_http_sluice_route_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_SERVER_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_sluice_route_handler;

    return NGX_OK;
}
