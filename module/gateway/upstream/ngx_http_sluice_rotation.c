
/*
 * The rotations that this worker has (ngx_http_sluice_rotation.h), and their
 * turns.
 */


#include "ngx_sluice.h"
#include "ngx_http_sluice_rotation.h"


#define NGX_HTTP_SLUICE_ROTATION_MAX  (32 * 1024 * 1024)   /* bytes of all */


static ngx_http_sluice_rotation_t *ngx_http_sluice_rotation_find(
    ngx_http_sluice_rotation_source_t *source);
static ngx_uint_t ngx_http_sluice_rotation_is(
    ngx_http_sluice_rotation_t *rotation,
    ngx_http_sluice_rotation_source_t *source);
static void ngx_http_sluice_rotation_add(
    ngx_http_sluice_rotation_t *rotation);
static void ngx_http_sluice_rotation_replace(
    ngx_http_sluice_rotation_t *rotation);
static void ngx_http_sluice_rotation_release(void *data);
static void ngx_http_sluice_rotation_trim(void);


static ngx_rbtree_t       ngx_http_sluice_rotations;
static ngx_rbtree_node_t  ngx_http_sluice_rotations_sentinel;
static ngx_queue_t        ngx_http_sluice_rotations_idle;
static size_t             ngx_http_sluice_rotations_size;


ngx_http_sluice_rotation_t *
ngx_http_sluice_rotation(ngx_str_t *host, in_port_t port, ngx_uint_t https,
    ngx_pool_t *pool)
{
    ngx_pool_cleanup_t                 *cln;
    ngx_http_sluice_rotation_t         *rotation;
    ngx_http_sluice_rotation_source_t   source;

    /* first, since what is held has to be let go */

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    ngx_memzero(&source, sizeof(ngx_http_sluice_rotation_source_t));

    source.pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (source.pool == NULL) {
        return NULL;
    }

    source.host = *host;
    source.port = port;
    source.https = https;

    rotation = ngx_http_sluice_rotation_find(&source);

    ngx_destroy_pool(source.pool);

    if (rotation == NULL) {
        return NULL;
    }

    if (rotation->holders++ == 0) {
        ngx_queue_remove(&rotation->idle);
    }

    cln->handler = ngx_http_sluice_rotation_release;
    cln->data = rotation;

    ngx_http_sluice_rotation_trim();

    return rotation;
}


static ngx_http_sluice_rotation_t *
ngx_http_sluice_rotation_find(ngx_http_sluice_rotation_source_t *source)
{
    ngx_http_sluice_rotation_t  *rotation, *old;

    if (ngx_http_sluice_rotation_read(source) != NGX_OK) {
        return NULL;
    }

    if (ngx_http_sluice_rotations.root == NULL) {
        ngx_rbtree_init(&ngx_http_sluice_rotations,
                        &ngx_http_sluice_rotations_sentinel,
                        ngx_str_rbtree_insert_value);
        ngx_queue_init(&ngx_http_sluice_rotations_idle);
    }

    old = (ngx_http_sluice_rotation_t *)
              ngx_str_rbtree_lookup(&ngx_http_sluice_rotations, &source->key,
                                    ngx_crc32_short(source->key.data,
                                                    source->key.len));

    if (old && ngx_http_sluice_rotation_is(old, source)) {
        return old;
    }

    rotation = ngx_http_sluice_rotation_build(source);
    if (rotation == NULL) {
        return NULL;
    }

    if (old) {
        ngx_http_sluice_rotation_replace(old);
    }

    ngx_http_sluice_rotation_add(rotation);

    return rotation;
}


static ngx_uint_t
ngx_http_sluice_rotation_is(ngx_http_sluice_rotation_t *rotation,
    ngx_http_sluice_rotation_source_t *source)
{
    return rotation->made_of_count == source->made_of.nelts
           && ngx_memcmp(rotation->made_of, source->made_of.elts,
                         source->made_of.nelts * sizeof(uint64_t))
              == 0;
}


static void
ngx_http_sluice_rotation_add(ngx_http_sluice_rotation_t *rotation)
{
    ngx_str_t  *key;

    key = &rotation->node.str;
    rotation->node.node.key = ngx_crc32_short(key->data, key->len);

    ngx_rbtree_insert(&ngx_http_sluice_rotations, &rotation->node.node);
    ngx_queue_insert_head(&ngx_http_sluice_rotations_idle, &rotation->idle);

    ngx_http_sluice_rotations_size += rotation->size;
}


/* Who uses it goes on with it. */

static void
ngx_http_sluice_rotation_replace(ngx_http_sluice_rotation_t *rotation)
{
    ngx_rbtree_delete(&ngx_http_sluice_rotations, &rotation->node.node);
    rotation->replaced = 1;

    if (rotation->holders == 0) {
        ngx_queue_remove(&rotation->idle);
        ngx_http_sluice_rotations_size -= rotation->size;
        ngx_destroy_pool(rotation->pool);
    }
}


static void
ngx_http_sluice_rotation_release(void *data)
{
    ngx_http_sluice_rotation_t  *rotation = data;

    rotation->holders--;

    if (rotation->holders) {
        return;
    }

    if (rotation->replaced) {
        ngx_http_sluice_rotations_size -= rotation->size;
        ngx_destroy_pool(rotation->pool);
        return;
    }

    ngx_queue_insert_head(&ngx_http_sluice_rotations_idle, &rotation->idle);
    ngx_http_sluice_rotation_trim();
}


static void
ngx_http_sluice_rotation_trim(void)
{
    ngx_queue_t  *idle;

    idle = &ngx_http_sluice_rotations_idle;

    while (ngx_http_sluice_rotations_are_full() && !ngx_queue_empty(idle)) {
        ngx_http_sluice_rotation_replace(
            ngx_queue_data(ngx_queue_last(idle), ngx_http_sluice_rotation_t,
                           idle));
    }
}


ngx_uint_t
ngx_http_sluice_rotations_are_full(void)
{
    return ngx_http_sluice_rotations_size > NGX_HTTP_SLUICE_ROTATION_MAX;
}


ngx_int_t
ngx_http_sluice_rotation_pick(ngx_http_sluice_rotation_t *rotation,
    uint64_t *tried)
{
    int  peer;

    peer = sluice_core_balance(rotation->turns, rotation->position,
                               rotation->generation, NULL, tried);

    return peer == SLUICE_CORE_NONE ? NGX_ERROR : peer;
}


/*
 * Each address once, in any order; then again each once.  The last one of a
 * round is not the first of the next, if there are others.
 */

ngx_int_t
ngx_http_sluice_rotation_next(ngx_http_sluice_rotation_t *rotation,
    ngx_uint_t last, uint64_t *tried)
{
    size_t     size;
    ngx_int_t  peer;

    peer = ngx_http_sluice_rotation_pick(rotation, tried);

    if (peer == NGX_ERROR) {
        size = ngx_http_sluice_rotation_words(rotation) * sizeof(uint64_t);

        ngx_memzero(tried, size);
        ngx_http_sluice_rotation_mark(rotation, last, tried);

        peer = ngx_http_sluice_rotation_pick(rotation, tried);

        ngx_memzero(tried, size);

        if (peer == NGX_ERROR) {
            peer = ngx_http_sluice_rotation_pick(rotation, tried);
        }

        if (peer == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    ngx_http_sluice_rotation_mark(rotation, (ngx_uint_t) peer, tried);

    return peer;
}


void
ngx_http_sluice_rotation_mark(ngx_http_sluice_rotation_t *rotation,
    ngx_uint_t peer, uint64_t *tried)
{
    ngx_uint_t  i;

    i = peer;

    do {
        tried[i / 64] |= (uint64_t) 1 << i % 64;
        i = rotation->peers[i].same;
    } while (i != peer);
}
