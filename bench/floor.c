/*
 * How fast a wakeup can be on this machine, now: eventfd and epoll between
 * bare processes, with nothing of nginx or Lua around them.  The floor of
 * events-latency, measured in turns with it.
 *
 *     floor <readers> <rate> <seconds>
 *
 * The writer stamps the time (CLOCK_MONOTONIC), then wakes every reader by a
 * write to the eventfd that it waits for in epoll_wait(), and sleeps in
 * epoll_wait() itself until the next one is due, as a worker of nginx does.
 * Prints the microseconds from each stamp to each reader's look at the clock,
 * one a line.
 */

#define _GNU_SOURCE

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define FLOOR_MAX_READERS  64
#define FLOOR_MAX_EVENTS   100000


typedef struct {
    _Atomic uint64_t  count;        /* events that were written */
    _Atomic uint64_t  stamp_ns;     /* when the last one was */
} floor_shared_t;


typedef struct {
    int        wake;                /* its eventfd */
    pid_t      pid;
    uint32_t  *late_ns;             /* of each event; shared with the writer */
} floor_reader_t;


static uint64_t
floor_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}


static void
floor_fail(const char *what)
{
    perror(what);
    exit(1);
}


static void *
floor_share(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
             0);
    if (p == MAP_FAILED) {
        floor_fail("mmap");
    }

    return p;
}


static int
floor_epoll(int fd)
{
    int                 ep;
    struct epoll_event  event;

    ep = epoll_create1(EPOLL_CLOEXEC);
    if (ep == -1) {
        floor_fail("epoll_create1");
    }

    if (fd != -1) {
        event.events = EPOLLIN|EPOLLET;
        event.data.fd = fd;

        if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) == -1) {
            floor_fail("epoll_ctl");
        }
    }

    return ep;
}


/* until the last event has come; one that comes late is not waited for */

static void
floor_read(floor_reader_t *reader, floor_shared_t *shared, uint64_t events)
{
    int                 ep;
    uint64_t            now, seen, ignored;
    struct epoll_event  event;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ep = floor_epoll(reader->wake);

    for (seen = 0; seen < events; /* void */) {

        if (epoll_wait(ep, &event, 1, -1) != 1) {
            continue;
        }

        now = floor_now();

        if (read(reader->wake, &ignored, sizeof(ignored)) == -1) {
            continue;
        }

        seen = atomic_load(&shared->count);
        reader->late_ns[seen - 1] = (uint32_t)
                                    (now - atomic_load(&shared->stamp_ns));
    }

    _exit(0);
}


static void
floor_write(floor_reader_t *readers, int n, floor_shared_t *shared,
    uint64_t events, uint64_t interval_ns)
{
    int                 ep, i, ms;
    uint64_t            due, now, event, one;
    struct epoll_event  none;

    one = 1;
    ep = floor_epoll(-1);
    due = floor_now();

    for (event = 1; event <= events; event++) {
        due += interval_ns;

        for (now = floor_now(); now < due; now = floor_now()) {
            ms = (int) ((due - now + 999999) / 1000000);
            epoll_wait(ep, &none, 1, ms);
        }

        atomic_store(&shared->stamp_ns, floor_now());
        atomic_store(&shared->count, event);

        for (i = 0; i < n; i++) {
            if (write(readers[i].wake, &one, sizeof(one)) == -1) {
                floor_fail("write");
            }
        }
    }
}


int
main(int argc, char **argv)
{
    int             i, n, status;
    double          rate, seconds;
    uint64_t        event, events;
    floor_shared_t  *shared;
    floor_reader_t  readers[FLOOR_MAX_READERS];

    n = argc == 4 ? atoi(argv[1]) : 0;
    rate = argc == 4 ? atof(argv[2]) : 0;
    seconds = argc == 4 ? atof(argv[3]) : 0;

    if (n < 1 || n > FLOOR_MAX_READERS || rate <= 0 || rate > 10000
        || seconds <= 0 || rate * seconds < 1
        || rate * seconds > FLOOR_MAX_EVENTS)
    {
        fprintf(stderr, "usage: floor <readers> <rate> <seconds>\n");
        return 2;
    }

    events = (uint64_t) (rate * seconds);
    shared = floor_share(sizeof(floor_shared_t));

    for (i = 0; i < n; i++) {
        readers[i].wake = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
        if (readers[i].wake == -1) {
            floor_fail("eventfd");
        }

        readers[i].late_ns = floor_share(events * sizeof(uint32_t));

        readers[i].pid = fork();
        if (readers[i].pid == -1) {
            floor_fail("fork");
        }

        if (readers[i].pid == 0) {
            floor_read(&readers[i], shared, events);
        }
    }

    floor_write(readers, n, shared, events, (uint64_t) (1e9 / rate));

    for (i = 0; i < n; i++) {
        if (waitpid(readers[i].pid, &status, 0) == -1 || status != 0) {
            fprintf(stderr, "floor: a reader has died\n");
            return 1;
        }

        for (event = 0; event < events; event++) {
            if (readers[i].late_ns[event] != 0) {
                printf("%.1f\n", readers[i].late_ns[event] / 1e3);
            }
        }
    }

    return 0;
}
