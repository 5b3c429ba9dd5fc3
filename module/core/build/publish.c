
/*
 * What is live: one sequence number, stored when all before it is there.
 */


#include "layout.h"
#include "delta.h"


#define CORE_RECORDS  16
#define CORE_TRIES    100


typedef struct {
    _Atomic uint64_t  base;
    _Atomic uint64_t  delta;
    _Atomic uint64_t  revision;
    uint64_t          zero;
} core_record_t;


struct sluice_core_page_s {
    _Alignas(SLUICE_CORE_LINE)
    _Atomic uint64_t  sequence;
    _Alignas(SLUICE_CORE_LINE)
    core_record_t     records[CORE_RECORDS];
};


_Static_assert(sizeof(sluice_core_page_t) == 64 + 16 * 32, "page");


size_t
sluice_core_page_size(void)
{
    return sizeof(sluice_core_page_t);
}


void
sluice_core_publish(sluice_core_page_t *page,
    const sluice_core_published_t *published)
{
    uint64_t        next;
    core_record_t  *record;

    next = atomic_load_explicit(&page->sequence, memory_order_relaxed) + 1;
    record = &page->records[next % CORE_RECORDS];

    /* release: a reader that sees one of these sees the number before it */

    atomic_store_explicit(&record->base, published->base,
                          memory_order_release);
    atomic_store_explicit(&record->delta, published->delta,
                          memory_order_release);
    atomic_store_explicit(&record->revision, published->revision,
                          memory_order_release);

    atomic_store_explicit(&page->sequence, next, memory_order_release);
}


uint64_t
sluice_core_sequence(const sluice_core_page_t *page)
{
    return atomic_load_explicit(&page->sequence, memory_order_acquire);
}


int
sluice_core_published(const sluice_core_page_t *page,
    sluice_core_published_t *published)
{
    unsigned              i;
    uint64_t              number, again;
    const core_record_t  *record;

    for (i = 0; i < CORE_TRIES; i++) {
        number = atomic_load_explicit(&page->sequence, memory_order_acquire);

        if (number == 0) {
            return SLUICE_CORE_NONE;
        }

        record = &page->records[number % CORE_RECORDS];

        published->base = atomic_load_explicit(&record->base,
                                               memory_order_acquire);
        published->delta = atomic_load_explicit(&record->delta,
                                                memory_order_acquire);
        published->revision = atomic_load_explicit(&record->revision,
                                                   memory_order_acquire);

        again = atomic_load_explicit(&page->sequence, memory_order_relaxed);

        /* the record is written again for number + 16, behind number + 15 */

        if (again - number < CORE_RECORDS - 1) {
            return SLUICE_CORE_OK;
        }
    }

    return SLUICE_CORE_STALE;
}
