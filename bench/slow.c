/*
 * Preloaded into a server: every writev takes SLOW_NS nanoseconds longer, all
 * of it CPU time.  bench/selftest.py measures a build that is slower by as much
 * as it says: what changes nothing else leaves the JIT's code as it was.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>


static int64_t
slow_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


ssize_t
writev(int fd, const struct iovec *vector, int count)
{
    int64_t  until;

    static ssize_t (*real)(int, const struct iovec *, int);

    if (real == NULL) {
        real = (ssize_t (*)(int, const struct iovec *, int))
               dlsym(RTLD_NEXT, "writev");
    }

    until = slow_now() + SLOW_NS;

    while (slow_now() < until) {
        /* spin */
    }

    return real(fd, vector, count);
}
