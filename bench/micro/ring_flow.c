
/*
 * The floor in C: what the log costs without nginx and Lua around it.
 *
 *     bench          one table: events/s for sizes and readers, ns per call
 *
 * Each reader is a process that touches every payload's bytes once (a copy
 * into its own buffer) and waits on its eventfd when there is nothing.
 */


#include "support.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


#define BENCH_BATCH  64


static int       bench_fds[SLUICE_RING_SLOTS];
static uint8_t   bench_payload[SLUICE_RING_FRAME_MAX];
static uint8_t   bench_copy[SLUICE_RING_FRAME_MAX];

static sluice_ring_frame_t  bench_frames[BENCH_BATCH];


static void bench_message(sluice_ring_message_t *m, uint32_t size);
static void bench_calls(uint32_t size, int copy);
static void bench_flow(uint32_t size, int readers);
static void bench_reader(sluice_ring_t *ring, _Atomic int *ready,
    uint64_t events);
static void bench_wait(sluice_ring_t *ring, int fd);


int
main(void)
{
    unsigned  i, k;

    static const uint32_t  sizes[] = { 64, 1024, 16384 };
    static const int       readers[] = { 1, 2, 4, 8 };

    for (i = 0; i < SLUICE_RING_SLOTS; i++) {
        bench_fds[i] = eventfd(0, EFD_NONBLOCK);
    }

    printf("%8s %14s %14s\n", "payload", "ns/publish", "ns/read");

    for (i = 0; i < 3; i++) {
        bench_calls(sizes[i], 0);
    }

    printf("\n%8s %8s %12s %14s %14s\n", "payload", "readers", "events/s",
           "wakes/event", "fulls/event");

    for (i = 0; i < 3; i++) {
        for (k = 0; k < 4; k++) {
            bench_flow(sizes[i], readers[k]);
        }
    }

    return 0;
}


static void
bench_message(sluice_ring_message_t *m, uint32_t size)
{
    memset(m, 0, sizeof(*m));

    m->source = "benchmark";
    m->source_length = 9;
    m->event = "event";
    m->event_length = 5;
    m->payload[0] = bench_payload;
    m->length[0] = size;
}


/* One process with one awake reader: itself.  Best of some rounds. */

static void
bench_calls(uint32_t size, int copy)
{
    int                    i, n, r;
    double                 a, b, c, publish, read;
    uint64_t               missed;
    sluice_ring_t          ring;
    sluice_ring_message_t  m;

    test_check(sluice_ring_create(&ring, 16 << 20, 256, 10000) == SLUICE_OK,
               "create");
    sluice_ring_set_wake(&ring, sluice_ring_wake_fds, bench_fds);
    test_check(sluice_ring_attach(&ring, 0, 0, &missed) == SLUICE_OK,
               "attach");

    bench_message(&m, size);
    publish = read = 1;

    for (r = 0; r < 20000; r++) {
        a = test_now();

        for (i = 0; i < BENCH_BATCH; i++) {
            test_check(sluice_ring_publish(&ring, &m) == SLUICE_OK, "publish");
        }

        b = test_now();

        n = sluice_ring_next_batch(&ring, bench_frames, BENCH_BATCH);

        for (i = 0; copy && i < n; i++) {
            memcpy(bench_copy, bench_frames[i].payload,
                   bench_frames[i].length);
        }

        sluice_ring_advance(&ring, NULL);

        c = test_now();

        test_check(n == BENCH_BATCH, "%d read", n);

        if (b - a < publish) {
            publish = b - a;
        }

        if (c - b < read) {
            read = c - b;
        }
    }

    printf("%8u %14.0f %14.1f\n", size, publish * 1e9 / BENCH_BATCH,
           read * 1e9 / BENCH_BATCH);

    sluice_ring_detach(&ring);
    sluice_ring_close(&ring);
}


static void
bench_flow(uint32_t size, int readers)
{
    /* Long on purpose: one experiment, from the first fork to the figures. */

    int                    i, status;
    double                 start, used;
    uint64_t               k, events, missed, fulls;
    _Atomic int           *ready;
    sluice_ring_t          ring;
    sluice_ring_message_t  m;

    events = test_env("EVENTS", 0);

    if (events == 0) {
        events = (size == 64 ? 4000000 : size == 1024 ? 1000000 : 100000)
                 / (uint64_t) readers;
    }

    ready = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                 -1, 0);

    test_check(sluice_ring_create(&ring, 16 << 20, 256, 10000) == SLUICE_OK,
               "create");
    sluice_ring_set_wake(&ring, sluice_ring_wake_fds, bench_fds);

    for (i = 0; i < readers; i++) {
        if (test_fork() == 0) {
            bench_reader(&ring, ready, events);
            _exit(0);
        }
    }

    while (atomic_load(ready) < readers) {
        usleep(1000);
    }

    /* the publisher has a slot, to be woken, but reads nothing: no gate */

    test_check(sluice_ring_attach(&ring, 0, 99, &missed) == SLUICE_OK,
               "attach");

    bench_message(&m, size);
    fulls = 0;
    start = test_now();

    for (k = 0; k < events; ) {

        switch (sluice_ring_publish(&ring, &m)) {

        case SLUICE_OK:
            k++;
            break;

        case SLUICE_FULL:
            fulls++;

            /* its own cursor, too */
            while (sluice_ring_next_batch(&ring, bench_frames, BENCH_BATCH)
                   > 0)
            {
                sluice_ring_advance(&ring, NULL);
            }

            bench_wait(&ring, bench_fds[ring.index]);
        }
    }

    for (i = 0; i < readers; i++) {
        wait(&status);
        test_check(status == 0, "reader: %d", status);
    }

    used = test_now() - start;

    printf("%8u %8d %12.0f %14.3f %14.4f\n", size, readers,
           (double) events / used,
           (double) sluice_ring_counters(&ring)[SLUICE_RING_C_WAKES]
           / (double) events, (double) fulls / (double) events);
    fflush(stdout);

    sluice_ring_detach(&ring);
    close(ring.fd);
    sluice_ring_close(&ring);
    munmap(ready, 4096);
}


static void
bench_reader(sluice_ring_t *ring, _Atomic int *ready, uint64_t events)
{
    int       i, n;
    uint64_t  missed, seen;

    test_check(sluice_ring_attach(ring, 0, 1, &missed) == SLUICE_OK, "attach");
    atomic_fetch_add(ready, 1);

    for (seen = 0; seen < events; ) {
        n = sluice_ring_next_batch(ring, bench_frames, BENCH_BATCH);

        for (i = 0; i < n; i++) {
            memcpy(bench_copy, bench_frames[i].payload,
                   bench_frames[i].length);
            seen++;
        }

        test_check(n >= 0 && sluice_ring_advance(ring, NULL) == SLUICE_OK,
                   "reader: %d", n);

        if (n == 0 && sluice_ring_sleep(ring) == SLUICE_NONE) {
            bench_wait(ring, bench_fds[ring->index]);
        }
    }

    sluice_ring_detach(ring);
}


static void
bench_wait(sluice_ring_t *ring, int fd)
{
    uint64_t       n;
    struct pollfd  p;

    (void) ring;

    p.fd = fd;
    p.events = POLLIN;

    (void) poll(&p, 1, 10);
    (void) !read(fd, &n, sizeof(n));
}
