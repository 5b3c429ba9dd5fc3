
/*
 * Threads that publish and read at once, for TSan (which sees one process
 * only) and, built without it, for speed: more chances for a wake to get lost.
 *
 *     flood     every thread publishes as fast as it can into a small log, and
 *               all of them see one order, and one of them each unique event
 *     hunt      one thread sleeps after each event that it has answered, the
 *               other publishes the next right when it is about to: a wake
 *               that gets lost is seen, since nothing else would wake it
 */


#include "support.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>


#define THREADS_MAX    8
#define THREADS_BATCH  16


typedef struct {
    pthread_t       thread;
    int             index;
    uint64_t        state;
    uint64_t        published;
    uint64_t        read;
    uint64_t        unique;
    uint64_t        next[THREADS_MAX];       /* number expected from each */
    sluice_ring_t   ring;
} worker_t;


static int               fds[TEST_SLOTS];
static int               count;
static uint64_t          events;
static worker_t          workers[THREADS_MAX];
static sluice_ring_t     master;
static _Atomic int       ready;
static _Atomic uint64_t  claims;
static _Atomic uint64_t *order;


static int
wait_for(worker_t *w, int timeout_ms)
{
    int            rc;
    uint64_t       n;
    struct pollfd  p;

    p.fd = fds[w->ring.index];
    p.events = POLLIN;

    rc = poll(&p, 1, timeout_ms);
    (void) !read(p.fd, &n, sizeof(n));

    return rc;
}


/* Published after the wait was over, and the wakeup is still to come? */

static void
check_awake(worker_t *w)
{
    test_check(w->ring.control->tail == w->ring.read
               || wait_for(w, TEST_FOR_EVER_MS) > 0,
               "asleep with events to read");
}


static int
publish(worker_t *w, int kind)
{
    int                    rc;
    uint8_t                payload[400];
    uint32_t               length;
    sluice_ring_message_t  m;

    length = TEST_HEAD + (uint32_t) test_below(&w->state, 300);
    test_fill(payload, length, (uint64_t) w->index, w->published + 1);

    memset(&m, 0, sizeof(m));
    m.source = "threads";
    m.source_length = 7;
    m.payload[0] = payload;
    m.length[0] = length;
    m.kind = (uint8_t) kind;

    rc = sluice_ring_publish(&w->ring, &m);

    if (rc == SLUICE_OK) {
        w->published++;
        w->unique += (kind == SLUICE_RING_UNIQUE);
    }

    return rc;
}


/* One order for all: whoever comes first writes down what was where. */

static void
check_frame(worker_t *w, const sluice_ring_frame_t *f)
{
    uint64_t     first, here;
    test_head_t  head;

    test_check(test_whole(f->payload, f->length, &head), "torn");
    test_check(head.number == w->next[head.who] + 1, "%lu after %lu of %lu",
               head.number, w->next[head.who], head.who);

    w->next[head.who]++;
    w->read++;

    first = 0;
    here = head.who << 48 | head.number;

    if (!atomic_compare_exchange_strong(&order[f->seq], &first, here)) {
        test_check(first == here, "two orders at %lu", f->seq);
    }

    if (f->kind == SLUICE_RING_UNIQUE
        && sluice_ring_claim(&w->ring, f) == SLUICE_OK)
    {
        atomic_fetch_add(&claims, 1);
        sluice_ring_done(&w->ring, f);
    }
}


static int
read_all(worker_t *w)
{
    int                   i, n;
    sluice_ring_frame_t   frames[THREADS_BATCH];

    n = sluice_ring_next_batch(&w->ring, frames, THREADS_BATCH);
    test_check(n >= 0, "read: %s", sluice_ring_word(n));

    for (i = 0; i < n; i++) {
        check_frame(w, &frames[i]);
    }

    test_check(sluice_ring_advance(&w->ring, NULL) == SLUICE_OK, "advance");

    return n;
}


static void
start(worker_t *w)
{
    uint64_t  missed;

    w->ring = master;
    test_check(sluice_ring_attach(&w->ring, 0, (uint16_t) w->index, &missed)
               == SLUICE_OK, "attach");

    atomic_fetch_add(&ready, 1);

    while (ready < count) {
        usleep(100);
    }
}


static void *
flood(void *data)
{
    int        rc;
    worker_t  *w;

    w = data;
    start(w);

    while (w->published < events || w->read < events * (uint64_t) count) {

        rc = SLUICE_OK;

        if (w->published < events) {
            rc = publish(w, test_below(&w->state, 2) ? SLUICE_RING_ALL
                                                     : SLUICE_RING_UNIQUE);
            test_check(rc == SLUICE_OK || rc == SLUICE_FULL
                       || rc == SLUICE_BUSY || rc == SLUICE_CROWDED,
                       "publish: %s", sluice_ring_word(rc));
        }

        if (rc == SLUICE_OK && test_below(&w->state, 4)) {
            continue;
        }

        if (read_all(w) == 0 && sluice_ring_sleep(&w->ring) == SLUICE_NONE) {

            /* with something to publish it comes back by itself */

            if (wait_for(w, w->published < events ? 1 : 3000) == 0
                && w->published == events)
            {
                check_awake(w);
            }
        }
    }

    sluice_ring_detach(&w->ring);

    return NULL;
}


static void *
hunt(void *data)
{
    int        i, rc, spin;
    worker_t  *w;

    w = data;
    start(w);

    while (w->read < events) {

        /* event number n is published by the thread n % 2, the hunter first */

        if (w->read % 2 == (uint64_t) w->index
            && w->published == w->read / 2)
        {
            spin = w->index ? 0 : (int) test_below(&w->state, 200);

            for (i = 0; i < spin; i++) {
                atomic_signal_fence(memory_order_seq_cst);
            }

            /* busy: the other was put aside with the lock; again, then */

            rc = publish(w, SLUICE_RING_ALL);
            test_check(rc == SLUICE_OK || rc == SLUICE_BUSY, "publish: %s",
                       sluice_ring_word(rc));
        }

        if (read_all(w) == 0 && w->index == 1
            && sluice_ring_sleep(&w->ring) == SLUICE_NONE
            && wait_for(w, 1000) == 0)
        {
            check_awake(w);
        }
    }

    sluice_ring_detach(&w->ring);

    return NULL;
}


static void
run(const char *name, void *(*body)(void *), int threads, uint64_t n,
    uint64_t *state)
{
    int       i;
    double    begun;
    uint64_t  total, unique, unseen;

    count = threads;
    events = n;
    ready = 0;
    claims = 0;
    begun = test_now();
    order = calloc(n * (uint64_t) threads + 1, sizeof(*order));

    test_check(sluice_ring_create(&master, 64 << 10, TEST_SLOTS,
                                  TEST_FOR_EVER_MS)
               == SLUICE_OK, "create");
    sluice_ring_set_wake(&master, sluice_ring_wake_fds, fds);

    memset(workers, 0, sizeof(workers));

    for (i = 0; i < threads; i++) {
        workers[i].index = i;
        workers[i].state = test_random(state);
        test_check(pthread_create(&workers[i].thread, NULL, body, &workers[i])
                   == 0, "thread");
    }

    for (i = 0, total = 0, unique = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        total += workers[i].published;
        unique += workers[i].unique;
    }

    printf("threads: %-9s %d threads, %lu events, %lu claims, %.1f s\n", name,
           threads, total, (uint64_t) claims, test_now() - begun);
    fflush(stdout);

    for (i = 1, unseen = 0; (uint64_t) i <= total; i++) {
        unseen += (order[i] == 0);
    }

    test_check(unseen == 0, "%lu events never seen", unseen);
    test_check(unique == claims, "%lu unique events, %lu claims", unique,
               (uint64_t) claims);

    close(master.fd);
    sluice_ring_close(&master);
    free((void *) order);
}


int
main(void)
{
    int       i;
    uint64_t  state, n;

    state = test_seed("threads");
    n = test_env("EVENTS", 20000);

    for (i = 0; i < TEST_SLOTS; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK);
    }

    run("flood", flood, 2, n, &state);
    run("flood", flood, 5, n / 4, &state);
    run("hunt", hunt, 2, n * 4, &state);

    return 0;
}
