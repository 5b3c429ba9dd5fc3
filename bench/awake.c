/*
 * A library to preload into what puts load on a server, and into what stands
 * behind it: they look for events again and again, and give the core to each
 * other in between, where they would sleep.
 *
 * Both share a core, and the server that is measured has the other one.  What
 * it writes wakes them, and a wake is the CPU time of the one who writes: a
 * microsecond or more on a virtual machine, much of it for the interrupt that
 * gets the other core out of its sleep.  Beside a fast server that core is
 * always busy and nothing has to be woken; beside a slower one it sleeps now
 * and then, and each time the slower one pays.  So its requests would cost
 * more than what it does for them.
 *
 * After a while without events they do sleep: between two slices of load.  A
 * signal may have come in that while, which would have ended a sleep: so who
 * waits is told that it was interrupted, looks at what signals have set, and
 * waits again.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>


#define AWAKE_MS  20


typedef int (*wait_pt)(int epoll, struct epoll_event *events, int most,
    int timeout);


static long
now_ms(void)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


int
epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    int                  found;
    long                 end;
    static wait_pt       wait;
    static __thread int  is_tired;

    if (wait == NULL) {
        wait = (wait_pt) dlsym(RTLD_NEXT, "epoll_wait");

        if (wait == NULL) {
            abort();
        }
    }

    if (is_tired) {
        is_tired = 0;
        return wait(epoll, events, most, timeout);
    }

    found = wait(epoll, events, most, 0);

    if (found || timeout == 0) {
        return found;
    }

    end = now_ms() + (timeout >= 0 && timeout < AWAKE_MS ? timeout : AWAKE_MS);

    do {
        (void) sched_yield();
        found = wait(epoll, events, most, 0);
    } while (found == 0 && now_ms() < end);

    if (found || (timeout >= 0 && timeout <= AWAKE_MS)) {
        return found;
    }

    is_tired = 1;
    errno = EINTR;

    return -1;
}
