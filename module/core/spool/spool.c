
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


#define SLUICE_SPOOL_PATIENCE  1000        /* us, */
#define SLUICE_SPOOL_STUCK     50          /*   where that was in vain */


static int sluice_spool_lock(sluice_spool_t *spool, uint32_t patience_us);
static void sluice_spool_unlock(sluice_spool_t *spool);
static int sluice_spool_keep(sluice_spool_t *spool,
    const sluice_spool_entry_t *entry, uint64_t length);
static void sluice_spool_put_held(sluice_spool_t *spool);
static uint64_t sluice_spool_length(const sluice_spool_entry_t *entry);
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
    sluice_spool_hold(spool, NULL, 0);

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

    length = sluice_spool_length(entry);

    if (length > spool->size / SLUICE_SPOOL_SHARE) {
        atomic_fetch_add_explicit(&area->large, 1, memory_order_relaxed);
        return SLUICE_LARGE;
    }

    spool->is_stuck = sluice_spool_lock(spool, spool->is_stuck
                                               ? SLUICE_SPOOL_STUCK
                                               : SLUICE_SPOOL_PATIENCE)
                      != SLUICE_OK;

    if (spool->is_stuck) {
        return sluice_spool_keep(spool, entry, length);
    }

    sluice_spool_put_held(spool);
    rc = sluice_spool_append(spool, entry, length);

    sluice_spool_unlock(spool);

    return rc;
}


void
sluice_spool_hold(sluice_spool_t *spool, void *memory, uint32_t size)
{
    spool->held = memory;
    spool->held_size = memory ? size : 0;
    spool->held_used = 0;
    spool->held_count = 0;
}


int
sluice_spool_flush(sluice_spool_t *spool, uint32_t patience_us)
{
    if (spool->held_used == 0) {
        return SLUICE_OK;
    }

    if (sluice_spool_lock(spool, patience_us) != SLUICE_OK) {
        return SLUICE_BUSY;
    }

    spool->is_stuck = 0;

    sluice_spool_put_held(spool);
    sluice_spool_unlock(spool);

    return SLUICE_OK;
}


void
sluice_spool_give_up(sluice_spool_t *spool)
{
    atomic_fetch_add_explicit(&spool->area->busy, spool->held_count,
                              memory_order_relaxed);

    spool->held_used = 0;
    spool->held_count = 0;
}


static int
sluice_spool_lock(sluice_spool_t *spool, uint32_t patience_us)
{
    int                   rc;
    sluice_spool_area_t  *area;

    area = spool->area;

    rc = sluice_ring_mutex_try(&area->writers, patience_us);

    if (rc == EOWNERDEAD) {
        /* it has left nothing: what is behind the tail does not exist */
        rc = pthread_mutex_consistent(&area->writers);
    }

    return rc == 0 ? SLUICE_OK : SLUICE_BUSY;
}


static void
sluice_spool_unlock(sluice_spool_t *spool)
{
    (void) pthread_mutex_unlock(&spool->area->writers);

    if (atomic_load(&spool->area->asleep)) {
        sluice_spool_wake(spool);
    }
}


/* Until there is the lock: its lengths, then its texts. */

static int
sluice_spool_keep(sluice_spool_t *spool, const sluice_spool_entry_t *entry,
    uint64_t length)
{
    int       i;
    uint8_t  *p;

    if (spool->held_size - spool->held_used < length) {
        atomic_fetch_add_explicit(&spool->area->busy, 1, memory_order_relaxed);
        return SLUICE_BUSY;
    }

    p = spool->held + spool->held_used;
    spool->held_used += (uint32_t) length;
    spool->held_count++;

    memcpy(p, entry->length, sizeof(entry->length));
    p += sizeof(entry->length);

    for (i = 0; i < SLUICE_SPOOL_TEXTS; i++) {
        /* of no bytes data may be NULL */
        if (entry->length[i]) {
            memcpy(p, entry->data[i], entry->length[i]);
            p += entry->length[i];
        }
    }

    return SLUICE_OK;
}


static void
sluice_spool_put_held(sluice_spool_t *spool)
{
    int                    i;
    uint8_t               *p, *end, *text;
    uint64_t               length;
    sluice_spool_entry_t   entry;

    p = spool->held;
    end = p + spool->held_used;

    while (p < end) {
        memcpy(entry.length, p, sizeof(entry.length));
        text = p + sizeof(entry.length);

        for (i = 0; i < SLUICE_SPOOL_TEXTS; i++) {
            entry.data[i] = text;
            text += entry.length[i];
        }

        length = sluice_spool_length(&entry);
        (void) sluice_spool_append(spool, &entry, length);
        p += length;
    }

    spool->held_used = 0;
    spool->held_count = 0;
}


static uint64_t
sluice_spool_length(const sluice_spool_entry_t *entry)
{
    uint64_t  length;

    length = sizeof(sluice_spool_head_t)
             + (uint64_t) entry->length[SLUICE_SPOOL_PLUGIN]
             + entry->length[SLUICE_SPOOL_TARGET]
             + entry->length[SLUICE_SPOOL_TEXT];

    return (length + SLUICE_SPOOL_ALIGN - 1)
           & ~(uint64_t) (SLUICE_SPOOL_ALIGN - 1);
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
        atomic_fetch_add_explicit(&area->full, 1, memory_order_relaxed);
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

    if (entry->length[SLUICE_SPOOL_TEXT]) {
        atomic_fetch_add_explicit(&area->written, 1, memory_order_relaxed);
    }

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
