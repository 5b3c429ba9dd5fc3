
/*
 * The pools of compiled things (ngx_http_sluice_compiled.h), one an epoch.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_compiled.h"

#include <malloc.h>


#define NGX_HTTP_SLUICE_COMPILED_MAX    (8 * 1024 * 1024)  /* bytes */
#define NGX_HTTP_SLUICE_COMPILED_BLOCK  (16 * 1024)
#define NGX_HTTP_SLUICE_COMPILED_BITS   4                  /* at first */


/* A request, in its pool. */

typedef struct {
    ngx_queue_t                         queue;      /* of its pins */
    ngx_http_sluice_compiled_t         *compiled;   /* NULL: detached */
    ngx_http_request_t                 *request;
    ngx_http_sluice_compiled_detach_pt  detach;
} ngx_http_sluice_compiled_pin_t;


static ngx_http_sluice_compiled_t *ngx_http_sluice_compiled_create(
    uint64_t epoch);
static void ngx_http_sluice_compiled_free_tables(void *data);
static void ngx_http_sluice_compiled_detach_old(void);
static void ngx_http_sluice_compiled_unpin(void *data);
static void ngx_http_sluice_compiled_remove(
    ngx_http_sluice_compiled_pin_t *pin);
static void ngx_http_sluice_compiled_free_unused(
    ngx_http_sluice_compiled_t *compiled);
static ngx_int_t ngx_http_sluice_compiled_grow(
    ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_t *table);
static ngx_http_sluice_compiled_entry_t *ngx_http_sluice_compiled_find(
    ngx_http_sluice_compiled_table_t *table, uint32_t slot);
static void ngx_http_sluice_compiled_count(
    ngx_http_sluice_compiled_t *compiled);


static ngx_http_sluice_compiled_t  *ngx_http_sluice_compiled_now;

/* that requests still pin */

static ngx_queue_t  ngx_http_sluice_compiled_old = {
    &ngx_http_sluice_compiled_old, &ngx_http_sluice_compiled_old
};


ngx_http_sluice_compiled_t *
ngx_http_sluice_compiled(void)
{
    uint64_t                     epoch;
    ngx_http_sluice_compiled_t  *compiled, *old;

    if (sluice_images_view() == NULL) {
        return NULL;
    }

    old = ngx_http_sluice_compiled_now;
    epoch = sluice_images_epoch();

    if (old && old->epoch == epoch && !old->full) {
        return old;
    }

    compiled = ngx_http_sluice_compiled_create(epoch);
    if (compiled == NULL) {
        return NULL;
    }

    /* before the old one goes: balancers that both use are found again */

    ngx_http_sluice_compiled_now = compiled;

    if (old) {
        ngx_queue_insert_tail(&ngx_http_sluice_compiled_old, &old->queue);
    }

    ngx_http_sluice_compiled_detach_old();

    return compiled;
}


static ngx_http_sluice_compiled_t *
ngx_http_sluice_compiled_create(uint64_t epoch)
{
    ngx_pool_t                  *pool;
    ngx_pool_cleanup_t          *cln;
    ngx_http_sluice_compiled_t  *compiled;

    pool = ngx_create_pool(NGX_HTTP_SLUICE_COMPILED_BLOCK, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    compiled = ngx_pcalloc(pool, sizeof(ngx_http_sluice_compiled_t));
    cln = ngx_pool_cleanup_add(pool, 0);

    if (compiled == NULL || cln == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    cln->handler = ngx_http_sluice_compiled_free_tables;
    cln->data = compiled;

    compiled->pool = pool;
    compiled->last = pool;
    compiled->size = NGX_HTTP_SLUICE_COMPILED_BLOCK;
    compiled->epoch = epoch;
    ngx_queue_init(&compiled->pins);

    return compiled;
}


static void
ngx_http_sluice_compiled_free_tables(void *data)
{
    ngx_uint_t                   i;
    ngx_http_sluice_compiled_t  *compiled = data;

    for (i = 0; i < NGX_HTTP_SLUICE_COMPILED_TABLES; i++) {
        ngx_free(compiled->tables[i].entries);
    }
}


/* Of each old one: a request may not have been able to detach before. */

static void
ngx_http_sluice_compiled_detach_old(void)
{
    ngx_queue_t                     *l, *h, *next;
    ngx_http_sluice_compiled_t      *compiled;
    ngx_http_sluice_compiled_pin_t  *pin;

    for (l = ngx_queue_head(&ngx_http_sluice_compiled_old);
         l != ngx_queue_sentinel(&ngx_http_sluice_compiled_old);
         l = next)
    {
        next = ngx_queue_next(l);
        compiled = ngx_queue_data(l, ngx_http_sluice_compiled_t, queue);

        h = ngx_queue_head(&compiled->pins);

        while (h != ngx_queue_sentinel(&compiled->pins)) {
            pin = ngx_queue_data(h, ngx_http_sluice_compiled_pin_t, queue);
            h = ngx_queue_next(h);

            if (pin->detach(pin->request)) {
                ngx_http_sluice_compiled_remove(pin);
            }
        }

        ngx_http_sluice_compiled_free_unused(compiled);
    }
}


ngx_int_t
ngx_http_sluice_compiled_pin(ngx_http_sluice_compiled_t *compiled,
    ngx_http_request_t *r, ngx_http_sluice_compiled_detach_pt detach)
{
    ngx_pool_cleanup_t              *cln;
    ngx_http_sluice_compiled_pin_t  *pin;

    cln = ngx_pool_cleanup_add(r->pool,
                               sizeof(ngx_http_sluice_compiled_pin_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    pin = cln->data;
    pin->compiled = compiled;
    pin->request = r;
    pin->detach = detach;

    ngx_queue_insert_head(&compiled->pins, &pin->queue);
    cln->handler = ngx_http_sluice_compiled_unpin;

    return NGX_OK;
}


static void
ngx_http_sluice_compiled_unpin(void *data)
{
    ngx_http_sluice_compiled_t      *compiled;
    ngx_http_sluice_compiled_pin_t  *pin = data;

    compiled = pin->compiled;

    if (compiled == NULL) {
        return;
    }

    ngx_http_sluice_compiled_remove(pin);

    if (compiled != ngx_http_sluice_compiled_now) {
        ngx_http_sluice_compiled_free_unused(compiled);
    }
}


static void
ngx_http_sluice_compiled_remove(ngx_http_sluice_compiled_pin_t *pin)
{
    ngx_queue_remove(&pin->queue);
    pin->compiled = NULL;
}


/* An old one. */

static void
ngx_http_sluice_compiled_free_unused(ngx_http_sluice_compiled_t *compiled)
{
    if (ngx_queue_empty(&compiled->pins)) {
        ngx_queue_remove(&compiled->queue);
        ngx_destroy_pool(compiled->pool);
    }
}


void *
ngx_http_sluice_compiled_get(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, uint32_t slot)
{
    if (compiled->tables[table].entries == NULL) {
        return NULL;
    }

    return ngx_http_sluice_compiled_find(&compiled->tables[table],
                                         slot)->value;
}


ngx_int_t
ngx_http_sluice_compiled_put(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_e table, uint32_t slot, void *value)
{
    ngx_http_sluice_compiled_entry_t  *entry;
    ngx_http_sluice_compiled_table_t  *t;

    t = &compiled->tables[table];

    if ((t->entries == NULL || t->used * 4 >= (ngx_uint_t) 3 << t->bits)
        && ngx_http_sluice_compiled_grow(compiled, t) != NGX_OK)
    {
        return NGX_ERROR;
    }

    entry = ngx_http_sluice_compiled_find(t, slot);

    if (entry->value == NULL) {
        t->used++;
    }

    entry->slot = slot;
    entry->value = value;

    ngx_http_sluice_compiled_count(compiled);

    if (compiled->size > NGX_HTTP_SLUICE_COMPILED_MAX) {
        compiled->full = 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_compiled_grow(ngx_http_sluice_compiled_t *compiled,
    ngx_http_sluice_compiled_table_t *table)
{
    ngx_uint_t                         i;
    ngx_http_sluice_compiled_entry_t  *old;
    ngx_http_sluice_compiled_table_t   grown;

    grown.bits = table->entries ? table->bits + 1
                                : NGX_HTTP_SLUICE_COMPILED_BITS;
    grown.used = table->used;
    grown.entries = ngx_calloc(sizeof(ngx_http_sluice_compiled_entry_t)
                               << grown.bits, ngx_cycle->log);
    if (grown.entries == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; table->entries && i < (ngx_uint_t) 1 << table->bits; i++) {
        old = &table->entries[i];

        if (old->value) {
            *ngx_http_sluice_compiled_find(&grown, old->slot) = *old;
        }
    }

    compiled->size += sizeof(ngx_http_sluice_compiled_entry_t) << grown.bits;

    if (table->entries) {
        compiled->size -= sizeof(ngx_http_sluice_compiled_entry_t)
                          << table->bits;
        ngx_free(table->entries);
    }

    *table = grown;

    return NGX_OK;
}


/* The slot's, or a free one: a quarter of them is. */

static ngx_http_sluice_compiled_entry_t *
ngx_http_sluice_compiled_find(ngx_http_sluice_compiled_table_t *table,
    uint32_t slot)
{
    uint32_t                           i, mask;
    ngx_http_sluice_compiled_entry_t  *entry;

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
 * last one, and large pieces before its first; nothing of one in use is given
 * back.
 */

static void
ngx_http_sluice_compiled_count(ngx_http_sluice_compiled_t *compiled)
{
    ngx_pool_t        *block;
    ngx_pool_large_t  *large;

    for (block = compiled->last; block->d.next; block = block->d.next) {
        compiled->size += NGX_HTTP_SLUICE_COMPILED_BLOCK;
    }

    compiled->last = block;

    for (large = compiled->pool->large;
         large != compiled->large;
         large = large->next)
    {
        compiled->size += malloc_usable_size(large->alloc);
    }

    compiled->large = compiled->pool->large;
}
