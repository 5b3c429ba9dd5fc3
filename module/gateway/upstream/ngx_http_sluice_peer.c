
/*
 * Whom a request goes to: one selector for the first try and for those after
 * it.
 *
 *     upstream sluice_upstream {
 *         server 0.0.0.1;
 *         sluice_balancer;
 *     }
 *
 * The access phase has left the destination in the request's context, and has
 * taken the first turn (ngx_http_sluice_peer_begin()): the Host header of the
 * request, which nginx writes before it asks for a peer, depends on who that
 * is.
 *
 * What belongs to the tries stands beside the upstream's own state: who was
 * tried is known from the first retry on, so that a first try costs the same
 * for any number of targets.  A retry whose peer has another Host header
 * writes the request's head anew, at most so often.
 *
 * A request goes on with the targets that it began with, also when one is
 * removed meanwhile.
 */


#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_head.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_peer_tls.h"


/* what is written anew takes memory until the request ends */

#define NGX_HTTP_SLUICE_PEER_REWRITES  256


typedef struct {
    ngx_uint_t                      host;      /* the place of $sluice_host */
} ngx_http_sluice_peer_conf_t;


/* of a request's tries */

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_sluice_rotation_t     *rotation;
    ngx_uint_t                      peer;      /* of this try */
    uint64_t                       *tried;     /* NULL until the first retry */
    ngx_uint_t                      rewrites;
    ngx_str_t                       frame;     /* of the request's head */

#if (NGX_HTTP_SSL)
    ngx_http_sluice_peer_tls_t      tls;
#endif

    unsigned                        begun:1;
    unsigned                        preserve_host:1;
} ngx_http_sluice_peer_try_t;


static char *ngx_http_sluice_peer_balancer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_sluice_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static void *ngx_http_sluice_peer_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_peer_preconfigure(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static void ngx_http_sluice_peer_set_scheme(ngx_http_request_t *r,
    ngx_http_sluice_destination_t *destination);
static ngx_int_t ngx_http_sluice_peer_time(ngx_http_request_t *r,
    ngx_http_sluice_destination_t *destination);
static ngx_int_t ngx_http_sluice_peer_get(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_sluice_peer_next(ngx_http_sluice_peer_try_t *try);
static void ngx_http_sluice_peer_set_host(ngx_http_request_t *r,
    ngx_str_t *host);
static void ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);

#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif

extern ngx_module_t  ngx_http_sluice_peer_module;


static ngx_str_t  ngx_http_sluice_peer_host_name = ngx_string("sluice_host");


static ngx_command_t  ngx_http_sluice_peer_commands[] = {

    { ngx_string("sluice_balancer"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_sluice_peer_balancer,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_peer_module_ctx = {
    ngx_http_sluice_peer_preconfigure,     /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_sluice_peer_create_conf,      /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_peer_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_peer_module_ctx,      /* module context */
    ngx_http_sluice_peer_commands,         /* module directives */
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


static char *
ngx_http_sluice_peer_balancer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_upstream_srv_conf_t  *us;

    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    if (us->peer.init_upstream) {
        return "is duplicate, or the block has another balancer";
    }

    us->peer.init_upstream = ngx_http_sluice_peer_init_upstream;

    us->flags = NGX_HTTP_UPSTREAM_CREATE
                |NGX_HTTP_UPSTREAM_WEIGHT
                |NGX_HTTP_UPSTREAM_MAX_FAILS
                |NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
                |NGX_HTTP_UPSTREAM_DOWN;

    return NGX_CONF_OK;
}


/* The block's server is there because nginx wants one. */

static ngx_int_t
ngx_http_sluice_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
    us->peer.init = ngx_http_sluice_peer_init;

    return NGX_OK;
}


static void *
ngx_http_sluice_peer_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_peer_conf_t));
}


static ngx_int_t
ngx_http_sluice_peer_preconfigure(ngx_conf_t *cf)
{
    ngx_int_t                     index;
    ngx_http_sluice_peer_conf_t  *conf;

    index = ngx_http_get_variable_index(cf, &ngx_http_sluice_peer_host_name);
    if (index == NGX_ERROR) {
        return NGX_ERROR;
    }

    conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_peer_module);
    conf->host = (ngx_uint_t) index;

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_peer_begin(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t                    peer;
    ngx_http_sluice_rotation_t  *rotation;

    rotation = ctx->destination->rotation;
    peer = ngx_http_sluice_rotation_pick(rotation, NULL);

    if (peer == NGX_ERROR) {
        return NGX_DECLINED;
    }

    ctx->peer = (uint32_t) peer;
    ctx->has_peer = 1;

    if (r->headers_in.host
        && (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_PRESERVE_HOST))
    {
        ngx_http_sluice_peer_set_host(r, &r->headers_in.host->value);

    } else {
        ctx->route_flags &= ~NGX_HTTP_SLUICE_ROUTE_PRESERVE_HOST;
        ngx_http_sluice_peer_set_host(r, &rotation->peers[peer].host);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_sluice_ctx_t       *ctx;
    ngx_peer_connection_t       *pc;
    ngx_http_sluice_peer_try_t  *try;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || !ctx->has_peer) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a plugin has ended the access phase before the request "
                      "had a peer");
        return NGX_ERROR;
    }

    try = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_peer_try_t));
    if (try == NULL) {
        return NGX_ERROR;
    }

    try->request = r;
    try->rotation = ctx->destination->rotation;
    try->peer = ctx->peer;
    try->preserve_host = (ctx->route_flags
                          & NGX_HTTP_SLUICE_ROUTE_PRESERVE_HOST) != 0;

    pc = &r->upstream->peer;

    pc->data = try;
    pc->get = ngx_http_sluice_peer_get;
    pc->free = ngx_http_sluice_peer_free;
    pc->tries = ctx->destination->tries;

#if (NGX_HTTP_SSL)
    if (ngx_http_sluice_peer_tls_init(&try->tls, r, ctx->destination->tls)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    pc->set_session = ngx_http_sluice_peer_set_session;
    pc->save_session = ngx_http_sluice_peer_save_session;
#endif

    /* nginx looks at this when the response comes, and no more at its conf */

    if (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_STREAM_RESPONSE) {
        r->upstream->buffering = 0;
    }

    ngx_http_sluice_peer_set_scheme(r, ctx->destination);

    ngx_http_sluice_head_frame(r, &try->frame);

    if (ngx_http_sluice_head_write(r, &try->frame) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_peer_time(r, ctx->destination);
}


/* proxy_pass says https, so that its context of TLS is there. */

static void
ngx_http_sluice_peer_set_scheme(ngx_http_request_t *r,
    ngx_http_sluice_destination_t *destination)
{
    if (destination->https) {
        return;
    }

#if (NGX_HTTP_SSL)
    r->upstream->ssl = 0;
#endif

    ngx_str_set(&r->upstream->schema, "http://");
}


/* nginx reads timeouts from the location's configuration: hence a copy. */

static ngx_int_t
ngx_http_sluice_peer_time(ngx_http_request_t *r,
    ngx_http_sluice_destination_t *destination)
{
#if (HAVE_NGX_UPSTREAM_TIMEOUT_FIELDS)
    ngx_http_upstream_t       *to = r->upstream;
#else
    ngx_http_upstream_conf_t  *to;
#endif

    if (destination->connect_ms == 0
        && destination->send_ms == 0
        && destination->read_ms == 0)
    {
        return NGX_OK;
    }

#if !(HAVE_NGX_UPSTREAM_TIMEOUT_FIELDS)

    to = ngx_palloc(r->pool, sizeof(ngx_http_upstream_conf_t));
    if (to == NULL) {
        return NGX_ERROR;
    }

    *to = *r->upstream->conf;
    r->upstream->conf = to;

#endif

    if (destination->connect_ms) {
        to->connect_timeout = destination->connect_ms;
    }

    if (destination->send_ms) {
        to->send_timeout = destination->send_ms;
    }

    if (destination->read_ms) {
        to->read_timeout = destination->read_ms;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_try_t  *try = data;

    ngx_int_t                rc;
    ngx_http_sluice_peer_t  *peer;

    if (try->begun) {
        rc = ngx_http_sluice_peer_next(try);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    try->begun = 1;
    peer = &try->rotation->peers[try->peer];

    pc->sockaddr = peer->sockaddr;
    pc->socklen = peer->socklen;
    pc->name = &peer->name;
    pc->cached = 0;
    pc->connection = NULL;

    return NGX_OK;
}


/* NGX_OK, NGX_BUSY: this was the last try, NGX_ERROR */

static ngx_int_t
ngx_http_sluice_peer_next(ngx_http_sluice_peer_try_t *try)
{
    ngx_int_t                    peer;
    ngx_str_t                   *was, *is;
    ngx_http_sluice_rotation_t  *rotation;

    rotation = try->rotation;

    if (try->tried == NULL) {
        try->tried = ngx_pcalloc(try->request->pool,
                                 ngx_http_sluice_rotation_words(rotation)
                                 * sizeof(uint64_t));
        if (try->tried == NULL) {
            return NGX_ERROR;
        }

        ngx_http_sluice_rotation_mark(rotation, try->peer, try->tried);
    }

    peer = ngx_http_sluice_rotation_next(rotation, try->peer, try->tried);

    if (peer == NGX_ERROR) {
        return NGX_ERROR;
    }

    was = &rotation->peers[try->peer].host;
    is = &rotation->peers[peer].host;

    try->peer = (ngx_uint_t) peer;

    if (try->preserve_host
        || (was->len == is->len
            && ngx_memcmp(was->data, is->data, is->len) == 0))
    {
        return NGX_OK;
    }

    if (++try->rewrites > NGX_HTTP_SLUICE_PEER_REWRITES) {
        return NGX_BUSY;
    }

    ngx_http_sluice_peer_set_host(try->request, is);

    return ngx_http_sluice_head_write(try->request, &try->frame);
}


static void
ngx_http_sluice_peer_set_host(ngx_http_request_t *r, ngx_str_t *host)
{
    ngx_http_variable_value_t  *v;

    v = ngx_http_sluice_peer_host(r);

    v->data = host->data;
    v->len = host->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}


ngx_http_variable_value_t *
ngx_http_sluice_peer_host(ngx_http_request_t *r)
{
    ngx_http_sluice_peer_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_sluice_peer_module);

    return &r->variables[conf->host];
}


static void
ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
#if (NGX_HTTP_SSL)
    ngx_http_sluice_peer_try_t  *try = data;

    ngx_http_sluice_peer_tls_free(&try->tls, pc->connection);
#endif

    if (pc->tries) {
        pc->tries--;
    }
}


#if (NGX_HTTP_SSL)

/* nginx asks when a new connection's SSL is made, before its handshake. */

static ngx_int_t
ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_try_t  *try = data;

    return ngx_http_sluice_peer_tls_make(&try->tls, pc,
                                         &try->request->upstream->ssl_name);
}


static void
ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_try_t  *try = data;

    ngx_http_sluice_peer_tls_save(&try->tls, pc->connection);
}

#endif
