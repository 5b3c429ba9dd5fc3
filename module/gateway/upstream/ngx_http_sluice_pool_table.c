
/*
 * The connections that a pool keeps, and what becomes of them while they are
 * idle.  After nginx's ngx_http_upstream_keepalive_module.c, which keeps them
 * in a list.
 */


#include "ngx_http_sluice_pool.h"
#include "ngx_sluice_metrics.h"
#include "hash.h"


static void ngx_http_sluice_pool_hash(ngx_http_sluice_pool_key_t *key);
static ngx_uint_t ngx_http_sluice_pool_equal(ngx_http_sluice_pool_key_t *one,
    ngx_http_sluice_pool_key_t *other);
static void ngx_http_sluice_pool_remove(ngx_http_sluice_pool_entry_t *entry);
static void ngx_http_sluice_pool_write_handler(ngx_event_t *ev);
static void ngx_http_sluice_pool_read_handler(ngx_event_t *ev);
static void ngx_http_sluice_pool_close(ngx_connection_t *c);


ngx_int_t
ngx_http_sluice_pool_create(ngx_http_sluice_pool_t *pool, ngx_pool_t *memory)
{
    ngx_uint_t  i, n;

    for (n = 1; n < pool->size; n *= 2) { /* void */ }

    pool->chains = ngx_palloc(memory, n * sizeof(ngx_queue_t));
    if (pool->chains == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        ngx_queue_init(&pool->chains[i]);
    }

    pool->mask = n - 1;
    pool->count = 0;
    ngx_queue_init(&pool->recent);

    return NGX_OK;
}


ngx_http_sluice_pool_entry_t *
ngx_http_sluice_pool_take(ngx_http_sluice_pool_t *pool,
    ngx_http_sluice_pool_key_t *key)
{
    ngx_queue_t                   *q, *chain;
    ngx_http_sluice_pool_entry_t  *entry;

    ngx_http_sluice_pool_hash(key);

    chain = &pool->chains[key->hash & pool->mask];

    for (q = ngx_queue_head(chain);
         q != ngx_queue_sentinel(chain);
         q = ngx_queue_next(q))
    {
        entry = ngx_queue_data(q, ngx_http_sluice_pool_entry_t, chain);

        if (ngx_http_sluice_pool_equal(&entry->key, key)) {
            ngx_http_sluice_pool_remove(entry);
            return entry;
        }
    }

    return NULL;
}


static void
ngx_http_sluice_pool_hash(ngx_http_sluice_pool_key_t *key)
{
    uint64_t  seed = 0;

    if (key->tls.ctx) {
        ngx_memcpy(&seed, key->tls.service, sizeof(seed));
        seed = sluice_core_hash(seed ^ (uintptr_t) key->tls.ctx,
                                key->tls.name.data, key->tls.name.len);
    }

    key->hash = sluice_core_hash(seed, key->sockaddr, key->socklen);
}


static ngx_uint_t
ngx_http_sluice_pool_equal(ngx_http_sluice_pool_key_t *one,
    ngx_http_sluice_pool_key_t *other)
{
    if (one->hash != other->hash
        || one->socklen != other->socklen
        || ngx_memcmp(one->sockaddr, other->sockaddr, one->socklen) != 0)
    {
        return 0;
    }

    if (one->tls.ctx != other->tls.ctx
        || one->tls.server_name != other->tls.server_name
        || one->tls.verify != other->tls.verify
        || one->tls.name.len != other->tls.name.len
        || ngx_memcmp(one->tls.name.data, other->tls.name.data,
                      one->tls.name.len)
           != 0
        || ngx_memcmp(one->tls.service, other->tls.service,
                      sizeof(one->tls.service))
           != 0)
    {
        return 0;
    }

    return 1;
}


static void
ngx_http_sluice_pool_remove(ngx_http_sluice_pool_entry_t *entry)
{
    ngx_queue_remove(&entry->recent);
    ngx_queue_remove(&entry->chain);
    entry->pool->count--;
    ngx_sluice_metrics_add(SLUICE_METRICS_POOL_IDLE, -1);
}


ngx_http_sluice_pool_entry_t *
ngx_http_sluice_pool_make_entry(ngx_http_sluice_pool_t *pool,
    ngx_http_sluice_pool_key_t *key, ngx_connection_t *c)
{
    u_char                        *p;
    size_t                         size;
    ngx_http_sluice_pool_entry_t  *entry;

    size = sizeof(ngx_http_sluice_pool_entry_t) + key->socklen;
    size += key->tls.name.len;

    entry = ngx_palloc(c->pool, size);
    if (entry == NULL) {
        return NULL;
    }

    p = (u_char *) (entry + 1);

    entry->pool = pool;
    entry->connection = c;
    entry->key = *key;

    entry->key.sockaddr = (struct sockaddr *) p;
    p = ngx_cpymem(p, key->sockaddr, key->socklen);

    entry->key.tls.name.data = p;
    ngx_memcpy(p, key->tls.name.data, key->tls.name.len);

    return entry;
}


void
ngx_http_sluice_pool_keep(ngx_http_sluice_pool_entry_t *entry)
{
    ngx_queue_t                   *chain;
    ngx_connection_t              *c;
    ngx_http_sluice_pool_t        *pool;
    ngx_http_sluice_pool_entry_t  *oldest;

    pool = entry->pool;

    if (pool->count == pool->size) {
        oldest = ngx_queue_data(ngx_queue_last(&pool->recent),
                                ngx_http_sluice_pool_entry_t, recent);
        ngx_http_sluice_pool_remove(oldest);
        ngx_http_sluice_pool_close(oldest->connection);
        ngx_sluice_metrics_add(SLUICE_METRICS_POOL_CLOSED, 1);
    }

    chain = &pool->chains[entry->key.hash & pool->mask];

    ngx_queue_insert_head(&pool->recent, &entry->recent);
    ngx_queue_insert_head(chain, &entry->chain);
    pool->count++;
    ngx_sluice_metrics_add(SLUICE_METRICS_POOL_IDLE, 1);

    c = entry->connection;

    c->read->delayed = 0;
    ngx_add_timer(c->read, pool->timeout);

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    c->write->handler = ngx_http_sluice_pool_write_handler;
    c->read->handler = ngx_http_sluice_pool_read_handler;

    c->data = entry;
    c->idle = 1;
    c->log = ngx_cycle->log;
    c->read->log = ngx_cycle->log;
    c->write->log = ngx_cycle->log;
    c->pool->log = ngx_cycle->log;

    if (c->read->ready) {
        ngx_http_sluice_pool_read_handler(c->read);
    }
}


static void
ngx_http_sluice_pool_write_handler(ngx_event_t *ev)
{
    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ev->log, 0, "sluice pool: writable");
}


/* The upstream sent something or closed, time is up, or the worker leaves. */

static void
ngx_http_sluice_pool_read_handler(ngx_event_t *ev)
{
    int                n;
    char               buf[1];
    ngx_connection_t  *c;

    c = ev->data;

    if (!c->close && !ev->timedout) {

        n = recv(c->fd, buf, 1, MSG_PEEK);

        if (n == -1 && ngx_socket_errno == NGX_EAGAIN) {
            ev->ready = 0;

            if (ngx_handle_read_event(ev, 0) == NGX_OK) {
                return;
            }
        }
    }

    ngx_http_sluice_pool_remove(c->data);
    ngx_http_sluice_pool_close(c);
    ngx_sluice_metrics_add(SLUICE_METRICS_POOL_CLOSED, 1);
}


static void
ngx_http_sluice_pool_close(ngx_connection_t *c)
{
    if (c->ssl) {
        c->ssl->no_wait_shutdown = 1;
        c->ssl->no_send_shutdown = 1;

        if (ngx_ssl_shutdown(c) == NGX_AGAIN) {
            c->ssl->handler = ngx_http_sluice_pool_close;
            return;
        }
    }

    ngx_destroy_pool(c->pool);
    ngx_close_connection(c);
}
