
/*
 * The spool: beside a queue that remembers all, while the lock is held, with
 * memory that others write, and under kill -9 of writers and readers.
 *
 * Long on purpose: all of these put and check the same entries.
 *
 *     OPS    of the model (50000)
 *     KILLS  how many (100)
 *     SEED   of everything random
 */


#include "spool_area.h"
#include "support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define SIZE     SLUICE_SPOOL_MIN
#define QUEUE    8192
#define WRITERS  4


typedef struct {
    uint64_t          number;
    uint32_t          length[SLUICE_SPOOL_TEXTS];
} written_t;


/* What a writer says of itself, so that its death tells nothing wrong. */

typedef struct {
    _Atomic uint64_t  asked;        /* the entry begun last */
    _Atomic uint64_t  accepted;     /* the last that returned SLUICE_OK */
} writer_t;


typedef struct {
    writer_t          writers[WRITERS];
    _Atomic uint64_t  read[WRITERS];
    _Atomic uint64_t  twice;        /* entries that were read again */
    _Atomic uint64_t  lives;        /* of the reader */
    _Atomic int       quiet;
} shared_t;


static uint64_t  seed;


static void *
memory(size_t size)
{
    void  *base;

    base = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
                0);
    test_check(base != MAP_FAILED, "mmap");

    return base;
}


static void
make(sluice_spool_t *spool)
{
    void  *base;

    base = memory(SIZE);

    test_check(sluice_spool_attach(spool, base, SIZE) == SLUICE_VERSION,
               "zeroes are no spool");
    test_check(sluice_spool_init(base, SIZE) == SLUICE_OK, "init");
    test_check(sluice_spool_attach(spool, base, SIZE - 8) == SLUICE_VERSION,
               "of another size");
    test_check(sluice_spool_attach(spool, base, SIZE) == SLUICE_OK, "attach");
}


/* Texts that follow from a number and their lengths. */

static int
put(sluice_spool_t *spool, const written_t *w)
{
    int                    i;
    static uint8_t         text[SLUICE_SPOOL_TEXTS][SIZE];
    sluice_spool_entry_t   entry;

    for (i = 0; i < SLUICE_SPOOL_TEXTS; i++) {
        memset(text[i], (int) (w->number + (uint64_t) i), w->length[i]);
        entry.data[i] = w->length[i] ? text[i] : NULL;
        entry.length[i] = w->length[i];
    }

    return sluice_spool_write(spool, &entry);
}


static void
check(const sluice_spool_t *spool, const sluice_spool_found_t *found,
    const written_t *w)
{
    int       i;
    uint8_t  *p, *text;
    uint32_t  j;
    uint64_t  total, part;

    test_check(memcmp(found->length, w->length, sizeof(w->length)) == 0,
               "lengths of %lu", w->number);

    text = malloc(found->length[0] + found->length[1] + found->length[2] + 1);
    total = (uint64_t) found->length[0] + found->length[1] + found->length[2];
    part = w->number % (total + 1);
    sluice_spool_copy(spool, found, 0, part, text);
    sluice_spool_copy(spool, found, part, total - part, text + part);

    for (i = 0, p = text; i < SLUICE_SPOOL_TEXTS; i++) {
        for (j = 0; j < w->length[i]; j++, p++) {
            test_check(*p == (uint8_t) (w->number + (uint64_t) i),
                       "byte %u of text %d of %lu", j, i, w->number);
        }
    }

    free(text);
}


static void
model(void)
{
    int                    rc;
    uint64_t               ops, state, first, last, used, written, full, large;
    uint64_t               texts;
    written_t              w, *queue;
    sluice_spool_t         spool;
    sluice_spool_found_t   found;
    sluice_spool_stats_t   stats;

    make(&spool);
    queue = calloc(QUEUE, sizeof(written_t));
    state = seed;
    first = last = used = written = full = large = texts = 0;

    test_check(sluice_spool_enter(&spool) == SLUICE_OK, "enter");
    test_check(sluice_spool_enter(&spool) == SLUICE_BUSY, "enter twice");
    test_check(sluice_spool_is_wanted(&spool), "wanted");

    for (ops = test_env("OPS", 50000); ops > 0; ops--) {

        if (test_below(&state, 100) < 52) {
            w.number = ++written;
            w.length[0] = (uint32_t) test_below(&state, 20);
            w.length[1] = (uint32_t) test_below(&state, 40);
            w.length[2] = (uint32_t) test_below(&state,
                                   test_below(&state, 50) ? 2000 : 20000);

            rc = put(&spool, &w);

            if (rc == SLUICE_OK) {
                queue[last++ % QUEUE] = w;
                texts += w.length[2] > 0;
                used += (sizeof(sluice_spool_head_t) + w.length[0]
                         + w.length[1] + w.length[2] + 7) / 8 * 8;
            }

            full += rc == SLUICE_FULL;
            large += rc == SLUICE_LARGE;
            test_check(rc == SLUICE_OK || rc == SLUICE_FULL
                       || rc == SLUICE_LARGE, "%d", rc);
            continue;
        }

        rc = sluice_spool_next(&spool, &found);
        test_check((rc == SLUICE_NONE) == (first == last), "%d of %lu", rc,
                   last - first);

        if (rc == SLUICE_NONE) {
            continue;
        }

        w = queue[first % QUEUE];
        check(&spool, &found, &w);

        /* in hand it stays until it is handed on */

        if (test_below(&state, 10)) {
            sluice_spool_advance(&spool, &found);
            used -= (sizeof(sluice_spool_head_t) + w.length[0] + w.length[1]
                     + w.length[2] + 7) / 8 * 8;
            first++;
        }

        sluice_spool_stats(&spool, &stats);
        test_check(stats.used == used, "%lu, not %lu", stats.used, used);
    }

    sluice_spool_stats(&spool, &stats);
    test_check(stats.written == texts && stats.full == full
               && stats.large == large && stats.damaged == 0, "counts");
    test_check(full && large, "it was never full");

    sluice_spool_leave(&spool);
    test_check(sluice_spool_enter(&spool) == SLUICE_OK, "enter again");
    test_check(!sluice_spool_is_wanted(&spool), "not wanted");

    free(queue);
}


/* The lock is held and let go at random: all that was taken comes in order. */

static void
waiting(void)
{
    int                    rc, is_locked;
    uint64_t               n, state, first, last, refused;
    written_t              w, *queue;
    static uint8_t         memory_of[10000];
    sluice_spool_t         spool;
    sluice_spool_found_t   found;
    sluice_spool_stats_t   stats;

    make(&spool);
    sluice_spool_hold(&spool, memory_of, sizeof(memory_of));
    queue = calloc(QUEUE, sizeof(written_t));
    state = seed + 3;
    is_locked = 0;
    first = last = refused = 0;

    for (n = 1; n <= 3000; n++) {
        w.number = n;
        w.length[0] = (uint32_t) test_below(&state, 20);
        w.length[1] = (uint32_t) test_below(&state, 40);
        w.length[2] = (uint32_t) (1 + test_below(&state, 2000));

        rc = put(&spool, &w);
        test_check(rc == SLUICE_OK || (is_locked && rc == SLUICE_BUSY), "%d",
                   rc);
        test_check(is_locked || spool.held_used == 0, "some still wait");
        test_check(spool.held_used <= sizeof(memory_of), "beyond its memory");

        if (rc == SLUICE_OK) {
            queue[last++ % QUEUE] = w;
        }

        refused += rc == SLUICE_BUSY;

        if (test_below(&state, 5) == 0) {
            is_locked = !is_locked;
            test_check((is_locked
                        ? pthread_mutex_lock(&spool.area->writers)
                        : pthread_mutex_unlock(&spool.area->writers)) == 0,
                       "the lock");

            rc = spool.held_used && is_locked ? SLUICE_BUSY : SLUICE_OK;
            test_check(sluice_spool_flush(&spool, 0) == rc, "flush");
        }

        while (sluice_spool_next(&spool, &found) == SLUICE_OK) {
            check(&spool, &found, &queue[first++ % QUEUE]);
            sluice_spool_advance(&spool, &found);
        }

        test_check(is_locked || first == last, "%lu of %lu", first, last);
    }

    sluice_spool_stats(&spool, &stats);
    test_check(refused && stats.busy == refused && stats.full == 0
               && stats.written == first, "counts");

    if (!is_locked) {
        (void) pthread_mutex_lock(&spool.area->writers);
    }

    n = spool.held_count;
    w.length[2] = 1;
    test_check(put(&spool, &w) == SLUICE_OK && spool.held_count == n + 1,
               "one waits");
    sluice_spool_give_up(&spool);
    sluice_spool_stats(&spool, &stats);
    test_check(stats.busy == refused + n + 1 && spool.held_used == 0,
               "%lu given up", stats.busy - refused);

    (void) pthread_mutex_unlock(&spool.area->writers);
    test_check(sluice_spool_next(&spool, &found) == SLUICE_NONE, "what was");

    free(queue);
}


/* Whatever stands in the memory, but for the mutexes. */

static void
hostile(void)
{
    int                    i;
    void                  *text;
    uint64_t               n, state, at;
    written_t              w;
    sluice_spool_t         spool;
    sluice_spool_area_t   *area;
    sluice_spool_found_t   found;

    make(&spool);
    area = spool.area;
    state = seed + 1;

    for (n = 0; n < 5000; n++) {
        w.number = n;

        for (i = 0; i < SLUICE_SPOOL_TEXTS; i++) {
            w.length[i] = (uint32_t) test_below(&state, 3000);
        }

        (void) put(&spool, &w);

        switch (test_below(&state, 6)) {

        case 0:
            atomic_store(&area->tail, test_random(&state));
            break;

        case 1:
            atomic_store(&area->head, test_random(&state));
            break;

        case 2:
            atomic_fetch_add(&area->tail, test_below(&state, 100));
            break;

        default:
            at = atomic_load(&area->head) % spool.size;
            spool.data[(at + test_below(&state, 24)) % spool.size] =
                                                (uint8_t) test_random(&state);
        }

        while (sluice_spool_next(&spool, &found) == SLUICE_OK) {
            text = malloc((size_t) found.length[0] + found.length[1]
                          + found.length[2] + 1);
            sluice_spool_copy(&spool, &found, 0,
                              (uint64_t) found.length[0] + found.length[1]
                              + found.length[2], text);
            sluice_spool_advance(&spool, &found);
            free(text);
        }

        /* and then it goes on */

        w.number = n;
        test_check(put(&spool, &w) == SLUICE_OK, "it is stuck");
        test_check(sluice_spool_next(&spool, &found) == SLUICE_OK, "nothing");
        check(&spool, &found, &w);
        sluice_spool_advance(&spool, &found);
    }
}


static void
writer(sluice_spool_t *spool, shared_t *shared, uint32_t me)
{
    uint8_t                payload[1000];
    uint64_t               state;
    sluice_spool_entry_t   entry;

    state = seed + 17 * me + atomic_load(&shared->writers[me].asked);
    memset(&entry, 0, sizeof(entry));

    while (!atomic_load(&shared->quiet)) {
        entry.data[SLUICE_SPOOL_TEXT] = payload;
        entry.length[SLUICE_SPOOL_TEXT] = (uint32_t) (TEST_HEAD
                                                + test_below(&state, 900));

        /* what a life before has begun may have come: numbers go on */

        atomic_fetch_add(&shared->writers[me].asked, 1);
        test_fill(payload, entry.length[SLUICE_SPOOL_TEXT], me,
                  atomic_load(&shared->writers[me].asked));

        if (sluice_spool_write(spool, &entry) == SLUICE_OK) {
            atomic_store(&shared->writers[me].accepted,
                         atomic_load(&shared->writers[me].asked));
        }
    }

    _exit(0);
}


static void
read_all(const sluice_spool_t *spool, shared_t *shared)
{
    uint8_t               payload[1000];
    uint64_t              last;
    test_head_t           head;
    sluice_spool_found_t  found;

    while (sluice_spool_next(spool, &found) == SLUICE_OK) {
        test_check(found.length[SLUICE_SPOOL_TEXT] <= sizeof(payload),
                   "%u bytes", found.length[SLUICE_SPOOL_TEXT]);

        sluice_spool_copy(spool, &found, 0, found.length[SLUICE_SPOOL_TEXT],
                          payload);
        test_check(test_whole(payload, found.length[SLUICE_SPOOL_TEXT], &head)
                   && head.who < WRITERS, "a torn entry");

        last = atomic_load(&shared->read[head.who]);

        /* only what a reader died with comes again */

        if (head.number == last) {
            atomic_fetch_add(&shared->twice, 1);

        } else {
            test_check(head.number > last, "%lu of writer %lu after %lu",
                       head.number, head.who, last);
        }

        atomic_store(&shared->read[head.who], head.number);
        sluice_spool_advance(spool, &found);
    }
}


static void
reader(const sluice_spool_t *spool, shared_t *shared)
{
    atomic_fetch_add(&shared->lives, 1);

    while (sluice_spool_enter(spool) != SLUICE_OK) {
        usleep(100);
    }

    for ( ;; ) {
        read_all(spool, shared);
        sluice_spool_sleep(spool);
    }
}


static pid_t
begin(sluice_spool_t *spool, shared_t *shared, uint32_t who)
{
    pid_t  pid;

    pid = test_fork();

    if (pid == 0) {
        if (who == WRITERS) {
            reader(spool, shared);
        } else {
            writer(spool, shared, who);
        }
    }

    /* as a process that begins does: who died may owe a wake */

    sluice_spool_wake(spool);

    return pid;
}


static void
kills(void)
{
    int              status;
    pid_t            pids[WRITERS + 1];
    double           until;
    uint32_t         i;
    uint64_t         n, state;
    shared_t        *shared;
    sluice_spool_t   spool;

    make(&spool);
    shared = memory(sizeof(shared_t));
    state = seed + 2;

    for (i = 0; i <= WRITERS; i++) {
        pids[i] = begin(&spool, shared, i);
    }

    for (n = test_env("KILLS", 100); n > 0; n--) {
        usleep((useconds_t) (1000 + test_below(&state, 9000)));

        i = (uint32_t) test_below(&state, WRITERS + 1);
        (void) kill(pids[i], SIGKILL);
        test_check(waitpid(pids[i], &status, 0) == pids[i]
                   && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                   "process %u ended by itself", i);
        pids[i] = begin(&spool, shared, i);
    }

    atomic_store(&shared->quiet, 1);

    for (i = 0; i < WRITERS; i++) {
        (void) waitpid(pids[i], &status, 0);
        test_check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "writer %u",
                   i);
    }

    sluice_spool_wake(&spool);

    for (i = 0; i < WRITERS; i++) {
        until = test_now() + TEST_FOR_EVER_S;

        while (atomic_load(&shared->read[i])
               < atomic_load(&shared->writers[i].accepted))
        {
            test_check(test_now() < until, "writer %u: %lu was not read", i,
                       atomic_load(&shared->writers[i].accepted));
            usleep(1000);
        }
    }

    (void) kill(pids[WRITERS], SIGKILL);
    (void) waitpid(pids[WRITERS], &status, 0);

    test_check(atomic_load(&shared->twice) <= atomic_load(&shared->lives),
               "%lu twice", atomic_load(&shared->twice));
    test_check(sluice_spool_enter(&spool) == SLUICE_OK, "a dead one reads");
}


int
main(void)
{
    seed = test_seed("spool");

    model();
    waiting();
    hostile();
    kills();

    return 0;
}
