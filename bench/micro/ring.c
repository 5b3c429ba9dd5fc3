/*
 * The shared log alone: publishing and reading in one process.
 *
 *     ring <case> <count>    prints the nanoseconds that count events took
 */

#include "ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define RING_BATCH  64


static uint8_t              ring_payload[16384];
static int                  ring_fds[SLUICE_RING_SLOTS];
static sluice_ring_frame_t  ring_frames[RING_BATCH];


static double
ring_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static void
ring_failed(const char *what)
{
    fprintf(stderr, "ring: %s\n", what);
    exit(1);
}


int
main(int argc, char **argv)
{
    int                    n;
    long                   count, done;
    double                 start;
    uint64_t               missed;
    sluice_ring_t          ring;
    sluice_ring_message_t  m;

    if (argc != 3 || strncmp(argv[1], "event_", 6) != 0) {
        ring_failed("usage: ring event_<bytes> <count>");
    }

    for (n = 0; n < SLUICE_RING_SLOTS; n++) {
        ring_fds[n] = eventfd(0, EFD_NONBLOCK);
    }

    memset(&m, 0, sizeof(m));
    m.source = "benchmark";
    m.source_length = 9;
    m.event = "event";
    m.event_length = 5;
    m.payload[0] = ring_payload;
    m.length[0] = (uint32_t) atoi(argv[1] + 6);
    count = atol(argv[2]);

    if (m.length[0] > sizeof(ring_payload)
        || sluice_ring_create(&ring, 16 << 20, 256, 10000) != SLUICE_OK)
    {
        ring_failed("create");
    }

    sluice_ring_set_wake(&ring, sluice_ring_wake_fds, ring_fds);

    if (sluice_ring_attach(&ring, 0, 0, &missed) != SLUICE_OK) {
        ring_failed("attach");
    }

    start = ring_now();

    for (done = 0; done < count; done++) {
        if (sluice_ring_publish(&ring, &m) != SLUICE_OK) {
            ring_failed("publish");
        }

        if (done % RING_BATCH == RING_BATCH - 1) {
            n = (int) sluice_ring_next_batch(&ring, ring_frames, RING_BATCH);

            if (n != RING_BATCH) {
                ring_failed("read");
            }

            sluice_ring_advance(&ring, NULL);
        }
    }

    printf("%.0f\n", ring_now() - start);

    return 0;
}
