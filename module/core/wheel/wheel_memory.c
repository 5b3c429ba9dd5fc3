
/*
 * Where timers live: pages of a thousand, mapped when needed and given back
 * when empty, save one.  Free timers of a page are a list through their
 * serial's neighbour, so that a page needs no other memory.
 */


#include "wheel_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


#define TIMERS_NONE  UINT32_MAX

#define TIMERS_SERIAL_MASK  ((1u << SLUICE_TIMERS_SERIAL_BITS) - 1)


static int timers_page_map(sluice_timers_t *ts);
static void timers_page_unlink(sluice_timers_t *ts, uint32_t p);
static void timers_page_link(sluice_timers_t *ts, uint32_t p);
static void timers_page_unmap(sluice_timers_t *ts, uint32_t p);


int
sluice_timers_init(sluice_timers_t *ts, uint64_t now_ns)
{
    memset(ts, 0, sizeof(*ts));

    sluice_wheel_init(&ts->wheel, now_ns / 1000000);
    sluice_wheel_queue_init(&ts->current);

    ts->partial = TIMERS_NONE;
    ts->spare = TIMERS_NONE;
    ts->random = now_ns | 1;

    (void) sluice_timers_account(ts);

    return ts->account_count == 1;
}


void
sluice_timers_close(sluice_timers_t *ts)
{
    uint32_t  i;

    for (i = 0; i < SLUICE_TIMERS_PAGES; i++) {
        if (ts->pages[i].timers) {
            timers_page_unmap(ts, i);
        }
    }

    for (i = 0; i < ts->account_count; i++) {
        free(ts->accounts[i]);
    }

    free(ts->accounts);

    ts->accounts = NULL;
    ts->account_count = 0;
}


static int
timers_page_map(sluice_timers_t *ts)
{
    uint32_t               p, i;
    sluice_timers_page_t  *page;

    /* the lowest: the caller has tables by page */

    for (p = 0; p < SLUICE_TIMERS_PAGES && ts->pages[p].timers; p++) {
        /* void */
    }

    if (p == SLUICE_TIMERS_PAGES) {
        return 0;
    }

    page = &ts->pages[p];
    page->timers = mmap(NULL, SLUICE_TIMERS_PAGE * sizeof(sluice_timer_t),
                        PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1,
                        0);

    if (page->timers == MAP_FAILED) {
        page->timers = NULL;
        return 0;
    }

    for (i = 0; i < SLUICE_TIMERS_PAGE; i++) {
        page->timers[i].index = i + 2;
    }

    page->timers[SLUICE_TIMERS_PAGE - 1].index = 0;
    page->free = 1;
    page->used = 0;

    timers_page_link(ts, p);

    return 1;
}


static void
timers_page_unmap(sluice_timers_t *ts, uint32_t p)
{
    (void) munmap(ts->pages[p].timers,
                  SLUICE_TIMERS_PAGE * sizeof(sluice_timer_t));

    ts->pages[p].timers = NULL;
}


static void
timers_page_link(sluice_timers_t *ts, uint32_t p)
{
    ts->pages[p].prev = TIMERS_NONE;
    ts->pages[p].next = ts->partial;

    if (ts->partial != TIMERS_NONE) {
        ts->pages[ts->partial].prev = p;
    }

    ts->partial = p;
}


static void
timers_page_unlink(sluice_timers_t *ts, uint32_t p)
{
    sluice_timers_page_t  *page;

    page = &ts->pages[p];

    if (page->prev != TIMERS_NONE) {
        ts->pages[page->prev].next = page->next;

    } else {
        ts->partial = page->next;
    }

    if (page->next != TIMERS_NONE) {
        ts->pages[page->next].prev = page->prev;
    }
}


sluice_timer_t *
sluice_timers_alloc(sluice_timers_t *ts)
{
    uint32_t               p, i;
    sluice_timer_t        *t;
    sluice_timers_page_t  *page;

    if (ts->partial == TIMERS_NONE && !timers_page_map(ts)) {
        return NULL;
    }

    p = ts->partial;
    page = &ts->pages[p];

    if (ts->spare == p) {
        ts->spare = TIMERS_NONE;
    }

    i = page->free - 1;
    t = &page->timers[i];

    page->free = t->index;
    page->used++;

    if (page->free == 0) {
        timers_page_unlink(ts, p);
    }

    ts->serial = ts->serial == TIMERS_SERIAL_MASK ? 1 : ts->serial + 1;
    ts->count++;

    memset(t, 0, sizeof(*t));

    t->index = p << SLUICE_TIMERS_PAGE_BITS | i;
    t->serial = ts->serial;

    return t;
}


void
sluice_timers_free(sluice_timers_t *ts, sluice_timer_t *t)
{
    uint32_t               p, i;
    sluice_timers_page_t  *page;

    ts->release(ts->data, t, 0);

    ts->accounts[t->place]->live--;

    if (t->account) {
        sluice_timers_account_free(ts, t->account);
    }

    p = t->index >> SLUICE_TIMERS_PAGE_BITS;
    i = t->index & (SLUICE_TIMERS_PAGE - 1);
    page = &ts->pages[p];

    ts->count--;

    if (page->free == 0) {
        timers_page_link(ts, p);
    }

    t->serial = 0;
    t->index = page->free;
    page->free = i + 1;
    page->used--;

    if (page->used) {
        return;
    }

    /* one empty page is kept, or a page's last timer might map it each time */

    if (ts->spare == TIMERS_NONE) {
        ts->spare = p;
        return;
    }

    timers_page_unlink(ts, p);
    timers_page_unmap(ts, p);
    ts->drop(ts->data, p);
}


double
sluice_timers_handle(const sluice_timer_t *t)
{
    return (double) ((uint64_t) t->serial << SLUICE_TIMERS_INDEX_BITS
                     | t->index);
}


sluice_timer_t *
sluice_timers_find(sluice_timers_t *ts, double handle)
{
    sluice_timer_t  *t;

    t = sluice_timers_at(ts, handle);

    return t && !(t->flags & SLUICE_TIMER_GONE) ? t : NULL;
}


sluice_timer_t *
sluice_timers_at(sluice_timers_t *ts, double handle)
{
    uint32_t         index, serial;
    uint64_t         h;
    sluice_timer_t  *t;

    if (!(handle >= 0 && handle < 9007199254740992.0)) {
        return NULL;
    }

    h = (uint64_t) handle;

    if ((double) h != handle) {
        return NULL;
    }

    index = (uint32_t) h & (SLUICE_TIMERS_MAX - 1);
    serial = (uint32_t) (h >> SLUICE_TIMERS_INDEX_BITS);

    t = ts->pages[index >> SLUICE_TIMERS_PAGE_BITS].timers;

    if (t == NULL || serial == 0) {
        return NULL;
    }

    t += index & (SLUICE_TIMERS_PAGE - 1);

    return t->serial == serial ? t : NULL;
}


sluice_timer_t *
sluice_timers_from(sluice_timers_t *ts, uint32_t index)
{
    sluice_timer_t  *t;

    while (index < SLUICE_TIMERS_MAX) {
        t = ts->pages[index >> SLUICE_TIMERS_PAGE_BITS].timers;

        if (t == NULL) {
            index = ((index >> SLUICE_TIMERS_PAGE_BITS) + 1)
                    << SLUICE_TIMERS_PAGE_BITS;
            continue;
        }

        t += index & (SLUICE_TIMERS_PAGE - 1);

        if (t->serial) {
            return t;
        }

        index++;
    }

    return NULL;
}
