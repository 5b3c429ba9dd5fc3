
/*
 * The spool's reader (spool.h).
 */


#include "ring_mutex.h"
#include "spool_area.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


static int sluice_spool_is_whole(const sluice_spool_head_t *head,
    uint64_t position, uint64_t used);
static void sluice_spool_get(const sluice_spool_t *spool, uint64_t position,
    void *to, uint64_t length);


int
sluice_spool_enter(const sluice_spool_t *spool)
{
    int                   rc;
    sluice_spool_area_t  *area;

    area = spool->area;

    rc = sluice_ring_mutex_try(&area->reader, 0);

    if (rc == EOWNERDEAD) {
        rc = pthread_mutex_consistent(&area->reader);
    }

    if (rc != 0) {
        atomic_store(&area->wanted, 1);
        return SLUICE_BUSY;
    }

    atomic_store(&area->wanted, 0);

    return SLUICE_OK;
}


void
sluice_spool_leave(const sluice_spool_t *spool)
{
    (void) pthread_mutex_unlock(&spool->area->reader);
}


int
sluice_spool_is_wanted(const sluice_spool_t *spool)
{
    return atomic_load(&spool->area->wanted) != 0;
}


int
sluice_spool_next(const sluice_spool_t *spool, sluice_spool_found_t *found)
{
    uint64_t              tail, position;
    sluice_spool_area_t  *area;
    sluice_spool_head_t   head;

    area = spool->area;

    position = atomic_load_explicit(&area->head, memory_order_relaxed);
    tail = atomic_load_explicit(&area->tail, memory_order_acquire);

    if (position == tail) {
        return SLUICE_NONE;
    }

    if (tail - position >= sizeof(head) && tail - position <= spool->size) {
        sluice_spool_get(spool, position, &head, sizeof(head));

        if (sluice_spool_is_whole(&head, position, tail - position)) {
            found->position = position + sizeof(head);
            found->end = position + head.length;
            memcpy(found->length, head.texts, sizeof(head.texts));

            return SLUICE_OK;
        }
    }

    /* where the next one begins nobody knows */

    atomic_fetch_add(&area->damaged, 1);
    atomic_store_explicit(&area->head, tail, memory_order_release);

    return SLUICE_NONE;
}


static int
sluice_spool_is_whole(const sluice_spool_head_t *head, uint64_t position,
    uint64_t used)
{
    uint64_t  length;

    length = sizeof(sluice_spool_head_t)
             + (uint64_t) head->texts[SLUICE_SPOOL_PLUGIN]
             + head->texts[SLUICE_SPOOL_TARGET]
             + head->texts[SLUICE_SPOOL_TEXT];

    return head->check == sluice_spool_check(position)
           && head->length <= used
           && head->length >= length
           && head->length - length < SLUICE_SPOOL_ALIGN;
}


void
sluice_spool_copy(const sluice_spool_t *spool,
    const sluice_spool_found_t *found, uint64_t from, uint64_t length,
    void *to)
{
    sluice_spool_get(spool, found->position + from, to, length);
}


static void
sluice_spool_get(const sluice_spool_t *spool, uint64_t position, void *to,
    uint64_t length)
{
    uint64_t  at, first;

    at = position % spool->size;
    first = spool->size - at;

    if (length <= first) {
        memcpy(to, spool->data + at, length);
        return;
    }

    memcpy(to, spool->data + at, first);
    memcpy((uint8_t *) to + first, spool->data, length - first);
}


void
sluice_spool_advance(const sluice_spool_t *spool,
    const sluice_spool_found_t *found)
{
    atomic_store_explicit(&spool->area->head, found->end,
                          memory_order_release);
}


void
sluice_spool_sleep(const sluice_spool_t *spool)
{
    sluice_spool_area_t  *area;

    area = spool->area;

    atomic_store(&area->asleep, 1);

    if (atomic_load(&area->head) == atomic_load(&area->tail)) {
        (void) syscall(SYS_futex, &area->asleep, FUTEX_WAIT, 1, NULL, NULL, 0);
    }

    atomic_store(&area->asleep, 0);
}


void
sluice_spool_lose(const sluice_spool_t *spool, uint64_t count)
{
    atomic_fetch_add(&spool->area->lost, count);
}
