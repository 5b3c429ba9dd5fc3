
/*
 * Long on purpose: one scenario, its processes and its judge share state.
 *
 * kill -9 under load: several processes publish, read, claim and sleep; the
 * master kills one after the other at random instants, puts a new one in its
 * place as nginx does, stops some for a while, and now and then replaces all
 * of them as in a reload.  It reads the log itself, from its first event to
 * its last, and knows what each process was told.
 *
 *     KILLS      how many (2000)
 *     PROCESSES  how many at a time (5)
 *     SEED       of everything random
 *
 * Checked: no torn event; every publication that returned SLUICE_OK is in the
 * log exactly once and in its publisher's order, and at most one more of each
 * life; all readers see one order and miss nothing; nobody is stuck, asleep
 * with events to read, or waits for the lock of a dead process; a new process
 * attaches by itself; a unique event is finished by one process, unless one
 * that had it died with it, and then redelivered.
 *
 * Over 500 lines: load, butcher and bookkeeper share what they know.
 */


#include "support.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define KILL_SIZE     (256u << 10)
#define KILL_BATCH    32
#define KILL_MAX      32            /* processes */
#define KILL_LIVES    200000u
#define KILL_ORDER    (1u << 16)
#define KILL_UNIQUE   (1u << 22)
#define KILL_INHERITED    64
#define KILL_MESSAGE  3000


/* One process from fork to death; its number is the who in its payloads. */

typedef struct {
    _Atomic uint32_t  asked;        /* number of the publication begun last */
    _Atomic uint32_t  accepted;     /* and of the last that returned OK */
    _Atomic uint32_t  attached;
    _Atomic uint32_t  dead;
    _Atomic uint32_t  read;
    float             attach_ms;
} life_t;


typedef struct {
    _Atomic uint32_t  owner;        /* life, plus 1 */
    _Atomic uint8_t   finished;
    _Atomic uint8_t   again;
    _Atomic uint8_t   seen;         /* by the master, so it was published */
} unique_t;


typedef struct {
    _Atomic uint64_t  order[KILL_ORDER];
    _Atomic uint32_t  uniques;
    _Atomic int       quiet;        /* publish no more */
    _Atomic int       leave;        /* exit when all is read */
    _Atomic uint64_t  overruns;
    _Atomic uint64_t  busy;
    _Atomic uint64_t  full;
    life_t            lives[KILL_LIVES];
    unique_t          unique[KILL_UNIQUE];
} shared_t;


/* A frame taken over from a dead receiver, to be published again. */

typedef struct {
    sluice_ring_frame_t  frame;
    uint8_t              payload[KILL_MESSAGE];
} heirloom_t;


typedef struct {
    pid_t     pid;
    uint32_t  life;
    uint16_t  worker;
    double    stopped_until;
} process_t;


static int             fds[TEST_SLOTS];
static int             count;       /* processes */
static int             paused;
static int             witness;     /* has read all since the log began */
static shared_t       *shared;
static uint64_t        state;
static uint32_t        generation, me;
static uint32_t       *last;        /* number seen last, for each life */
static process_t       processes[KILL_MAX];
static uint32_t        lives;
static sluice_ring_t   blank;       /* opened, not attached */
static sluice_ring_t   ring;        /* each process's own */
static int             inherited;
static heirloom_t      heirlooms[KILL_INHERITED];
static uint8_t         payload[KILL_MESSAGE];


/* both sides */

static int
publish(uint32_t length, uint8_t kind)
{
    int                    rc;
    uint32_t               number;
    sluice_ring_message_t  m;

    number = shared->lives[me].accepted + 1;
    test_fill(payload, length, me, number);

    memset(&m, 0, sizeof(m));
    m.source = "kill";
    m.source_length = 4;
    m.event = "load";
    m.event_length = 4;
    m.payload[0] = payload;
    m.length[0] = length / 3;
    m.payload[1] = payload + length / 3;
    m.length[1] = length - length / 3;
    m.kind = kind;

    if (kind == SLUICE_RING_UNIQUE) {
        m.flags = SLUICE_RING_REDELIVER;
        m.message = atomic_fetch_add(&shared->uniques, 1) + 1;
        test_check(m.message < KILL_UNIQUE, "too many unique events");
        shared->unique[m.message].owner = me + 1;
        m.key = (uint64_t) m.message << 32 | me;
        m.timeout_ms = 20;
    }

    shared->lives[me].asked = number;
    rc = sluice_ring_publish(&ring, &m);

    if (rc == SLUICE_OK) {
        shared->lives[me].accepted = number;
        return rc;
    }

    if (kind == SLUICE_RING_UNIQUE) {
        shared->unique[m.message].finished = 1;    /* never was */
    }

    shared->lives[me].asked = number - 1;

    test_check(rc == SLUICE_FULL || rc == SLUICE_BUSY || rc == SLUICE_CROWDED,
               "publish: %s", sluice_ring_word(rc));

    shared->full += (rc == SLUICE_FULL);
    shared->busy += (rc == SLUICE_BUSY);

    return rc;
}


static void
check_order(const sluice_ring_frame_t *f, const test_head_t *head)
{
    uint64_t           lap, here, there, mix;
    _Atomic uint64_t  *word;

    /* which lap of this table, and what was there, in one word */

    lap = (f->seq / KILL_ORDER + 1) << 40;
    mix = head->who << 32 | head->number;
    here = lap | (test_random(&mix) >> 24);
    word = &shared->order[f->seq % KILL_ORDER];
    there = *word;

    while (there >> 40 < here >> 40) {
        if (atomic_compare_exchange_strong(word, &there, here)) {
            return;
        }
    }

    test_check(there >> 40 > here >> 40 || there == here,
               "two orders at %lu", f->seq);
}


static void
check_frame(const sluice_ring_frame_t *f)
{
    test_head_t  head;

    test_check(test_whole(f->payload, f->length, &head), "torn at %lu",
               f->seq);

    if (sluice_ring_intact(&ring) != SLUICE_OK) {
        return;
    }

    check_order(f, &head);

    if (me == 0 && f->kind == SLUICE_RING_UNIQUE) {
        shared->unique[f->message].seen = 1;
    }

    if (f->flags & SLUICE_RING_AGAIN) {
        return;
    }

    test_check(head.who < KILL_LIVES, "life %lu", head.who);
    test_check(head.number == last[head.who] + 1
               || (!witness && last[head.who] == 0),
               "%lu after %u of life %lu", head.number, last[head.who],
               head.who);
    last[head.who] = (uint32_t) head.number;
}


/* Claims what is unique; "works" for a moment, in which it may be killed. */

static void
take(const sluice_ring_frame_t *f)
{
    int        i, spin;
    unique_t  *u;

    if (f->kind != SLUICE_RING_UNIQUE
        || sluice_ring_claim(&ring, f) != SLUICE_OK)
    {
        return;
    }

    u = &shared->unique[f->message];
    u->owner = me + 1;

    spin = (int) test_below(&state, 2000);

    for (i = 0; i < spin; i++) {
        atomic_signal_fence(memory_order_seq_cst);
    }

    test_check(atomic_fetch_add(&u->finished, 1) == 0 || u->again,
               "unique event %u finished twice", f->message);
    sluice_ring_done(&ring, f);
}


static void
inherit(void *data, const sluice_ring_frame_t *f)
{
    heirloom_t  *h;

    (void) data;

    test_check(inherited < KILL_INHERITED, "too much to inherit");

    h = &heirlooms[inherited++];
    h->frame = *f;
    memcpy(h->payload, f->payload, f->length);

    shared->unique[f->message].owner = me + 1;
    shared->unique[f->message].again = 1;
}


static void
pass_on(void)
{
    heirloom_t            *h;
    sluice_ring_message_t  m;

    while (inherited) {
        h = &heirlooms[inherited - 1];

        memset(&m, 0, sizeof(m));
        m.source = "kill";
        m.source_length = 4;
        m.payload[0] = h->payload;
        m.length[0] = h->frame.length;
        m.kind = SLUICE_RING_UNIQUE;
        m.flags = SLUICE_RING_REDELIVER|SLUICE_RING_AGAIN;
        m.message = h->frame.message;

        if (sluice_ring_publish(&ring, &m) != SLUICE_OK) {
            return;
        }

        sluice_ring_done(&ring, &h->frame);
        inherited--;
    }
}


static int
read_some(int claim)
{
    int                   i, n;
    uint64_t              missed;
    sluice_ring_frame_t   frames[KILL_BATCH];

    n = sluice_ring_next_batch(&ring, frames, KILL_BATCH);

    if (n == SLUICE_OVERRUN) {
        test_check(paused, "detached");

        while (sluice_ring_rejoin(&ring, &missed) != SLUICE_OK) {
            usleep(1000);
        }

        test_check(missed > 0, "overrun without loss");
        memset(last, 0, KILL_LIVES * sizeof(*last));
        shared->overruns++;
        witness = 0;
        return 0;
    }

    test_check(n >= 0, "read: %s", sluice_ring_word(n));

    for (i = 0; i < n; i++) {
        check_frame(&frames[i]);

        if (claim) {
            take(&frames[i]);
        }
    }

    if (n > 0) {
        (void) sluice_ring_advance(&ring, &frames[n - 1]);
        shared->lives[me].read += (uint32_t) n;
    }

    return n;
}


/* Waits for its eventfd.  How long it had to wait though there was work? */

static void
nap(int timeout_ms)
{
    uint64_t       n;
    struct pollfd  p;

    p.fd = fds[ring.index];
    p.events = POLLIN;

    if (poll(&p, 1, timeout_ms) == 0
        && timeout_ms >= 1000 && ring.control->tail != ring.read)
    {
        /* published after poll() was over, and the wakeup is still to come? */
        test_check(poll(&p, 1, TEST_FOR_EVER_MS) > 0,
                   "asleep with events to read");
    }

    (void) !read(p.fd, &n, sizeof(n));
}


/* a worker */

static void
attach(uint16_t worker)
{
    int       rc;
    double    start;
    uint64_t  missed;

    start = test_now();

    do {
        rc = sluice_ring_attach(&ring, generation, worker, &missed);
        test_check(rc == SLUICE_OK || rc == SLUICE_BUSY, "attach: %d", rc);

        if (rc == SLUICE_BUSY) {
            usleep(1000);
        }

    } while (rc != SLUICE_OK);

    shared->lives[me].attach_ms = (float) ((test_now() - start) * 1e3);
    shared->lives[me].attached = 1;
}


static void
work(uint16_t worker)
{
    int       i, n, burst, wants;
    uint32_t  length;
    uint64_t  kind;

    attach(worker);

    for ( ;; ) {
        pass_on();

        burst = shared->quiet ? 0 : (int) test_below(&state, 12);
        wants = 0;

        for (i = 0; i < burst && !wants; i++) {
            kind = test_below(&state, 16) ? SLUICE_RING_ALL
                                          : SLUICE_RING_UNIQUE;
            length = test_below(&state, 16) ? 300 : 2900;
            length = TEST_HEAD + (uint32_t) test_below(&state, length);

            wants = (publish(length, (uint8_t) kind) != SLUICE_OK);
        }

        for (i = 0, n = 1; i < 8 && n > 0; i++) {
            n = read_some(1);
        }

        if (n > 0 || sluice_ring_sleep(&ring) != SLUICE_NONE) {
            continue;
        }

        if (shared->leave && inherited == 0) {
            sluice_ring_detach(&ring);
            _exit(0);
        }

        /* a busy worker, one with little to do, one with nothing */

        nap(inherited || wants ? 10
            : shared->quiet ? 100
            : test_below(&state, 8) ? 1 : 2000);
    }
}


/* the master */

static void
spawn(process_t *p)
{
    p->life = ++lives;
    p->stopped_until = 0;

    test_check(lives < KILL_LIVES, "too many lives");

    p->pid = test_fork();

    if (p->pid == 0) {
        me = lives;
        state += me;
        ring = blank;
        inherited = witness = 0;
        memset(last, 0, KILL_LIVES * sizeof(*last));
        work(p->worker);
    }
}


static void
reap(process_t *p, int killed)
{
    int  status;

    test_check(waitpid(p->pid, &status, 0) == p->pid, "waitpid");
    test_check(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                      : WIFEXITED(status) && WEXITSTATUS(status) == 0,
               "worker of life %u: status %x", p->life, status);

    shared->lives[p->life].dead = 1;
}


/* Lets those go on whose time is over.  How many are still stopped? */

static int
resume(int all)
{
    int         i, n;
    process_t  *p;

    for (i = 0, n = 0; i < count; i++) {
        p = &processes[i];

        if (p->stopped_until && (all || test_now() > p->stopped_until)) {
            p->stopped_until = 0;
            kill(p->pid, SIGCONT);
        }

        n += (p->stopped_until != 0);
    }

    return n;
}


/*
 * Publishes, as a survivor, and says how long the lock made it wait, in ms:
 * with a dead holder not at all.  A full log is no matter of the dead: they
 * are reaped at once, so then there are readers who have to catch up.  -1 if
 * a stopped process, not a dead one, was in the way.
 */

static double
recover(void)
{
    int     rc, stopped;
    double  start, locked;

    locked = 0;
    stopped = 0;
    start = test_now();

    do {
        rc = publish(100, SLUICE_RING_ALL);

        if (rc != SLUICE_BUSY && locked == 0) {
            locked = test_now() - start;
        }

        while (read_some(0) > 0) { /* void */ }

        stopped |= resume(0);
        test_check(test_now() - start < TEST_FOR_EVER_S, "no publication");

    } while (rc != SLUICE_OK);

    return stopped ? -1 : locked * 1e3;
}


static int
compare(const void *one, const void *two)
{
    double  a, b;

    a = *(const double *) one;
    b = *(const double *) two;

    return a < b ? -1 : a > b;
}


/* Waits for a random time, but goes on reading. */

static void
watch(uint64_t us)
{
    double  end;

    end = test_now() + (double) us / 1e6;

    do {
        if (read_some(0) <= 0 && sluice_ring_sleep(&ring) == SLUICE_NONE) {
            nap(1);
        }
    } while (test_now() < end);
}


/* New workers while the old ones still publish; the old ones then leave. */

static void
reload(void)
{
    int        i;
    process_t  old[KILL_MAX];

    (void) resume(1);

    while (sluice_ring_generation(&ring, (uint32_t) count, &generation)
           != SLUICE_OK)
    {
        usleep(1000);
    }

    memcpy(old, processes, sizeof(old));

    for (i = 0; i < count; i++) {
        spawn(&processes[i]);
    }

    watch(2000 + test_below(&state, 20000));

    for (i = 0; i < count; i++) {
        kill(old[i].pid, SIGKILL);
        reap(&old[i], 1);
    }
}


/* What was said, and what the log held: the master has read all of it. */

static void
settle(void)
{
    uint32_t             i, asked, accepted, lost, again, unique;
    sluice_ring_stats_t  stats;

    if (!witness) {
        printf("kill: the master itself was detached: no full account\n");
    }

    for (i = 1; i <= lives && witness; i++) {
        asked = shared->lives[i].asked;
        accepted = shared->lives[i].accepted;

        test_check(last[i] >= accepted && last[i] <= asked,
                   "life %u: %u accepted, %u asked, %u in the log", i,
                   accepted, asked, last[i]);
    }

    test_check(!witness || last[0] == shared->lives[0].accepted,
               "the master's own");

    unique = shared->uniques;

    for (i = 1, lost = again = 0; i <= unique; i++) {
        again += shared->unique[i].again;

        if (shared->unique[i].finished == 0 && shared->unique[i].seen) {
            lost++;
            test_check(shared->lives[shared->unique[i].owner - 1].dead,
                       "unique event %u is nowhere, life %u has it", i,
                       shared->unique[i].owner - 1);
        }
    }

    /* a successor may die, too, and the log go round before its own looks */

    test_check(lost <= 2 + again / 20, "%u of %u redelivered were lost", lost,
               again);

    sluice_ring_stats(&ring, &stats);
    test_check(stats.attached == 1 && stats.detached == 0,
               "%u attached, %u detached at the end", stats.attached,
               stats.detached);

    printf("kill: %lu events; %u unique, %u redelivered, %u lost with their "
           "successors;\n    %lu busy, %lu full, %lu overruns of stopped "
           "readers\n",
           stats.seq, unique, again, lost, (uint64_t) shared->busy,
           (uint64_t) shared->full, (uint64_t) shared->overruns);
}


static void
report(double *recovery, uint64_t kills)
{
    uint32_t  i, n;
    double   *attaches;

    for (i = 0, n = 0; i < kills; i++) {
        if (recovery[i] >= 0) {
            recovery[n++] = recovery[i];
        }
    }

    kills = n;
    qsort(recovery, kills, sizeof(double), compare);

    attaches = calloc(lives + 1, sizeof(double));

    for (i = 1, n = 0; i <= lives; i++) {
        if (shared->lives[i].attached) {
            attaches[n++] = (double) shared->lives[i].attach_ms;
        }
    }

    qsort(attaches, n, sizeof(double), compare);

    printf("kill: wait for the lock after a death, ms: p50 %.3f, p99 %.3f, "
           "max %.3f\nkill: new process attached, ms: p50 %.3f, p99 %.3f, "
           "max %.3f (%u of %u lived to attach)\n",
           recovery[kills / 2], recovery[kills * 99 / 100],
           recovery[kills - 1], attaches[n / 2], attaches[n * 99 / 100],
           attaches[n - 1], n, lives);

    free(attaches);
}


int
main(void)
{
    int         i;
    double      begun, *recovery;
    uint64_t    k, kills, missed;
    process_t  *p;

    state = test_seed("kill");
    kills = test_env("KILLS", 2000);
    count = (int) test_env("PROCESSES", 5);
    paused = (int) test_env("STALL", test_below(&state, 2));
    recovery = calloc(kills, sizeof(double));
    begun = test_now();

    test_check(count > 0 && count <= KILL_MAX, "PROCESSES");

    shared = mmap(NULL, sizeof(shared_t), PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    test_check(shared != MAP_FAILED, "mmap");
    last = calloc(KILL_LIVES, sizeof(*last));

    for (i = 0; i < TEST_SLOTS; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK);
    }

    /* half of the runs with a stall limit that stopped readers run into */

    test_check(sluice_ring_create(&blank, KILL_SIZE, TEST_SLOTS,
                                  paused ? 60 : TEST_FOR_EVER_MS)
               == SLUICE_OK, "create");
    sluice_ring_set_wake(&blank, sluice_ring_wake_fds, fds);
    sluice_ring_set_redeliver(&blank, inherit, NULL);

    ring = blank;
    witness = 1;
    test_check(sluice_ring_attach(&ring, 0, SLUICE_RING_AGENT, &missed)
               == SLUICE_OK, "attach");

    test_check(sluice_ring_generation(&ring, (uint32_t) count, &generation)
               == SLUICE_OK, "generation");

    for (i = 0; i < count; i++) {
        processes[i].worker = (uint16_t) i;
        spawn(&processes[i]);
    }

    for (k = 0; k < kills; k++) {
        watch(test_below(&state, 4) ? test_below(&state, 2000)
                                    : test_below(&state, 8000));
        (void) resume(0);
        pass_on();

        p = &processes[test_below(&state, (uint64_t) count)];

        if (test_below(&state, 40) == 0 && !p->stopped_until) {
            kill(p->pid, SIGSTOP);
            p->stopped_until = test_now()
                               + (double) test_below(&state, 300) / 1e3;
            p = &processes[(p - processes + 1) % count];
        }

        if (test_below(&state, 200) == 0) {
            reload();
        }

        kill(p->pid, SIGKILL);
        reap(p, 1);
        spawn(p);

        recovery[k] = recover();
    }

    (void) resume(1);
    shared->quiet = 1;
    watch(200000);
    pass_on();
    watch(200000);
    shared->leave = 1;
    (void) recover();

    for (i = 0; i < count; i++) {
        reap(&processes[i], 0);
    }

    while (read_some(1) > 0) { /* void */ }

    settle();
    report(recovery, kills);

    sluice_ring_detach(&ring);

    printf("kill: %lu kills of %d processes in %.1f s%s\n", kills, count,
           test_now() - begun, paused ? ", stall limit 60 ms" : "");

    return 0;
}
