
/*
 * The pools of compiled things (ngx_http_sluice_live.h), one an epoch.
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_live.h"

#include <malloc.h>


#define NGX_HTTP_SLUICE_LIVE_MAX    (8 * 1024 * 1024)      /* bytes */
#define NGX_HTTP_SLUICE_LIVE_BLOCK  (16 * 1024)
#define NGX_HTTP_SLUICE_LIVE_BITS   4                      /* at first */


/* A request, in its pool. */

typedef struct {
    ngx_queue_t                     queue;      /* of live's */
    ngx_http_sluice_live_t         *live;       /* NULL: it has left */
    ngx_http_request_t             *request;
    ngx_http_sluice_live_leave_pt   leave;
} ngx_http_sluice_live_holder_t;


static ngx_http_sluice_live_t *ngx_http_sluice_live_create(uint64_t epoch);
static void ngx_http_sluice_live_free_tables(void *data);
static void ngx_http_sluice_live_leave_old(void);
static void ngx_http_sluice_live_release(void *data);
static void ngx_http_sluice_live_remove(ngx_http_sluice_live_holder_t *holder);
static void ngx_http_sluice_live_free_unused(ngx_http_sluice_live_t *live);
static ngx_int_t ngx_http_sluice_live_grow(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_t *table);
static ngx_http_sluice_live_entry_t *ngx_http_sluice_live_find(
    ngx_http_sluice_live_table_t *table, uint32_t slot);
static void ngx_http_sluice_live_count(ngx_http_sluice_live_t *live);


static ngx_http_sluice_live_t  *ngx_http_sluice_live_now;

/* that requests still hold */

static ngx_queue_t  ngx_http_sluice_lives_old = {
    &ngx_http_sluice_lives_old, &ngx_http_sluice_lives_old
};


ngx_http_sluice_live_t *
ngx_http_sluice_live(void)
{
    uint64_t                 epoch;
    ngx_http_sluice_live_t  *live, *old;

    if (sluice_images_view() == NULL) {
        return NULL;
    }

    old = ngx_http_sluice_live_now;
    epoch = sluice_images_epoch();

    if (old && old->epoch == epoch && !old->full) {
        return old;
    }

    live = ngx_http_sluice_live_create(epoch);
    if (live == NULL) {
        return NULL;
    }

    /* before the old one goes: rotations that both use are found again */

    ngx_http_sluice_live_now = live;

    if (old) {
        ngx_queue_insert_tail(&ngx_http_sluice_lives_old, &old->queue);
    }

    ngx_http_sluice_live_leave_old();

    return live;
}


static ngx_http_sluice_live_t *
ngx_http_sluice_live_create(uint64_t epoch)
{
    ngx_pool_t              *pool;
    ngx_pool_cleanup_t      *cln;
    ngx_http_sluice_live_t  *live;

    pool = ngx_create_pool(NGX_HTTP_SLUICE_LIVE_BLOCK, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    live = ngx_pcalloc(pool, sizeof(ngx_http_sluice_live_t));
    cln = ngx_pool_cleanup_add(pool, 0);

    if (live == NULL || cln == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    cln->handler = ngx_http_sluice_live_free_tables;
    cln->data = live;

    live->pool = pool;
    live->last = pool;
    live->size = NGX_HTTP_SLUICE_LIVE_BLOCK;
    live->epoch = epoch;
    ngx_queue_init(&live->holders);

    return live;
}


static void
ngx_http_sluice_live_free_tables(void *data)
{
    ngx_uint_t               i;
    ngx_http_sluice_live_t  *live = data;

    for (i = 0; i < NGX_HTTP_SLUICE_LIVE_TABLES; i++) {
        ngx_free(live->tables[i].entries);
    }
}


/* Of each old one: a request may not have been able to leave it before. */

static void
ngx_http_sluice_live_leave_old(void)
{
    ngx_queue_t                    *l, *h, *next;
    ngx_http_sluice_live_t         *live;
    ngx_http_sluice_live_holder_t  *holder;

    for (l = ngx_queue_head(&ngx_http_sluice_lives_old);
         l != ngx_queue_sentinel(&ngx_http_sluice_lives_old);
         l = next)
    {
        next = ngx_queue_next(l);
        live = ngx_queue_data(l, ngx_http_sluice_live_t, queue);

        h = ngx_queue_head(&live->holders);

        while (h != ngx_queue_sentinel(&live->holders)) {
            holder = ngx_queue_data(h, ngx_http_sluice_live_holder_t, queue);
            h = ngx_queue_next(h);

            if (holder->leave(holder->request)) {
                ngx_http_sluice_live_remove(holder);
            }
        }

        ngx_http_sluice_live_free_unused(live);
    }
}


ngx_int_t
ngx_http_sluice_live_hold(ngx_http_sluice_live_t *live, ngx_http_request_t *r,
    ngx_http_sluice_live_leave_pt leave)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_sluice_live_holder_t  *holder;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sluice_live_holder_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    holder = cln->data;
    holder->live = live;
    holder->request = r;
    holder->leave = leave;

    ngx_queue_insert_head(&live->holders, &holder->queue);
    cln->handler = ngx_http_sluice_live_release;

    return NGX_OK;
}


static void
ngx_http_sluice_live_release(void *data)
{
    ngx_http_sluice_live_t         *live;
    ngx_http_sluice_live_holder_t  *holder = data;

    live = holder->live;

    if (live == NULL) {
        return;
    }

    ngx_http_sluice_live_remove(holder);

    if (live != ngx_http_sluice_live_now) {
        ngx_http_sluice_live_free_unused(live);
    }
}


static void
ngx_http_sluice_live_remove(ngx_http_sluice_live_holder_t *holder)
{
    ngx_queue_remove(&holder->queue);
    holder->live = NULL;
}


/* An old one. */

static void
ngx_http_sluice_live_free_unused(ngx_http_sluice_live_t *live)
{
    if (ngx_queue_empty(&live->holders)) {
        ngx_queue_remove(&live->queue);
        ngx_destroy_pool(live->pool);
    }
}


void *
ngx_http_sluice_live_get(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_e table, uint32_t slot)
{
    if (live->tables[table].entries == NULL) {
        return NULL;
    }

    return ngx_http_sluice_live_find(&live->tables[table], slot)->value;
}


ngx_int_t
ngx_http_sluice_live_put(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_e table, uint32_t slot, void *value)
{
    ngx_http_sluice_live_entry_t  *entry;
    ngx_http_sluice_live_table_t  *t;

    t = &live->tables[table];

    if ((t->entries == NULL || t->used * 4 >= (ngx_uint_t) 3 << t->bits)
        && ngx_http_sluice_live_grow(live, t) != NGX_OK)
    {
        return NGX_ERROR;
    }

    entry = ngx_http_sluice_live_find(t, slot);

    if (entry->value == NULL) {
        t->used++;
    }

    entry->slot = slot;
    entry->value = value;

    ngx_http_sluice_live_count(live);

    if (live->size > NGX_HTTP_SLUICE_LIVE_MAX) {
        live->full = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_live_grow(ngx_http_sluice_live_t *live,
    ngx_http_sluice_live_table_t *table)
{
    ngx_uint_t                     i;
    ngx_http_sluice_live_entry_t  *old;
    ngx_http_sluice_live_table_t   grown;

    grown.bits = table->entries ? table->bits + 1 : NGX_HTTP_SLUICE_LIVE_BITS;
    grown.used = table->used;
    grown.entries = ngx_calloc(sizeof(ngx_http_sluice_live_entry_t)
                               << grown.bits, ngx_cycle->log);
    if (grown.entries == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; table->entries && i < (ngx_uint_t) 1 << table->bits; i++) {
        old = &table->entries[i];

        if (old->value) {
            *ngx_http_sluice_live_find(&grown, old->slot) = *old;
        }
    }

    live->size += sizeof(ngx_http_sluice_live_entry_t) << grown.bits;

    if (table->entries) {
        live->size -= sizeof(ngx_http_sluice_live_entry_t) << table->bits;
        ngx_free(table->entries);
    }

    *table = grown;

    return NGX_OK;
}


/* The slot's, or a free one: a quarter of them is. */

static ngx_http_sluice_live_entry_t *
ngx_http_sluice_live_find(ngx_http_sluice_live_table_t *table, uint32_t slot)
{
    uint32_t                       i, mask;
    ngx_http_sluice_live_entry_t  *entry;

    mask = (1u << table->bits) - 1;

    /* neighbours are spread by the golden ratio (Knuth, 6.4) */

    for (i = slot * 2654435769u >> (32 - table->bits); /* void */ ; i++) {
        entry = &table->entries[i & mask];

        if (entry->value == NULL || entry->slot == slot) {
            return entry;
        }
    }
}


/*
 * A pool does not count what was taken from it.  It adds blocks behind its
 * last one, and large pieces before its first; nothing of a live one is given
 * back.
 */

static void
ngx_http_sluice_live_count(ngx_http_sluice_live_t *live)
{
    ngx_pool_t        *block;
    ngx_pool_large_t  *large;

    for (block = live->last; block->d.next; block = block->d.next) {
        live->size += NGX_HTTP_SLUICE_LIVE_BLOCK;
    }

    live->last = block;

    for (large = live->pool->large; large != live->large; large = large->next)
    {
        live->size += malloc_usable_size(large->alloc);
    }

    live->large = live->pool->large;
}
