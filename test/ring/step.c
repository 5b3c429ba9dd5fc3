
/*
 * Long on purpose: one experiment with all that judges it.
 *
 * Death at every instruction: a child runs one verb under ptrace and is killed
 * before its first machine instruction, the second, the third ... until the
 * verb returns.  After each death the others must find a log that is whole, a
 * lock that is free, and every promise kept.
 *
 * Verbs longer than LIMIT are sampled at random instructions.  x86-64 only.
 *
 * Over 500 lines, most of them the cases: a scene and its examination each.
 */


#include "support.h"
#include "stepper.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


#define STEP_SIZE   (64u << 10)
#define STEP_STALL  10000
#define STEP_KEY    0x1234567890abcdefu
#define STEP_CHILD  1000000
#define STEP_SELF   2000000
#define STEP_LEARN  UINT64_MAX      /* the path */


typedef struct {
    const char  *name;
    void       (*before)(void);      /* in the parent */
    void       (*prepare)(void);     /* in the child */
    void       (*ready)(void);       /* in the parent: the child is prepared */
    void       (*verb)(void);        /* in the child, step by step */
    void       (*after)(int whole);  /* in the parent; did the verb return? */
} step_case_t;


/* What the child has to say, in shared memory. */

typedef struct {
    _Atomic int       rc;
    _Atomic int       claimed;
    _Atomic uint32_t  generation;
} step_note_t;


static int            fds[TEST_SLOTS];
static uint8_t        payload[2048];
static uint64_t       state, self_number, self_seen, child_seen, again_seen;
static uint64_t       next_child, last_seq, missed, now_ms;
static uint32_t       generation;
static step_note_t   *note;

static sluice_ring_message_t  m;

static sluice_ring_t        self;      /* the parent's, attached */
static sluice_ring_t        child;     /* the child's; unused in the parent */
static sluice_ring_frame_t  frame;     /* the last unique one that self saw */
static sluice_ring_frame_t  again_frame;


static uint64_t
step_clock(void)
{
    return now_ms;
}


static void
step_message(uint64_t who, uint64_t number, uint32_t length, uint8_t kind,
    uint8_t flags)
{
    test_fill(payload, length, who, number);
    memset(&m, 0, sizeof(m));

    m.source = "step";
    m.source_length = 4;
    m.event = "death";
    m.event_length = 5;
    m.payload[0] = payload;
    m.length[0] = length;
    m.kind = kind;
    m.flags = flags;

    if (kind == SLUICE_RING_UNIQUE) {
        m.key = STEP_KEY + number;
        m.timeout_ms = 60000;
    }
}


static int
step_publish(uint64_t who, uint64_t number, uint32_t length, uint8_t kind,
    uint8_t flags)
{
    step_message(who, number, length, kind, flags);

    return sluice_ring_publish(&self, &m);
}


/* Reads all there is; the order, the numbers and the sums must be right. */

static void
step_read(void)
{
    int                   i, n;
    test_head_t           head;
    sluice_ring_frame_t   frames[16];

    while ((n = sluice_ring_next_batch(&self, frames, 16)) > 0) {

        for (i = 0; i < n; i++) {
            test_check(frames[i].seq == last_seq + 1, "seq %lu after %lu",
                       frames[i].seq, last_seq);
            last_seq = frames[i].seq;

            test_check(test_whole(frames[i].payload, frames[i].length, &head),
                       "torn");

            if (head.who == STEP_CHILD) {
                test_check(head.number == next_child, "number %lu, not %lu",
                           head.number, next_child);
                child_seen++;

            } else {
                test_check(head.number == self_seen + 1, "lost one of mine");
                self_seen++;
            }

            if (frames[i].kind == SLUICE_RING_UNIQUE) {
                frame = frames[i];
            }
        }

        test_check(sluice_ring_advance(&self, NULL) == SLUICE_OK, "advance");
    }

    test_check(n == 0, "read: %s", sluice_ring_word(n));
}


static void
step_again(void *data, const sluice_ring_frame_t *f)
{
    test_head_t  head;

    (void) data;

    test_check(test_whole(f->payload, f->length, &head), "torn");
    again_frame = *f;
    again_seen++;
}


/* What a worker does that nginx puts in the place of a dead one. */

static void
step_respawn(void)
{
    uint64_t       left;
    sluice_ring_t  ring;

    test_check(sluice_ring_open(&ring, self.fd) == SLUICE_OK, "open");
    sluice_ring_set_wake(&ring, sluice_ring_wake_fds, fds);
    sluice_ring_set_clock(&ring, step_clock);
    sluice_ring_set_redeliver(&ring, step_again, NULL);

    /* of the youngest generation, also if its master died in the middle */

    test_check(sluice_ring_attach(&ring, self.control->generation, 0, &left)
               == SLUICE_OK && left == 0, "attach, %lu missed", left);
    if (again_seen) {
        sluice_ring_done(&ring, &again_frame);
    }

    sluice_ring_detach(&ring);
    sluice_ring_close(&ring);
}


static int
step_woken(void)
{
    uint64_t  n;

    return read(fds[self.index], &n, sizeof(n)) == sizeof(n);
}


/* cases */

static void
before_none(void)
{
    step_read();
}


static void
ready_none(void)
{
}


/* Only now: a child that attaches wakes whoever sleeps. */

static void
ready_asleep(void)
{
    step_read();
    (void) step_woken();
    test_check(sluice_ring_sleep(&self) == SLUICE_NONE, "sleep");
}


static void
open_child(void)
{
    test_check(sluice_ring_open(&child, self.fd) == SLUICE_OK, "open");
    sluice_ring_set_wake(&child, sluice_ring_wake_fds, fds);
    sluice_ring_set_clock(&child, step_clock);
}


static void
prepare_attach(void)
{
    open_child();
    test_check(sluice_ring_attach(&child, 0, 1, &missed) == SLUICE_OK,
               "attach");
}


static void
prepare_publish(void)
{
    prepare_attach();
    step_message(STEP_CHILD, next_child, 200, SLUICE_RING_ALL, 0);
}


static void
verb_publish(void)
{
    note->rc = sluice_ring_publish(&child, &m);
}


static void
after_publish(int whole)
{
    int  there;

    there = (self.control->tail != self.read);

    test_check(!there || !(self.ticket & 1) || step_woken(),
               "event in the log, reader asleep");

    step_read();
    test_check(!whole || child_seen == 1, "published, not there");
    test_check(whole || child_seen <= 1, "there twice");
}


static void
prepare_unique(void)
{
    prepare_attach();
    step_message(STEP_CHILD, next_child, 100, SLUICE_RING_UNIQUE, 0);
}


/* The key counts if and only if the event is there. */

static void
after_unique(int whole)
{
    int  rc;

    step_read();
    test_check(!whole || child_seen == 1, "published, not there");

    rc = step_publish(STEP_SELF, self_number + 1, 100,
                      SLUICE_RING_ALL, 0);
    test_check(rc == SLUICE_OK, "publish: %d", rc);
    self_number++;

    rc = step_publish(STEP_CHILD, next_child, 100, SLUICE_RING_UNIQUE,
                      0);
    test_check(rc == (child_seen ? SLUICE_REPEAT : SLUICE_OK),
               "event seen %lu times, its key: %s", child_seen,
               sluice_ring_word(rc));

    child_seen = 0;
    step_read();
    child_seen = 1;
}


/*
 * The log is full because of a dead reader (a grandchild that attached and was
 * killed); the child, without a slot, so in nobody's way, reaps it.
 */

static void
ready_full(void)
{
    int       rc, status;
    pid_t     pid;
    uint64_t  start;

    start = self.control->tail;
    pid = test_fork();

    if (pid == 0) {
        prepare_attach();
        raise(SIGKILL);
    }

    waitpid(pid, &status, 0);

    while (self.control->tail - start < STEP_SIZE - 1600) {
        rc = step_publish(STEP_SELF, self_number + 1, 1400, SLUICE_RING_ALL,
                          0);
        test_check(rc == SLUICE_OK, "publish: %d", rc);
        self_number++;
        step_read();
    }
}


static void
prepare_full(void)
{
    open_child();
    step_message(STEP_CHILD, next_child, 1800, SLUICE_RING_ALL, 0);
}


static void
verb_attach(void)
{
    note->rc = sluice_ring_attach(&child, generation, 0, &missed);
}


static void
after_any(int whole)
{
    test_check(!whole || note->rc == SLUICE_OK, "verb: %d", note->rc);
    step_read();
    child_seen = 1;
}


static void
before_unread(void)
{
    int  rc;

    step_read();

    rc = step_publish(STEP_SELF, self_number + 1, 300,
                      SLUICE_RING_UNIQUE, SLUICE_RING_REDELIVER);
    test_check(rc == SLUICE_OK, "publish: %d", rc);
    self_number++;
}


/* Attached before the event: the parent has read it, but claims it later. */

static void
before_claim(void)
{
    int  rc;

    step_read();

    rc = sluice_ring_generation(&self, 2, &generation);
    test_check(rc == SLUICE_OK, "generation: %d", rc);

    before_unread();
}


static void
prepare_claim(void)
{
    open_child();
    test_check(sluice_ring_attach(&child, generation, 1, &missed)
               == SLUICE_OK, "attach");
}


static void
verb_claim(void)
{
    int                   n;
    sluice_ring_frame_t   frames[4];

    n = sluice_ring_next_batch(&child, frames, 4);

    if (n == 1 && sluice_ring_claim(&child, frames) == SLUICE_OK) {
        note->claimed = 1;
        sluice_ring_advance(&child, frames);
        sluice_ring_done(&child, frames);
        note->claimed = 2;
    }

    note->rc = sluice_ring_sleep(&child);
}


/* Done by the child, or handed on, or still to be had: one of them. */

static void
after_claim(int whole)
{
    int  mine, done;

    test_check(!whole || (note->rc == SLUICE_NONE && note->claimed == 2),
               "verb: %d", note->rc);

    step_read();

    mine = (sluice_ring_claim(&self, &frame) == SLUICE_OK);
    done = !mine && again_seen == 0;

    test_check(mine + done + (int) again_seen == 1,
               "%d claimed, %lu redelivered", mine, again_seen);
    test_check(!done || note->claimed >= 1, "nobody has got it");
    test_check(again_seen == 0 || note->claimed < 2, "done, and redelivered");

    sluice_ring_done(&self, &frame);
    child_seen = 1;
}


/* The child is the successor: it reaps one that died with a claim. */

static void
before_reap(void)
{
    int    status;
    pid_t  pid;

    before_claim();

    pid = test_fork();

    if (pid == 0) {
        sluice_ring_frame_t  f;

        prepare_claim();
        test_check(sluice_ring_next_batch(&child, &f, 1) == 1, "read");
        test_check(sluice_ring_claim(&child, &f) == SLUICE_OK, "claim");
        raise(SIGKILL);
    }

    waitpid(pid, &status, 0);
}


/* The claim of the dead passed to its successor, and from there to ours. */

static void
after_reap(int whole)
{
    test_check(again_seen == 1, "redelivered %lu times", again_seen);
    after_any(whole);
}


static void
prepare_reap(void)
{
    open_child();
    sluice_ring_set_redeliver(&child, step_again, NULL);
}


static void
verb_detach(void)
{
    sluice_ring_detach(&child);
    note->rc = SLUICE_OK;
}


static void
verb_generation(void)
{
    note->rc = sluice_ring_generation(&child, 1, &generation);
    note->generation = generation;
}


static void
verb_rejoin(void)
{
    note->rc = sluice_ring_rejoin(&child, &missed);
}


static const step_case_t  overtaken = {
    "generation, overtaken",
    before_none, open_child, ready_none, verb_generation, after_any
};


static const step_case_t  cases[] = {
    { "publish",
      before_none, prepare_publish, ready_asleep, verb_publish,
      after_publish },

    { "publish unique",
      before_none, prepare_unique, ready_none, verb_publish, after_unique },

    { "publish, full, reap",
      before_none, prepare_full, ready_full, verb_publish, after_publish },

    { "attach",
      before_none, open_child, ready_asleep, verb_attach, after_any },

    { "attach, reap, redeliver",
      before_reap, prepare_reap, ready_none, verb_attach, after_reap },

    { "read, claim, done, sleep",
      before_claim, prepare_claim, ready_none, verb_claim, after_claim },

    { "detach",
      before_none, prepare_attach, ready_none, verb_detach, after_any },

    { "generation",
      before_none, prepare_attach, ready_none, verb_generation, after_any },

    { "rejoin",
      before_none, prepare_attach, before_unread, verb_rejoin, after_any },
};


/* A turn: everything is prepared, a child dies, everything is examined. */

static void
step_kill(const step_case_t *c, uint64_t k)
{
    int     whole;
    pid_t   pid;
    double  start, cpu;

    memset(note, 0, sizeof(*note));
    child_seen = again_seen = 0;
    next_child++;
    now_ms += 100000;    /* keys of the last turn have expired */

    c->before();
    pid = stepper_start(c->prepare, c->verb);
    c->ready();

    if (k == STEP_LEARN) {
        stepper_learn(pid);
        whole = 1;

    } else {
        whole = stepper_to(pid, k);
    }

    stepper_end(pid);

    start = test_now();
    cpu = test_cpu();
    step_respawn();
    c->after(whole);

    test_check(step_publish(STEP_SELF, self_number + 1, 100,
                            SLUICE_RING_ALL, 0) == SLUICE_OK, "publish");
    self_number++;
    step_read();
    test_check(self_seen == self_number, "%lu of %lu seen", self_seen,
               self_number);
    test_check(test_cpu() - cpu < 0.5 && test_now() - start < TEST_FOR_EVER_S,
               "recovery took %f s of the CPU", test_cpu() - cpu);
}


/* Publishes and reads a lap, or as much of it as the log takes. */

static void
step_lap(uint32_t stall_ms)
{
    int       rc;
    uint64_t  start;

    start = self.control->tail;

    while (self.control->tail - start < STEP_SIZE + 4096) {
        rc = step_publish(STEP_SELF, self_number + 1, 1400, SLUICE_RING_ALL,
                          0);

        if (rc == SLUICE_FULL && stall_ms) {
            now_ms += stall_ms;
            continue;
        }

        if (rc == SLUICE_FULL) {
            return;
        }

        test_check(rc == SLUICE_OK, "publish: %d", rc);
        self_number++;
        step_read();
    }
}


/*
 * Everything that a worker of the generation finds, or is told that it missed:
 * at least count frames.
 */

static void
step_enter(uint32_t number, uint64_t count)
{
    int                   i, n;
    uint64_t              found, told;
    test_head_t           head;
    sluice_ring_t         ring;
    sluice_ring_frame_t   frames[16];

    found = 0;

    test_check(sluice_ring_open(&ring, self.fd) == SLUICE_OK, "open");
    sluice_ring_set_clock(&ring, step_clock);
    test_check(sluice_ring_attach(&ring, number, 0, &told) == SLUICE_OK,
               "attach");

    while ((n = sluice_ring_next_batch(&ring, frames, 16)) > 0) {
        for (i = 0; i < n; i++) {
            test_check(test_whole(frames[i].payload, frames[i].length, &head),
                       "torn");
        }

        found += (uint64_t) n;
        test_check(sluice_ring_advance(&ring, NULL) == SLUICE_OK, "advance");
    }

    test_check(n == 0, "read: %s", sluice_ring_word(n));
    test_check(told == 0 || found == 0, "told of %lu, and %lu are there", told,
               found);
    test_check(found + told >= count, "%lu found, %lu told, of %lu", found,
               told, count);

    sluice_ring_detach(&ring);
    sluice_ring_close(&ring);
}


/*
 * The master takes no lock: it is stopped before instruction k of generation,
 * and a whole lap is published before it goes on.
 */

static void
step_overtake(const step_case_t *c, uint64_t k)
{
    int       i;
    pid_t     pid;
    uint64_t  begun;

    memset(note, 0, sizeof(*note));
    child_seen = 0;

    step_read();
    step_lap(STEP_STALL);
    pid = stepper_start(c->prepare, c->verb);

    if (k == STEP_LEARN) {
        stepper_learn(pid);

    } else if (!stepper_to(pid, k)) {
        step_lap(0);
        test_check(stepper_continue(pid), "not the end");
    }

    stepper_end(pid);
    test_check(note->rc == SLUICE_OK, "generation: %d", note->rc);

    begun = self_number;

    for (i = 0; i < 3; i++) {
        /* full: all of the lap is kept for the generation */
        if (step_publish(STEP_SELF, self_number + 1, 100, SLUICE_RING_ALL, 0)
            == SLUICE_OK)
        {
            self_number++;
            step_read();
        }
    }

    step_enter(note->generation, self_number - begun);
}


static void
step_slots(const char *name)
{
    sluice_ring_stats_t  stats;

    sluice_ring_stats(&self, &stats);
    test_check(stats.attached == 1 && stats.detached == 0,
               "%s: %u attached, %u detached", name, stats.attached,
               stats.detached);
}


int
main(void)
{
    unsigned            i;
    uint64_t            k, limit, deaths;
    const step_case_t  *c;

    state = test_seed("step");
    limit = test_env("LIMIT", 2000);
    note = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);

    for (i = 0; i < TEST_SLOTS; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK);
    }

    test_check(sluice_ring_create(&self, STEP_SIZE, TEST_SLOTS, STEP_STALL)
               == SLUICE_OK, "create");
    sluice_ring_set_wake(&self, sluice_ring_wake_fds, fds);
    sluice_ring_set_clock(&self, step_clock);
    test_check(sluice_ring_attach(&self, 0, 0, &missed) == SLUICE_OK,
               "attach");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        c = &cases[i];

        step_kill(c, STEP_LEARN);

        deaths = stepper_length < limit ? stepper_length : limit;

        for (k = 0; k < deaths; k++) {
            step_kill(c, deaths == stepper_length
                         ? k : test_below(&state, stepper_length));
            step_slots(c->name);
        }

        printf("step: %-25s %6lu instructions, %5lu deaths\n", c->name,
               stepper_length, deaths);
        fflush(stdout);
    }

    step_overtake(&overtaken, STEP_LEARN);

    for (k = 0; k < stepper_length; k++) {
        step_overtake(&overtaken, k);
    }

    printf("step: %-25s %6lu instructions\n", overtaken.name, stepper_length);

    return 0;
}
