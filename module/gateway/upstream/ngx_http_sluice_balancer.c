
/*
 * The balancers that this worker has (ngx_http_sluice_balancer.h), and their
 * picks.
 */


#include "ngx_http_sluice_balancer.h"


#define NGX_HTTP_SLUICE_BALANCER_MAX  (32 * 1024 * 1024)   /* bytes of all */


static ngx_http_sluice_balancer_t *ngx_http_sluice_balancer_find(
    ngx_http_sluice_balancer_source_t *source);
static ngx_uint_t ngx_http_sluice_balancer_is(
    ngx_http_sluice_balancer_t *balancer,
    ngx_http_sluice_balancer_source_t *source);
static void ngx_http_sluice_balancer_add(
    ngx_http_sluice_balancer_t *balancer);
static void ngx_http_sluice_balancer_replace(
    ngx_http_sluice_balancer_t *balancer);
static void ngx_http_sluice_balancer_release(void *data);
static void ngx_http_sluice_balancer_destroy(void *data);
static void ngx_http_sluice_balancer_trim(void);


static ngx_rbtree_t       ngx_http_sluice_balancers;
static ngx_rbtree_node_t  ngx_http_sluice_balancers_sentinel;
static ngx_queue_t        ngx_http_sluice_balancers_idle;
static size_t             ngx_http_sluice_balancers_size;


ngx_http_sluice_balancer_t *
ngx_http_sluice_balancer(ngx_str_t *host, in_port_t port, ngx_uint_t https,
    ngx_pool_t *pool)
{
    ngx_pool_cleanup_t                 *cln;
    ngx_http_sluice_balancer_t         *balancer;
    ngx_http_sluice_balancer_source_t   source;

    /* first, since what is held has to be let go */

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    ngx_memzero(&source, sizeof(ngx_http_sluice_balancer_source_t));

    source.pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (source.pool == NULL) {
        return NULL;
    }

    source.host = *host;
    source.port = port;
    source.https = https;

    balancer = ngx_http_sluice_balancer_find(&source);

    ngx_destroy_pool(source.pool);

    if (balancer == NULL) {
        return NULL;
    }

    if (balancer->pins++ == 0) {
        ngx_queue_remove(&balancer->idle);
    }

    cln->handler = ngx_http_sluice_balancer_release;
    cln->data = balancer;

    ngx_http_sluice_balancer_trim();

    return balancer;
}


ngx_http_sluice_balancer_t *
ngx_http_sluice_balancer_of(const ngx_array_t *addresses, in_port_t port,
    ngx_uint_t https, ngx_pool_t *pool)
{
    ngx_pool_cleanup_t                 *cln;
    ngx_http_sluice_balancer_t         *balancer;
    ngx_http_sluice_balancer_source_t   source;

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    ngx_memzero(&source, sizeof(ngx_http_sluice_balancer_source_t));

    source.pool = pool;
    source.port = port;
    source.https = https;

    if (ngx_http_sluice_balancer_read_addresses(&source, addresses)
        != NGX_OK)
    {
        return NULL;
    }

    balancer = ngx_http_sluice_balancer_build(&source);
    if (balancer == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_sluice_balancer_destroy;
    cln->data = balancer;

    return balancer;
}


static void
ngx_http_sluice_balancer_destroy(void *data)
{
    ngx_http_sluice_balancer_t  *balancer = data;

    ngx_destroy_pool(balancer->pool);
}


static ngx_http_sluice_balancer_t *
ngx_http_sluice_balancer_find(ngx_http_sluice_balancer_source_t *source)
{
    ngx_http_sluice_balancer_t  *balancer, *old;

    if (ngx_http_sluice_balancer_read(source) != NGX_OK) {
        return NULL;
    }

    if (ngx_http_sluice_balancers.root == NULL) {
        ngx_rbtree_init(&ngx_http_sluice_balancers,
                        &ngx_http_sluice_balancers_sentinel,
                        ngx_str_rbtree_insert_value);
        ngx_queue_init(&ngx_http_sluice_balancers_idle);
    }

    old = (ngx_http_sluice_balancer_t *)
              ngx_str_rbtree_lookup(&ngx_http_sluice_balancers, &source->key,
                                    ngx_crc32_short(source->key.data,
                                                    source->key.len));

    if (old && ngx_http_sluice_balancer_is(old, source)) {
        return old;
    }

    balancer = ngx_http_sluice_balancer_build(source);
    if (balancer == NULL) {
        return NULL;
    }

    if (old) {
        ngx_http_sluice_balancer_replace(old);
    }

    ngx_http_sluice_balancer_add(balancer);

    return balancer;
}


static ngx_uint_t
ngx_http_sluice_balancer_is(ngx_http_sluice_balancer_t *balancer,
    ngx_http_sluice_balancer_source_t *source)
{
    return balancer->made_of_count == source->made_of.nelts
           && ngx_memcmp(balancer->made_of, source->made_of.elts,
                         source->made_of.nelts * sizeof(uint64_t))
              == 0;
}


static void
ngx_http_sluice_balancer_add(ngx_http_sluice_balancer_t *balancer)
{
    ngx_str_t  *key;

    key = &balancer->node.str;
    balancer->node.node.key = ngx_crc32_short(key->data, key->len);

    ngx_rbtree_insert(&ngx_http_sluice_balancers, &balancer->node.node);
    ngx_queue_insert_head(&ngx_http_sluice_balancers_idle, &balancer->idle);

    ngx_http_sluice_balancers_size += balancer->size;
}


/* Who uses it goes on with it. */

static void
ngx_http_sluice_balancer_replace(ngx_http_sluice_balancer_t *balancer)
{
    ngx_rbtree_delete(&ngx_http_sluice_balancers, &balancer->node.node);
    balancer->replaced = 1;

    if (balancer->pins == 0) {
        ngx_queue_remove(&balancer->idle);
        ngx_http_sluice_balancers_size -= balancer->size;
        ngx_destroy_pool(balancer->pool);
    }
}


static void
ngx_http_sluice_balancer_release(void *data)
{
    ngx_http_sluice_balancer_t  *balancer = data;

    balancer->pins--;

    if (balancer->pins) {
        return;
    }

    if (balancer->replaced) {
        ngx_http_sluice_balancers_size -= balancer->size;
        ngx_destroy_pool(balancer->pool);
        return;
    }

    ngx_queue_insert_head(&ngx_http_sluice_balancers_idle, &balancer->idle);
    ngx_http_sluice_balancer_trim();
}


static void
ngx_http_sluice_balancer_trim(void)
{
    ngx_queue_t  *idle;

    idle = &ngx_http_sluice_balancers_idle;

    while (ngx_http_sluice_balancer_is_full() && !ngx_queue_empty(idle)) {
        ngx_http_sluice_balancer_replace(
            ngx_queue_data(ngx_queue_last(idle), ngx_http_sluice_balancer_t,
                           idle));
    }
}


ngx_uint_t
ngx_http_sluice_balancer_is_full(void)
{
    return ngx_http_sluice_balancers_size > NGX_HTTP_SLUICE_BALANCER_MAX;
}


ngx_int_t
ngx_http_sluice_balancer_pick(ngx_http_sluice_balancer_t *balancer,
    uint64_t *tried)
{
    int  peer;

    peer = sluice_balancer_pick(balancer->picks, balancer->position,
                                balancer->generation, NULL, tried);

    return peer == SLUICE_CORE_NONE ? NGX_ERROR : peer;
}


/*
 * Each address once, in any order; then again each once.  The last one of a
 * round is not the first of the next, if there are others.
 */

ngx_int_t
ngx_http_sluice_balancer_next(ngx_http_sluice_balancer_t *balancer,
    ngx_uint_t last, uint64_t *tried)
{
    size_t     size;
    ngx_int_t  peer;

    peer = ngx_http_sluice_balancer_pick(balancer, tried);

    if (peer == NGX_ERROR) {
        size = ngx_http_sluice_balancer_words(balancer) * sizeof(uint64_t);

        ngx_memzero(tried, size);
        ngx_http_sluice_balancer_mark(balancer, last, tried);

        peer = ngx_http_sluice_balancer_pick(balancer, tried);

        ngx_memzero(tried, size);

        if (peer == NGX_ERROR) {
            peer = ngx_http_sluice_balancer_pick(balancer, tried);
        }

        if (peer == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    ngx_http_sluice_balancer_mark(balancer, (ngx_uint_t) peer, tried);

    return peer;
}


void
ngx_http_sluice_balancer_mark(ngx_http_sluice_balancer_t *balancer,
    ngx_uint_t peer, uint64_t *tried)
{
    ngx_uint_t  i;

    i = peer;

    do {
        tried[i / 64] |= (uint64_t) 1 << i % 64;
        i = balancer->peers[i].same;
    } while (i != peer);
}
