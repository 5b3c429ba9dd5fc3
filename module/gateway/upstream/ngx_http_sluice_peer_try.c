
/*
 * Whom the tries of a request go to (ngx_http_sluice_peer_try.h): one selector
 * for the first and for those after it.
 *
 * Who was tried is known from the first retry on, so that a first try costs
 * the same for any number of targets.  A retry whose peer has another Host
 * header writes the request's head anew, at most so often.
 *
 * A request goes on with the targets that it began with, also when one is
 * removed meanwhile.
 */


#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_head.h"
#include "ngx_http_sluice_peer_try.h"


/* what is written anew takes memory until the request ends */

#define NGX_HTTP_SLUICE_PEER_TRY_REWRITES  256


static ngx_str_t  ngx_http_sluice_peer_host_name = ngx_string("sluice_host");


static void ngx_http_sluice_peer_try_scheme(ngx_http_request_t *r,
    ngx_http_sluice_service_t *service);
static ngx_int_t ngx_http_sluice_peer_try_time(ngx_http_request_t *r,
    ngx_http_sluice_service_t *service);
static ngx_int_t ngx_http_sluice_peer_try_next(
    ngx_http_sluice_peer_try_t *try);


ngx_int_t
ngx_http_sluice_peer_try_init(ngx_http_sluice_peer_try_t *try,
    ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL || !ctx->has_peer) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a plugin has ended the access phase before the request "
                      "had a peer");
        return NGX_ERROR;
    }

    try->request = r;
    try->balancer = ctx->service->balancer;
    try->peer = ctx->peer;
    try->tried = NULL;
    try->rewrites = 0;
    try->begun = 0;
    try->preserve_host = (ctx->route_flags
                          & SLUICE_ROUTE_PRESERVE_HOST) != 0;

    r->upstream->peer.tries = ctx->service->tries;

    if (ngx_http_sluice_peer_tls_init(&try->tls, r, ctx->service->tls)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* nginx looks at this when the response comes, and no more at its conf */

    if (ctx->route_flags & SLUICE_ROUTE_STREAM_RESPONSE) {
        r->upstream->buffering = 0;
    }

    ngx_http_sluice_peer_try_scheme(r, ctx->service);

    ngx_http_sluice_head_frame(r, &try->frame);

    if (ngx_http_sluice_head_write(r, &try->frame) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_peer_try_time(r, ctx->service);
}


/* proxy_pass says https, so that its context of TLS is there. */

static void
ngx_http_sluice_peer_try_scheme(ngx_http_request_t *r,
    ngx_http_sluice_service_t *service)
{
    if (service->https) {
        return;
    }

    r->upstream->ssl = 0;

    ngx_str_set(&r->upstream->schema, "http://");
}


/* nginx reads timeouts from the location's configuration: hence a copy. */

static ngx_int_t
ngx_http_sluice_peer_try_time(ngx_http_request_t *r,
    ngx_http_sluice_service_t *service)
{
#if (HAVE_NGX_UPSTREAM_TIMEOUT_FIELDS)
    ngx_http_upstream_t       *to = r->upstream;
#else
    ngx_http_upstream_conf_t  *to;
#endif

    if (service->connect_ms == 0
        && service->send_ms == 0
        && service->read_ms == 0)
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

    if (service->connect_ms) {
        to->connect_timeout = service->connect_ms;
    }

    if (service->send_ms) {
        to->send_timeout = service->send_ms;
    }

    if (service->read_ms) {
        to->read_timeout = service->read_ms;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_peer_try_get(ngx_http_sluice_peer_try_t *try,
    ngx_peer_connection_t *pc)
{
    ngx_int_t                rc;
    ngx_http_sluice_peer_t  *peer;

    if (try->begun) {
        rc = ngx_http_sluice_peer_try_next(try);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    try->begun = 1;
    peer = &try->balancer->peers[try->peer];

    pc->sockaddr = peer->sockaddr;
    pc->socklen = peer->socklen;
    pc->name = &peer->name;
    pc->cached = 0;
    pc->connection = NULL;

    return NGX_OK;
}


/* NGX_OK, NGX_BUSY: this was the last try, NGX_ERROR */

static ngx_int_t
ngx_http_sluice_peer_try_next(ngx_http_sluice_peer_try_t *try)
{
    ngx_int_t                    peer;
    ngx_str_t                   *was, *is;
    ngx_http_sluice_balancer_t  *balancer;

    balancer = try->balancer;

    if (try->tried == NULL) {
        try->tried = ngx_pcalloc(try->request->pool,
                                 ngx_http_sluice_balancer_words(balancer)
                                 * sizeof(uint64_t));
        if (try->tried == NULL) {
            return NGX_ERROR;
        }

        ngx_http_sluice_balancer_mark(balancer, try->peer, try->tried);
    }

    peer = ngx_http_sluice_balancer_next(balancer, try->peer, try->tried);

    if (peer == NGX_ERROR) {
        return NGX_ERROR;
    }

    was = &balancer->peers[try->peer].host;
    is = &balancer->peers[peer].host;

    try->peer = (ngx_uint_t) peer;

    if (try->preserve_host
        || (was->len == is->len
            && ngx_memcmp(was->data, is->data, is->len) == 0))
    {
        return NGX_OK;
    }

    if (++try->rewrites > NGX_HTTP_SLUICE_PEER_TRY_REWRITES) {
        return NGX_BUSY;
    }

    ngx_http_sluice_peer_host_set(try->request, is);

    return ngx_http_sluice_head_write(try->request, &try->frame);
}


ngx_http_variable_value_t *
ngx_http_sluice_peer_host(ngx_http_request_t *r)
{
    ngx_http_sluice_peer_host_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, peer_host);

    return &r->variables[conf->index];
}


void
ngx_http_sluice_peer_host_set(ngx_http_request_t *r, ngx_str_t *host)
{
    ngx_http_variable_value_t  *v;

    v = ngx_http_sluice_peer_host(r);

    v->data = host->data;
    v->len = host->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}


ngx_int_t
ngx_http_sluice_peer_host_add(ngx_conf_t *cf,
    ngx_http_sluice_peer_host_conf_t *conf)
{
    ngx_int_t  index;

    index = ngx_http_get_variable_index(cf, &ngx_http_sluice_peer_host_name);
    if (index == NGX_ERROR) {
        return NGX_ERROR;
    }

    conf->index = (ngx_uint_t) index;

    return NGX_OK;
}
