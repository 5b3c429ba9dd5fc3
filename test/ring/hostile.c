
/*
 * A worker that somebody has taken over writes whatever it likes into the log,
 * while the master, who may be root, does there all that it ever does.  The
 * master must live, lock nothing, and nothing of its own may change.
 *
 *     SECONDS    for how long (3)
 */


#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


#define HOSTILE_SIZE    (64u << 10)
#define HOSTILE_CANARY  4096


static uint8_t        *canary;
static uint64_t        state;
static pid_t           master;
static sluice_ring_t   ring;


/* The linker sends every call of these here (--wrap). */

int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_pthread_mutex_consistent(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_consistent(pthread_mutex_t *mutex);


int
__wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    test_check(getpid() != master, "the master locks");

    return __real_pthread_mutex_trylock(mutex);
}


int
__wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    test_check(getpid() != master, "the master unlocks");

    return __real_pthread_mutex_unlock(mutex);
}


int
__wrap_pthread_mutex_consistent(pthread_mutex_t *mutex)
{
    test_check(getpid() != master, "the master repairs");

    return __real_pthread_mutex_consistent(mutex);
}


/* What hurts whoever takes it for a pointer, an index, a size or a count. */

static uint64_t
hostile_word(void)
{
    switch (test_below(&state, 8)) {

    case 0:
        return (uint64_t) (uintptr_t) canary
               + test_below(&state, HOSTILE_CANARY);

    case 1:
        return (uint64_t) (uintptr_t) &ring
               + test_below(&state, sizeof(ring));

    case 2:
        return 0;

    case 3:
        return UINT64_MAX - test_below(&state, 16);

    case 4:
        return 0xdeadbeef00000000u + test_below(&state, 1u << 20);

    case 5:
        return 1ull << test_below(&state, 64);

    case 6:
        /* the owner of a mutex: the master itself */
        return ((uint64_t) master << 32) | (uint64_t) master;

    default:
        return test_random(&state);
    }
}


static void
hostile_worker(void)
{
    size_t             words, begin, i, n;
    _Atomic uint64_t  *word;

    word = ring.map;
    words = (size_t) (ring.data - (uint8_t *) ring.map) / 8;

    for ( ;; ) {
        begin = test_below(&state, 2) ? 0 : test_below(&state, words);
        n = test_below(&state, words - begin) + 1;

        for (i = begin; i < begin + n; i++) {
            atomic_store_explicit(&word[i], hostile_word(),
                                  memory_order_relaxed);
        }
    }
}


/* A start, reloads, binary upgrades. */

static void
hostile_master(void)
{
    int                  rc;
    double               start, cpu;
    uint32_t             generation;
    sluice_ring_t        before, successor;

    before = ring;
    start = test_now();
    cpu = test_cpu();

    sluice_ring_set_stall(&ring, (uint32_t) test_random(&state));

    rc = sluice_ring_generation(&ring, (uint32_t) hostile_word(),
                                &generation);
    test_check(rc == SLUICE_OK || rc == SLUICE_BUSY, "generation: %d", rc);

    rc = sluice_ring_open(&successor, ring.fd);

    if (rc == SLUICE_OK) {
        test_check(successor.size == ring.size
                   && successor.mapped == ring.mapped, "another size");
        (void) sluice_ring_generation(&successor, 2, &generation);
        sluice_ring_close(&successor);
    }

    test_check(test_cpu() - cpu < 0.5 && test_now() - start < TEST_FOR_EVER_S,
               "it took %f s of the CPU", test_cpu() - cpu);
    test_check(memcmp(&before, &ring, sizeof(ring)) == 0, "the master's own");
}


int
main(void)
{
    int       status;
    pid_t     pid;
    double    end;
    uint64_t  i, turns, missed;

    state = test_seed("hostile");
    master = getpid();

    canary = mmap(NULL, HOSTILE_CANARY, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    test_check(canary != MAP_FAILED, "mmap");
    memset(canary, 0xa5, HOSTILE_CANARY);

    test_check(sluice_ring_create(&ring, HOSTILE_SIZE, TEST_SLOTS, 1000)
               == SLUICE_OK, "create");

    pid = test_fork();

    if (pid == 0) {
        /* it was an honest one once */
        (void) sluice_ring_attach(&ring, 0, 0, &missed);
        hostile_worker();
    }

    turns = 0;
    end = test_now() + (double) test_env("SECONDS", 3);

    do {
        hostile_master();
        turns++;
    } while (test_now() < end);

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    test_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
               "the attack ended early: %x", status);

    for (i = 0; i < HOSTILE_CANARY; i++) {
        test_check(canary[i] == 0xa5, "byte %lu of the master's memory", i);
    }

    printf("hostile: a master lived through %lu reloads\n", turns);

    return 0;
}
