
/*
 * Logs for few processes and for many: each that there is a slot for gets one,
 * the next does not, and gets the first that is free again.  The last slot is
 * woken, claims and waits for space as the first does.  And a frame that is
 * appended wakes nobody, until somebody says so.
 */


#include "support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>


static sluice_ring_t  rings[SLUICE_RING_SLOTS], extra, writer;
static int            woken[SLUICE_RING_SLOTS];


static void
slots_wake(void *data, uint32_t slot)
{
    (void) data;

    woken[slot]++;
}


static void
slots_open(sluice_ring_t *ring, int fd)
{
    test_check(sluice_ring_open(ring, fd) == SLUICE_OK, "open");
    sluice_ring_set_wake(ring, slots_wake, NULL);
}


static void
slots_message(sluice_ring_message_t *m, int kind, uint64_t key)
{
    memset(m, 0, sizeof(*m));
    m->source = "slots";
    m->source_length = 5;
    m->kind = (uint8_t) kind;
    m->key = key;
    m->timeout_ms = 1000;
}


/* Takes one in a child, which ends: with a word, or without. */

static void
slots_child(int fd, int leaves)
{
    int       status;
    pid_t     pid;
    uint64_t  missed;

    pid = test_fork();

    if (pid == 0) {
        slots_open(&extra, fd);

        if (sluice_ring_attach(&extra, 0, 7, &missed) != SLUICE_OK) {
            _exit(1);
        }

        if (leaves) {
            sluice_ring_detach(&extra);
        }

        _exit(0);
    }

    test_check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}


static void
slots_fill(uint32_t count, int fd)
{
    uint32_t  i;
    uint64_t  missed;

    for (i = 0; i < count; i++) {
        slots_open(&rings[i], fd);
        test_check(sluice_ring_attach(&rings[i], 0, (uint16_t) i, &missed)
                   == SLUICE_OK, "slot %u of %u", i, count);
        test_check(rings[i].index == i, "%u is %u", i, rings[i].index);
    }

    slots_open(&extra, fd);

    for (i = 0; i < 2; i++) {
        test_check(sluice_ring_attach(&extra, 0, 7, &missed) == SLUICE_NOSLOT,
                   "one more than %u", count);
    }
}


static void
slots_sleep(uint32_t count)
{
    uint32_t             i, last;
    sluice_ring_frame_t  frames[8];

    last = count - 1;

    for (i = 0; i < count; i++) {
        while (sluice_ring_next_batch(&rings[i], frames, 8) > 0) {
            test_check(sluice_ring_advance(&rings[i], NULL) == SLUICE_OK,
                       "advance");
        }
    }

    memset(woken, 0, sizeof(woken));
    test_check(sluice_ring_sleep(&rings[last]) == SLUICE_NONE, "sleep");
}


static void
slots_wakes(uint32_t count)
{
    uint32_t               last;
    sluice_ring_message_t  m;

    last = count - 1;
    slots_message(&m, SLUICE_RING_ALL, 0);

    slots_sleep(count);
    test_check(sluice_ring_publish(&writer, &m) == SLUICE_OK, "publish");
    test_check(sluice_ring_publish(&writer, &m) == SLUICE_OK, "publish");
    test_check(woken[last] == 1, "woken %d times", woken[last]);

    slots_sleep(count);
    test_check(sluice_ring_append(&writer, &m) == SLUICE_OK, "append");
    test_check(sluice_ring_append(&writer, &m) == SLUICE_OK, "append");
    test_check(woken[last] == 0, "appending wakes");
    sluice_ring_wake_sleepers(&writer);
    sluice_ring_wake_sleepers(&writer);
    test_check(woken[last] == 1, "woken %d times", woken[last]);
}


static void
slots_claims(uint32_t count)
{
    int                    rc;
    uint32_t               i, last;
    sluice_ring_frame_t    frames[8];
    sluice_ring_message_t  m;

    last = count - 1;
    slots_sleep(count);
    slots_message(&m, SLUICE_RING_UNIQUE, 99);
    test_check(sluice_ring_publish(&writer, &m) == SLUICE_OK, "unique");

    for (i = count; i-- > 0; /* void */) {
        test_check(sluice_ring_next_batch(&rings[i], frames, 8) == 1,
                   "unique");

        rc = sluice_ring_claim(&rings[i], &frames[0]);
        test_check(rc == (i == last ? SLUICE_OK : SLUICE_NONE),
                   "claim by %u: %d", i, rc);

        if (i == last) {
            sluice_ring_done(&rings[i], &frames[0]);
        }
    }
}


/* The log is filled; who found it full is woken by who makes space. */

static void
slots_waits(uint32_t count)
{
    uint32_t               i, last;
    sluice_ring_message_t  m;

    last = count - 1;
    slots_message(&m, SLUICE_RING_ALL, 0);
    slots_sleep(count);

    for (i = 0; i < 10000; i++) {
        if (sluice_ring_publish(&rings[last], &m) == SLUICE_FULL) {
            break;
        }
    }

    test_check(i < 10000, "never full");
    memset(woken, 0, sizeof(woken));
    slots_sleep(count);

    /* the slowest has made space at the latest when it sleeps */
    test_check(sluice_ring_publish(&rings[last], &m) == SLUICE_OK, "space");
    test_check(woken[last] > 0, "not woken for space");
}


static void
slots_frees(uint32_t count, int fd)
{
    uint32_t  i;
    uint64_t  missed;

    for (i = 0; i < 2; i++) {
        sluice_ring_detach(&rings[count - 1]);
        slots_child(fd, (int) i);
        test_check(sluice_ring_attach(&rings[count - 1], 0, 3, &missed)
                   == SLUICE_OK, "freed");
        test_check(sluice_ring_attach(&extra, 0, 7, &missed) == SLUICE_NOSLOT,
                   "freed once");
    }
}


static void
slots_run(uint32_t count)
{
    uint32_t       i;
    sluice_ring_t  master;

    test_check(sluice_ring_create(&master, 1u << 16, count, TEST_FOR_EVER_MS)
               == SLUICE_OK, "create");
    slots_open(&writer, master.fd);

    slots_fill(count, master.fd);
    slots_wakes(count);
    slots_claims(count);
    slots_waits(count);
    slots_frees(count, master.fd);

    for (i = 0; i < count; i++) {
        sluice_ring_detach(&rings[i]);
        sluice_ring_close(&rings[i]);
    }

    sluice_ring_close(&extra);
    sluice_ring_close(&writer);
    close(master.fd);
    sluice_ring_close(&master);

    printf("slots: %u\n", count);
}


int
main(void)
{
    sluice_ring_t  ring;

    slots_run(1);
    slots_run(2);
    slots_run(65);
    slots_run(SLUICE_RING_SLOTS);

    test_check(sluice_ring_create(&ring, 1u << 16, 0, 0) == SLUICE_SYSTEM
               && sluice_ring_create(&ring, 1u << 16, SLUICE_RING_SLOTS + 1, 0)
                  == SLUICE_SYSTEM, "no slots, and too many");

    return 0;
}
