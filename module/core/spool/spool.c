
/*
 * The spool's memory and its writers (spool.h).
 */


#include "ring_mutex.h"
#include "spool_area.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


#define SLUICE_SPOOL_PATIENCE  10000       /* us, */
#define SLUICE_SPOOL_STUCK     50          /*   where that was in vain */


static int sluice_spool_append(const sluice_spool_t *spool,
    const sluice_spool_entry_t *entry, uint64_t length);
static uint64_t sluice_spool_put(const sluice_spool_t *spool,
    uint64_t position, const void *from, uint64_t length);


int
sluice_spool_init(void *base, size_t size)
{
    sluice_spool_area_t  *area = base;

    area->layout = SLUICE_SPOOL_LAYOUT;
    area->mutex_size = sizeof(pthread_mutex_t);
    area->size = size - SLUICE_SPOOL_DATA;

    if (sluice_ring_mutex_init(&area->writers) != SLUICE_OK
        || sluice_ring_mutex_init(&area->reader) != SLUICE_OK)
    {
        return SLUICE_SYSTEM;
    }

    area->magic = SLUICE_SPOOL_MAGIC;

    return SLUICE_OK;
}


int
sluice_spool_attach(sluice_spool_t *spool, void *base, size_t size)
{
    sluice_spool_area_t  *area = base;

    if (size < SLUICE_SPOOL_MIN || size > SLUICE_SPOOL_MAX
        || area->magic != SLUICE_SPOOL_MAGIC
        || area->layout != SLUICE_SPOOL_LAYOUT
        || area->mutex_size != sizeof(pthread_mutex_t)
        || area->size != size - SLUICE_SPOOL_DATA)
    {
        return SLUICE_VERSION;
    }

    spool->area = area;
    spool->data = (uint8_t *) base + SLUICE_SPOOL_DATA;
    spool->size = size - SLUICE_SPOOL_DATA;
    spool->is_stuck = 0;

    return SLUICE_OK;
}


int
sluice_spool_write(sluice_spool_t *spool,
    const sluice_spool_entry_t *entry)
{
    int                   rc;
    uint64_t              length;
    sluice_spool_area_t  *area;

    area = spool->area;

    length = sizeof(sluice_spool_head_t)
             + (uint64_t) entry->length[SLUICE_SPOOL_PLUGIN]
             + entry->length[SLUICE_SPOOL_TARGET]
             + entry->length[SLUICE_SPOOL_TEXT];
    length = (length + SLUICE_SPOOL_ALIGN - 1)
             & ~(uint64_t) (SLUICE_SPOOL_ALIGN - 1);

    if (length > spool->size / SLUICE_SPOOL_SHARE) {
        atomic_fetch_add_explicit(&area->large, 1, memory_order_relaxed);
        return SLUICE_LARGE;
    }

    rc = sluice_ring_mutex_try(&area->writers, spool->is_stuck
                                               ? SLUICE_SPOOL_STUCK
                                               : SLUICE_SPOOL_PATIENCE);

    if (rc == EOWNERDEAD) {
        /* it has left nothing: what is behind the tail does not exist */
        rc = pthread_mutex_consistent(&area->writers);
    }

    spool->is_stuck = rc != 0;

    if (rc != 0) {
        atomic_fetch_add_explicit(&area->busy, 1, memory_order_relaxed);
        return SLUICE_BUSY;
    }

    rc = sluice_spool_append(spool, entry, length);

    (void) pthread_mutex_unlock(&area->writers);

    if (rc != SLUICE_OK) {
        atomic_fetch_add_explicit(&area->full, 1, memory_order_relaxed);
        return rc;
    }

    if (entry->length[SLUICE_SPOOL_TEXT]) {
        atomic_fetch_add_explicit(&area->written, 1, memory_order_relaxed);
    }

    if (atomic_load(&area->asleep)) {
        sluice_spool_wake(spool);
    }

    return SLUICE_OK;
}


static int
sluice_spool_append(const sluice_spool_t *spool,
    const sluice_spool_entry_t *entry, uint64_t length)
{
    int                   i;
    uint64_t              tail, used, at;
    sluice_spool_head_t   head;
    sluice_spool_area_t  *area;

    area = spool->area;

    tail = atomic_load_explicit(&area->tail, memory_order_relaxed);
    used = tail - atomic_load_explicit(&area->head, memory_order_acquire);

    if (used > spool->size || spool->size - used < length) {
        return SLUICE_FULL;
    }

    memset(&head, 0, sizeof(head));
    head.length = (uint32_t) length;
    head.check = sluice_spool_check(tail);
    memcpy(head.texts, entry->length, sizeof(head.texts));

    at = sluice_spool_put(spool, tail, &head, sizeof(head));

    for (i = 0; i < SLUICE_SPOOL_TEXTS; i++) {
        at = sluice_spool_put(spool, at, entry->data[i], entry->length[i]);
    }

    atomic_store(&area->tail, tail + length);

    return SLUICE_OK;
}


static uint64_t
sluice_spool_put(const sluice_spool_t *spool, uint64_t position,
    const void *from, uint64_t length)
{
    uint64_t  at, first;

    at = position % spool->size;
    first = spool->size - at;

    if (length <= first) {
        /* of no bytes from may be NULL */
        if (length) {
            memcpy(spool->data + at, from, length);
        }

    } else {
        memcpy(spool->data + at, from, first);
        memcpy(spool->data, (const uint8_t *) from + first, length - first);
    }

    return position + length;
}


void
sluice_spool_wake(const sluice_spool_t *spool)
{
    sluice_spool_area_t  *area;

    area = spool->area;

    atomic_store(&area->asleep, 0);

    (void) syscall(SYS_futex, &area->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}


void
sluice_spool_stats(const sluice_spool_t *spool, sluice_spool_stats_t *stats)
{
    uint64_t              used;
    sluice_spool_area_t  *area;

    area = spool->area;

    stats->written = atomic_load(&area->written);
    stats->full = atomic_load(&area->full);
    stats->busy = atomic_load(&area->busy);
    stats->large = atomic_load(&area->large);
    stats->damaged = atomic_load(&area->damaged);
    stats->lost = atomic_load(&area->lost);

    /* the head first: it is never beyond a tail that is read later */

    used = atomic_load(&area->head);
    used = atomic_load(&area->tail) - used;

    stats->used = used > spool->size ? spool->size : used;
    stats->size = spool->size;
}
