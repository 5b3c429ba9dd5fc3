
/*
 * The readers against a log that holds anything: damaged frames, headers whose
 * check is right but nothing else is, memory that changes while it is read,
 * and at last a control area full of noise.  Runs under ASan and UBSan for
 * SECONDS, FUZZ_ROUNDS at least; every byte of every payload handed out is
 * touched, and must lie in the log.
 */


#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define FUZZ_SIZE    (64u << 10)
#define FUZZ_ROUNDS  20


static uint64_t          state, rounds, frames_read, bad;
static volatile uint8_t  fuzz_sink;
static _Atomic int       fuzz_stop;
static int               fuzz_vandals;
static uint8_t           noise[FUZZ_SIZE];


static void
fuzz_publish(sluice_ring_t *ring)
{
    sluice_ring_message_t  m;

    memset(&m, 0, sizeof(m));
    m.source = "source";
    m.source_length = (uint16_t) test_below(&state, 7);
    m.event = "event";
    m.event_length = (uint16_t) test_below(&state, 6);
    m.payload[0] = noise;
    m.length[0] = (uint32_t) test_below(&state, 2000);
    m.kind = (uint8_t) test_below(&state, 3);
    m.flags = (uint8_t) test_below(&state, 8);
    m.key = test_below(&state, 100);
    m.timeout_ms = (uint32_t) test_below(&state, 100);

    (void) sluice_ring_publish(ring, &m);
}


/* Anything may come out but what is not in the log. */

static void
fuzz_read(sluice_ring_t *ring)
{
    int                   i, n, turns;
    uint32_t              k;
    uint64_t              missed, seq;
    const uint8_t        *low, *high;
    sluice_ring_frame_t   frames[8], *f;

    low = ring->data;
    high = ring->data + 2 * ring->size;

    for (turns = 0; turns < 3000; turns++) {
        seq = ring->read_seq;
        n = sluice_ring_next_batch(ring, frames, 8);

        for (i = 0; i < n; i++) {
            f = &frames[i];

            test_check(f->payload >= low && f->length <= ring->limit
                       && f->payload + f->length <= high
                       && (const uint8_t *) f->source >= low
                       && (const uint8_t *) f->source + f->source_length
                          <= (const uint8_t *) f->event
                       && (const uint8_t *) f->event + f->event_length
                          <= f->payload,
                       "frame outside of the log");

            test_check((int64_t) (ring->control->tail - f->end) >= 0,
                       "behind the tail");
            test_check(f->seq > seq && f->seq <= ring->read_seq,
                       "frame %lu after %lu", f->seq, seq);
            seq = f->seq;

            for (k = 0; k < f->length; k++) {
                fuzz_sink ^= f->payload[k];
            }

            (void) sluice_ring_claim(ring, f);
            (void) sluice_ring_done(ring, f);
            frames_read++;
        }

        if (n <= 0) {
            (void) sluice_ring_sleep(ring);

            if (n == SLUICE_BAD || n == SLUICE_OVERRUN) {
                bad++;
                (void) sluice_ring_rejoin(ring, &missed);
            }

            return;
        }

        (void) sluice_ring_advance(ring, &frames[n - 1]);
    }

    test_check(0, "reads for ever");
}


static uint64_t
fuzz_number(void)
{
    switch (test_below(&state, 6)) {

    case 0:
        return test_below(&state, 256);

    case 1:
        return test_below(&state, 65536);

    case 2:
        return (uint64_t) 1 << test_below(&state, 64);

    case 3:
        return ((uint64_t) 1 << test_below(&state, 64)) - 1;

    case 4:
        return 0 - test_below(&state, 256);

    default:
        return test_random(&state);
    }
}


/* A header with one or two wrong values and a right check. */

static void
fuzz_header(sluice_ring_t *ring, uint64_t position)
{
    int                    i, n;
    uint8_t               *p;
    sluice_ring_header_t   h;

    p = ring->data + (position & ring->mask);
    memcpy(&h, p, sizeof(h));

    n = 1 + (int) test_below(&state, 2);

    for (i = 0; i < n; i++) {
        switch (test_below(&state, 10)) {

        case 0:
            h.length = (uint32_t) fuzz_number();
            break;

        case 1:
            h.payload = (uint32_t) fuzz_number();
            break;

        case 2:
            h.source = (uint16_t) fuzz_number();
            break;

        case 3:
            h.event = (uint16_t) fuzz_number();
            break;

        case 4:
            h.seq = fuzz_number();
            break;

        case 5:
            h.entry = (uint32_t) fuzz_number();
            break;

        case 6:
            h.kind = (uint8_t) fuzz_number();
            break;

        case 7:
            /* lengths that fit each other */
            h.payload = (uint32_t) fuzz_number();
            h.length = (uint32_t) (sizeof(h) + h.source + h.event + h.payload
                                   + 7) & ~7u;
            break;

        case 8:
            h.source = (uint16_t) fuzz_number();
            h.length = (uint32_t) (sizeof(h) + h.source + h.event + h.payload
                                   + 7) & ~7u;
            break;

        default:
            h.flags = (uint8_t) fuzz_number();
        }
    }

    h.check = sluice_ring_frame_check(&h, position);
    memcpy(p, &h, sizeof(h));
}


static void
fuzz_bytes(uint8_t *p, size_t length, int n)
{
    while (n--) {
        p[test_below(&state, length)] = (uint8_t) test_random(&state);
    }
}


/* Three bytes of a header: if any of them is another now, it is refused. */

static void
fuzz_damage(sluice_ring_t *ring, uint64_t position, uint64_t tail)
{
    uint8_t               *p, old[64];
    sluice_ring_frame_t    frame;
    sluice_ring_header_t   h;

    p = ring->data + (position & ring->mask);

    memcpy(&h, p, sizeof(h));
    memcpy(old, p, sizeof(old));
    fuzz_bytes(p, sizeof(old), 3);

    if (!fuzz_vandals && memcmp(old, p, sizeof(old)) != 0) {
        test_check(sluice_ring_frame_read(ring, position, tail, h.seq, &frame)
                   == SLUICE_BAD, "damaged header %lu accepted", h.seq);
    }
}


/* Frames: some good ones, then damage, then reading. */

static void
fuzz_frames(sluice_ring_t *ring, sluice_ring_t *writer, int last)
{
    int                  i, n, spare;
    uint64_t             start, where[24];

    start = ring->control->tail;
    n = 1 + (int) test_below(&state, 23);

    for (i = 0; i < n; i++) {
        where[i] = ring->control->tail;
        fuzz_publish(writer);
    }

    switch (last ? 3 : test_below(&state, 3)) {

    case 0:
        fuzz_header(ring, where[test_below(&state, (uint64_t) n)]);
        break;

    case 1:
        fuzz_damage(ring, where[test_below(&state, (uint64_t) n)],
                    ring->control->tail);
        break;

    case 2:
        fuzz_bytes(ring->data, ring->size, 200);
        break;

    default:
        /* a tail that is not where a frame ends: nothing is right any more */
        spare = (int) test_below(&state, 3);
        ring->control->tail = spare == 0 ? start + test_below(&state, 200)
                              : spare == 1 ? fuzz_number()
                              : ring->control->tail + 8;
    }

    fuzz_read(ring);
    fuzz_read(writer);
}


/* Everything shared but the mutexes. */

static void
fuzz_control(sluice_ring_t *ring, sluice_ring_t *writer)
{
    int                     i, k;
    uint32_t                generation;
    uint64_t                missed;
    uint8_t                *p;
    sluice_ring_stats_t     stats;
    sluice_ring_control_t  *c;

    sluice_ring_slot_stats_t  slot;

    c = ring->control;

    for (i = 0; i < 40; i++) {
        p = (uint8_t *) &c->top;

        switch (test_below(&state, 6)) {

        case 0:
            fuzz_bytes((uint8_t *) &c->tail, 8, 1);
            break;

        case 1:
            fuzz_bytes((uint8_t *) &c->gate,
                       sizeof(*c) - offsetof(sluice_ring_control_t, gate), 20);
            break;

        case 2:
            fuzz_bytes(p, 16, 2);
            break;

        case 3:
            for (k = 0; k < 4; k++) {
                fuzz_bytes((uint8_t *) &ring->slots[k],
                           offsetof(sluice_ring_slot_t, alive), 4);
            }
            break;

        case 4:
            fuzz_bytes((uint8_t *) ring->entries,
                       (size_t) (ring->data - (uint8_t *) ring->entries),
                       500);
            break;

        default:
            fuzz_bytes(ring->data, ring->size, 100);
        }

        fuzz_publish(writer);
        fuzz_publish(ring);
        fuzz_read(ring);
        fuzz_read(writer);
        sluice_ring_stats(ring, &stats);
        (void) sluice_ring_slot_stats(ring, (uint32_t) fuzz_number(), &slot);
        (void) sluice_ring_generation(ring, 3, &generation);

        sluice_ring_detach(writer);
        (void) sluice_ring_attach(writer, generation, 1, &missed);
    }
}


static void
fuzz_again(void *data, const sluice_ring_frame_t *f)
{
    uint32_t  k;

    (void) data;

    for (k = 0; k < f->length; k++) {
        fuzz_sink ^= f->payload[k];
    }
}


/* Somebody who keeps writing where a reader reads. */

static void *
fuzz_vandal(void *data)
{
    uint64_t        mine;
    sluice_ring_t  *ring;

    mine = 1;
    ring = data;

    while (!fuzz_stop) {
        ring->data[(ring->control->tail - 1 - test_below(&mine, 4096))
                   & ring->mask] = (uint8_t) test_random(&mine);
    }

    return NULL;
}


static void
fuzz_round(void)
{
    int             i;
    uint64_t        missed;
    pthread_t       thread;
    sluice_ring_t   ring, writer;

    test_check(sluice_ring_create(&ring, FUZZ_SIZE, TEST_SLOTS, 0)
               == SLUICE_OK, "create");
    test_check(sluice_ring_open(&writer, ring.fd) == SLUICE_OK, "open");
    sluice_ring_set_redeliver(&ring, fuzz_again, NULL);
    sluice_ring_set_redeliver(&writer, fuzz_again, NULL);

    test_check(sluice_ring_attach(&ring, 0, 0, &missed) == SLUICE_OK,
               "attach");
    test_check(sluice_ring_attach(&writer, 0, 1, &missed) == SLUICE_OK,
               "attach");

    fuzz_stop = 0;
    fuzz_vandals = (test_below(&state, 4) == 0);

    if (fuzz_vandals) {
        test_check(pthread_create(&thread, NULL, fuzz_vandal, &ring) == 0,
                   "thread");
    }

    for (i = 0; i < 100; i++) {
        fuzz_frames(&ring, &writer, i == 99);
    }

    fuzz_stop = 1;

    if (fuzz_vandals) {
        pthread_join(thread, NULL);
    }

    fuzz_control(&ring, &writer);

    close(ring.fd);
    sluice_ring_detach(&ring);
    sluice_ring_detach(&writer);
    sluice_ring_close(&ring);
    sluice_ring_close(&writer);
    rounds++;
}


/* A file that is no log, or another's, is refused. */

static void
fuzz_open(void)
{
    int                      i, rc;
    sluice_ring_t            ring, other;
    sluice_ring_identity_t  *id, saved;

    test_check(sluice_ring_create(&ring, FUZZ_SIZE, TEST_SLOTS, 0)
               == SLUICE_OK, "create");

    id = &ring.control->identity;
    memcpy(&saved, id, sizeof(saved));

    for (i = 0; i < 20000; i++) {
        fuzz_bytes((uint8_t *) id, sizeof(saved), 1);

        rc = sluice_ring_open(&other, ring.fd);

        if (rc == SLUICE_OK) {
            test_check(other.size == FUZZ_SIZE, "opened as %lu", other.size);
            sluice_ring_close(&other);
        }

        memcpy(id, &saved, sizeof(saved));
    }

    test_check(sluice_ring_open(&other, 0) == SLUICE_BAD
               || sluice_ring_open(&other, 0) == SLUICE_SYSTEM, "stdin");

    id->layout++;
    test_check(sluice_ring_open(&other, ring.fd) == SLUICE_VERSION, "layout");

    close(ring.fd);
    sluice_ring_close(&ring);
}


int
main(void)
{
    double  end;

    state = test_seed("fuzz");
    fuzz_bytes(noise, sizeof(noise), (int) sizeof(noise));
    end = test_now() + (double) test_env("SECONDS", 5);

    fuzz_open();

    do {
        fuzz_round();
    } while (rounds < FUZZ_ROUNDS || test_now() < end);

    printf("fuzz: %lu rounds, %lu frames read, %lu refused\n", rounds,
           frames_read, bad);

    test_check(frames_read > 1000 && bad > 100, "the fuzz is too tame");

    return 0;
}
