
/*
 * Between nginx and an upstream: the one place where the gateway stands behind
 * nginx's interface of peers.
 *
 *     upstream sluice_upstream {
 *         server 0.0.0.1;
 *         sluice_upstream keepalive=512 requests=10000 timeout=60s;
 *     }
 *
 * The block's server is there because nginx wants one.  What nginx calls, and
 * in which order that does what:
 *
 *   init          once for a request to an upstream.
 *                 1. the balancer: the access phase has left the service
 *                    in the request's context and has taken the first turn
 *                    (ngx_http_sluice_peer_begin()): the Host header of the
 *                    request, which nginx writes before it asks for a peer,
 *                    depends on who that is
 *                 2. the callbacks below, and the two that read the head of
 *                    the response (ngx_http_sluice_response.c), which come
 *                    before nginx's own
 *
 *   get           for each try, before it is connected.
 *                 1. the balancer says who is next
 *                 2. the pool has an idle connection to that one, or not: the
 *                    balancer may change the name that TLS asks for
 *
 *   set_session   for a new connection, before its handshake: what the service
 *                 has of TLS, and a session of an earlier connection
 *
 *   save_session  when a session has come
 *
 *   free          when a try has ended.
 *                 1. why, if it has failed (ngx_http_sluice_peer_error.c)
 *                 2. the pool keeps the connection, or not
 *                 3. the balancer: a session that led to no handshake is
 *                    forgotten, and there is a try less
 *
 * The balancer is the gateway's own (ngx_http_sluice_peer_try.c) where the
 * block names no other.  Without keepalive= no connection is kept.
 */


#include "ngx_http_sluice_changed.h"
#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_peer_data.h"


static ngx_int_t ngx_http_sluice_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sluice_peer_init_other(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us, ngx_http_sluice_peer_other_t *other,
    ngx_http_upstream_init_peer_pt init);
static ngx_int_t ngx_http_sluice_peer_get(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc,
    void *data);


/* Any of keepalive=, requests=, timeout=, time=. */

char *
ngx_http_sluice_peer_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                     *value;
    ngx_uint_t                     i;
    ngx_http_sluice_peer_conf_t   *pcf;
    ngx_http_upstream_srv_conf_t  *us;

    pcf = ngx_http_sluice_set_conf(conf, cmd);

    if (pcf->enabled) {
        return "is duplicate";
    }

    pcf->enabled = 1;

    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    if (us->peer.init_upstream == NULL) {
        us->peer.init_upstream = ngx_http_sluice_peer_init_upstream;

        us->flags = NGX_HTTP_UPSTREAM_CREATE
                    |NGX_HTTP_UPSTREAM_WEIGHT
                    |NGX_HTTP_UPSTREAM_MAX_FAILS
                    |NGX_HTTP_UPSTREAM_FAIL_TIMEOUT
                    |NGX_HTTP_UPSTREAM_DOWN;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_http_sluice_pool_set(&pcf->pool, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" in \"%V\" directive",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }
    }

    if (pcf->pool.size
        && ngx_http_sluice_pool_create(&pcf->pool, cf->pool) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sluice_peer_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_sluice_peer_conf_t  *pcf;

    pcf = ngx_http_sluice_srv_conf(us, peer);
    pcf->own = 1;

    us->peer.init = ngx_http_sluice_peer_init;

    return NGX_OK;
}


/* By now each block has its balancer, wherever that stands in it. */

void
ngx_http_sluice_peer_init_conf(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_sluice_peer_conf_t     *pcf;
    ngx_http_upstream_srv_conf_t   **us;
    ngx_http_upstream_main_conf_t   *umcf;

    ngx_http_sluice_header_own = ngx_http_sluice_response_add_own;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    us = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        /* a proxy_pass to an address has none */

        if (us[i]->srv_conf == NULL) {
            continue;
        }

        pcf = ngx_http_sluice_srv_conf(us[i], peer);

        if (!pcf->enabled || us[i]->peer.init == ngx_http_sluice_peer_init) {
            continue;
        }

        /*
         * What wraps our balancer, as nginx's keepalive does, would call us
         * for ever, and keeps connections by their address alone.
         */

        if (!pcf->own) {
            pcf->other = us[i]->peer.init;
        }

        us[i]->peer.init = ngx_http_sluice_peer_init;
    }
}


ngx_int_t
ngx_http_sluice_peer_begin(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_int_t                    peer;
    ngx_http_sluice_balancer_t  *balancer;

    balancer = ctx->service->balancer;
    peer = ngx_http_sluice_balancer_pick(balancer, NULL);

    if (peer == NGX_ERROR) {
        return NGX_DECLINED;
    }

    ctx->peer = (uint32_t) peer;
    ctx->has_peer = 1;

    if (ctx->changed && ctx->changed->host.data) {
        ctx->route_flags |= SLUICE_ROUTE_PRESERVE_HOST;
        ngx_http_sluice_peer_host_set(r, &ctx->changed->host);

    } else if (r->headers_in.host
               && (ctx->route_flags & SLUICE_ROUTE_PRESERVE_HOST))
    {
        ngx_http_sluice_peer_host_set(r, &r->headers_in.host->value);

    } else {
        ctx->route_flags &= ~SLUICE_ROUTE_PRESERVE_HOST;
        ngx_http_sluice_peer_host_set(r, &balancer->peers[peer].host);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_int_t                     rc;
    ngx_peer_connection_t        *pc;
    ngx_http_sluice_peer_conf_t  *pcf;
    ngx_http_sluice_peer_data_t  *peer;

    pcf = ngx_http_sluice_srv_conf(us, peer);

    peer = ngx_palloc(r->pool, sizeof(ngx_http_sluice_peer_data_t));
    if (peer == NULL) {
        return NGX_ERROR;
    }

    peer->request = r;

    if (pcf->other) {
        rc = ngx_http_sluice_peer_init_other(r, us, &peer->other, pcf->other);

    } else {
        peer->other.get = NULL;
        rc = ngx_http_sluice_peer_try_init(&peer->try, r);
    }

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_sluice_pool_begin(&peer->pool,
                               pcf->pool.size ? &pcf->pool : NULL);

    pc = &r->upstream->peer;

    pc->data = peer;
    pc->get = ngx_http_sluice_peer_get;
    pc->free = ngx_http_sluice_peer_free;

    pc->set_session = ngx_http_sluice_peer_set_session;
    pc->save_session = ngx_http_sluice_peer_save_session;

    ngx_http_sluice_response_begin(&peer->response, r->upstream);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_init_other(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us, ngx_http_sluice_peer_other_t *other,
    ngx_http_upstream_init_peer_pt init)
{
    ngx_peer_connection_t  *pc;

    if (init(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    pc = &r->upstream->peer;

    other->data = pc->data;
    other->get = pc->get;
    other->free = pc->free;

    other->set_session = pc->set_session;
    other->save_session = pc->save_session;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_data_t  *peer = data;

    ngx_int_t  rc;

    peer->pool.pooled = 0;

    rc = peer->other.get ? peer->other.get(pc, peer->other.data)
                         : ngx_http_sluice_peer_try_get(&peer->try, pc);

    if (rc != NGX_OK || peer->pool.pool == NULL) {
        return rc;
    }

    return ngx_http_sluice_pool_get(&peer->pool, peer->request, pc);
}


static void
ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_sluice_peer_data_t  *peer = data;

    ngx_http_sluice_peer_error(peer->request, pc, state);

    if (peer->pool.pooled) {
        ngx_http_sluice_pool_free(&peer->pool, peer->request, pc, state);
    }

    if (peer->other.get) {
        peer->other.free(pc, peer->other.data, state);
        return;
    }

    ngx_http_sluice_peer_tls_free(&peer->try.tls, pc->connection);

    if (pc->tries) {
        pc->tries--;
    }
}


static ngx_int_t
ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_data_t  *peer = data;

    if (peer->other.get) {
        return peer->other.set_session(pc, peer->other.data);
    }

    return ngx_http_sluice_peer_tls_make(&peer->try.tls, pc,
                                         &peer->request->upstream->ssl_name);
}


static void
ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_data_t  *peer = data;

    if (peer->other.get) {
        peer->other.save_session(pc, peer->other.data);
        return;
    }

    ngx_http_sluice_peer_tls_save(&peer->try.tls, pc->connection);
}
