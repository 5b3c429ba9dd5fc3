/*
 * Preloaded into a server: every writev takes SLOW_NS nanoseconds longer, all
 * of it CPU time.  bench/selftest.py measures a build that is slower by as
 * much as it says: what changes nothing else leaves the JIT's code as it was.
 *
 * It counts turns of a loop that is timed when the server starts: a look at
 * the clock would cost as much as what is to be spent.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#define SLOW_TURNS   20000
#define SLOW_ROUNDS  50


static long  slow_turns;


static double
slow_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static void
slow_spin(long turns)
{
    while (turns-- > 0) {
        __asm__ volatile("" ::: "memory");
    }
}


__attribute__((constructor)) static void
slow_init(void)
{
    int     i;
    double  start, spent, least;

    least = 1e12;

    for (i = 0; i < SLOW_ROUNDS; i++) {
        start = slow_now();
        slow_spin(SLOW_TURNS);
        spent = slow_now() - start;

        if (spent < least) {
            least = spent;
        }
    }

    slow_turns = (long) (SLOW_NS * SLOW_TURNS / least);
}


ssize_t
writev(int fd, const struct iovec *vector, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);

    if (real == NULL) {
        real = (ssize_t (*)(int, const struct iovec *, int))
               dlsym(RTLD_NEXT, "writev");
    }

    slow_spin(slow_turns);

    return real(fd, vector, count);
}
