
/*
 * Connections to upstreams are kept for later requests (the parameters of
 * sluice_upstream, ngx_http_sluice_peer.c).
 *
 * As nginx's keepalive, with its limits and its conditions; three things
 * differ.
 *
 *   A connection is taken by who asks for the same address with the same TLS
 *   identity (ngx_http_sluice_pool.h).  nginx looks at the address alone: a
 *   block's connections may then be used for another name than the one that
 *   was sent and verified.
 *
 *   It is found by a hash.
 *
 *   What TLS has taken from the socket and nobody has read ends a connection,
 *   as bytes in the socket do: it would be read as the next response.  So does
 *   TLS's own goodbye.
 */


#include "ngx_http_sluice_pool.h"
#include "ngx_sluice_metrics.h"


static ngx_uint_t ngx_http_sluice_pool_may_keep(
    ngx_http_sluice_pool_use_t *use, ngx_http_upstream_t *u,
    ngx_uint_t state);


/* nginx's defaults */

void
ngx_http_sluice_pool_init(ngx_http_sluice_pool_t *pool)
{
    pool->size = 0;
    pool->requests = 1000;
    pool->timeout = 60000;
    pool->time = 3600000;
}


ngx_int_t
ngx_http_sluice_pool_set(ngx_http_sluice_pool_t *pool, ngx_str_t *value)
{
    ngx_int_t    n;
    ngx_str_t    text;
    ngx_msec_t  *time;

    if (ngx_strncmp(value->data, "keepalive=", 10) == 0) {
        n = ngx_atoi(value->data + 10, value->len - 10);
        pool->size = n;

        return n == NGX_ERROR || n == 0 ? NGX_ERROR : NGX_OK;
    }

    if (ngx_strncmp(value->data, "requests=", 9) == 0) {
        n = ngx_atoi(value->data + 9, value->len - 9);
        pool->requests = n;

        return n == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    text = *value;

    if (ngx_strncmp(text.data, "timeout=", 8) == 0) {
        text.data += 8;
        text.len -= 8;
        time = &pool->timeout;

    } else if (ngx_strncmp(text.data, "time=", 5) == 0) {
        text.data += 5;
        text.len -= 5;
        time = &pool->time;

    } else {
        return NGX_ERROR;
    }

    n = ngx_parse_time(&text, 0);
    *time = n;

    return n == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


void
ngx_http_sluice_pool_begin(ngx_http_sluice_pool_use_t *use,
    ngx_http_sluice_pool_t *pool)
{
    use->pool = pool;
    use->pooled = 0;
}


ngx_int_t
ngx_http_sluice_pool_get(ngx_http_sluice_pool_use_t *use,
    ngx_http_request_t *r, ngx_peer_connection_t *pc)
{
    ngx_connection_t  *c;

    ngx_int_t          rc;

    rc = ngx_http_sluice_pool_tls_read(r, &use->key.tls);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

    use->pooled = 1;
    use->key.sockaddr = pc->sockaddr;
    use->key.socklen = pc->socklen;

    use->entry = ngx_http_sluice_pool_take(use->pool, &use->key);

    if (use->entry == NULL) {
        ngx_sluice_metrics_add(SLUICE_METRICS_POOL_OPENED, 1);
        return NGX_OK;
    }

    ngx_sluice_metrics_add(SLUICE_METRICS_POOL_REUSED, 1);

    c = use->entry->connection;

    c->idle = 0;
    c->sent = 0;
    c->data = NULL;
    c->log = pc->log;
    c->read->log = pc->log;
    c->write->log = pc->log;
    c->pool->log = pc->log;

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    pc->connection = c;
    pc->cached = 1;

    return NGX_DONE;
}


void
ngx_http_sluice_pool_free(ngx_http_sluice_pool_use_t *use,
    ngx_http_request_t *r, ngx_peer_connection_t *pc, ngx_uint_t state)
{
    ngx_connection_t  *c;

    c = pc->connection;

    if (c == NULL
        || !ngx_http_sluice_pool_may_keep(use, r->upstream, state))
    {
        return;
    }

    if (use->entry == NULL) {

        /* the balancer may have moved it since */
        use->key.sockaddr = pc->sockaddr;

        use->entry = ngx_http_sluice_pool_make_entry(use->pool, &use->key, c);
    }

    if (use->entry) {
        pc->connection = NULL;
        ngx_http_sluice_pool_keep(use->entry);
    }
}


/* nginx's conditions, in its order; what TLS has to say is ours. */

static ngx_uint_t
ngx_http_sluice_pool_may_keep(ngx_http_sluice_pool_use_t *use,
    ngx_http_upstream_t *u, ngx_uint_t state)
{
    ngx_connection_t  *c;

    c = u->peer.connection;

    if (state & NGX_PEER_FAILED
        || c->read->eof
        || c->read->error
        || c->read->timedout
        || c->write->error
        || c->write->timedout)
    {
        return 0;
    }

    if (c->requests >= use->pool->requests
        || ngx_current_msec - c->start_time > use->pool->time)
    {
        return 0;
    }

    if (!u->keepalive || !u->request_body_sent) {
        return 0;
    }

    if (ngx_terminate || ngx_exiting) {
        return 0;
    }

    if (use->entry == NULL
        && !ngx_http_sluice_pool_tls_is_made(u, c, &use->key.tls))
    {
        return 0;
    }

    if (c->ssl && !ngx_http_sluice_pool_tls_is_quiet(c)) {
        return 0;
    }

    return ngx_handle_read_event(c->read, 0) == NGX_OK;
}
