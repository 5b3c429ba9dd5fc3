/*
 * A load generator that keeps to a timetable.
 *
 * Request number n is due at the start + n / rate, whatever became of the ones
 * before.  It goes out on a connection that is free; if none is, it waits,
 * and its latency is counted from when it was due.  A server that stands still
 * for half a second is so found to have made every request wait that was due
 * meanwhile, where a generator that waits for an answer before it asks again
 * counts one slow answer ("coordinated omission").
 *
 *     pace <address> <port> <file> <connections> <rate> <seconds>
 *
 * The file has whole request heads, one after the other, which are sent in
 * turn.  Answers need a Content-Length.  Prints the line that wrk.lua prints.
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACE_BUFFER      65536
#define PACE_EVENTS      256
#define PACE_PATIENCE_S  2      /* for answers after the last request */
#define PACE_MAX_CONNS   10000

/* Counts of latencies: each power of two of microseconds in 256 steps. */
#define PACE_STEPS       256
#define PACE_POWERS      32


typedef struct {
    int         fd;
    bool        busy;
    uint64_t    due_ns;
    size_t      have;           /* bytes of the answer's head so far */
    size_t      left;           /* bytes of its body to come */
    bool        in_body;
    char        head[4096];
} pace_conn_t;


typedef struct {
    const char  *start;
    size_t       length;
} pace_request_t;


static struct sockaddr_in  pace_address;
static pace_conn_t        *pace_conns;
static int                *pace_free;       /* a stack of idle connections */
static int                 pace_nfree;
static int                 pace_epoll;
static pace_request_t     *pace_requests;
static size_t              pace_nrequests;
static uint64_t            pace_counts[PACE_POWERS][PACE_STEPS];

static uint64_t  pace_done, pace_bytes, pace_bad_status;
static uint64_t  pace_bad_connect, pace_bad_read, pace_bad_write;


static uint64_t
pace_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static void
pace_count(uint64_t us)
{
    int       power;
    uint64_t  step;

    power = 0;

    while (power < PACE_POWERS - 1 && us >> power >= PACE_STEPS) {
        power++;
    }

    step = us >> power;
    pace_counts[power][step < PACE_STEPS ? step : PACE_STEPS - 1]++;
}


static uint64_t
pace_percentile(double share)
{
    int       power, step;
    uint64_t  seen, wanted;

    wanted = (uint64_t) (share * (double) pace_done);
    seen = 0;

    for (power = 0; power < PACE_POWERS; power++) {
        for (step = 0; step < PACE_STEPS; step++) {
            seen += pace_counts[power][step];

            if (seen > wanted) {
                /* the middle of the step */
                return ((uint64_t) step << power) + ((1ull << power) >> 1);
            }
        }
    }

    return 0;
}


static int
pace_connect(pace_conn_t *c)
{
    int                 one;
    struct epoll_event  event;

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    c->have = 0;
    c->in_body = false;
    c->busy = false;

    if (c->fd == -1
        || connect(c->fd, (struct sockaddr *) &pace_address,
                   sizeof(pace_address)) == -1)
    {
        pace_bad_connect++;
        return -1;
    }

    one = 1;
    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void) fcntl(c->fd, F_SETFL, O_NONBLOCK);

    event.events = EPOLLIN;
    event.data.ptr = c;

    if (epoll_ctl(pace_epoll, EPOLL_CTL_ADD, c->fd, &event) == -1) {
        return -1;
    }

    pace_free[pace_nfree++] = (int) (c - pace_conns);

    return 0;
}


/* A connection that the server closed: what it owed is an error. */

static int
pace_reconnect(pace_conn_t *c)
{
    int  i;

    if (c->busy) {
        pace_bad_read++;

    } else {
        for (i = 0; i < pace_nfree; i++) {
            if (pace_free[i] == (int) (c - pace_conns)) {
                pace_free[i] = pace_free[--pace_nfree];
                break;
            }
        }
    }

    (void) close(c->fd);

    return pace_connect(c);
}


static void
pace_answered(pace_conn_t *c)
{
    pace_count((pace_now() - c->due_ns) / 1000);
    pace_done++;

    c->busy = false;
    c->in_body = false;
    c->have = 0;
    pace_free[pace_nfree++] = (int) (c - pace_conns);
}


/* Returns the bytes of `data` that belong to the answer's head. */

static size_t
pace_head(pace_conn_t *c, const char *data, size_t length)
{
    char    *end, *field;
    size_t   taken, room, before;

    before = c->have;
    room = sizeof(c->head) - 1 - c->have;
    taken = length < room ? length : room;

    memcpy(c->head + c->have, data, taken);
    c->have += taken;
    c->head[c->have] = '\0';

    end = strstr(c->head, "\r\n\r\n");

    if (end == NULL) {
        return taken;
    }

    if (strncmp(c->head, "HTTP/1.1 2", 10) != 0
        && strncmp(c->head, "HTTP/1.1 3", 10) != 0)
    {
        pace_bad_status++;
    }

    field = strcasestr(c->head, "\r\ncontent-length:");
    c->left = field != NULL && field < end
              ? strtoul(field + sizeof("\r\ncontent-length:") - 1, NULL, 10)
              : 0;
    c->in_body = true;

    return (size_t) (end + 4 - c->head) - before;
}


static int
pace_read(pace_conn_t *c)
{
    char     buffer[PACE_BUFFER];
    size_t   at, size;
    ssize_t  n;

    n = recv(c->fd, buffer, sizeof(buffer), 0);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }

    if (n <= 0) {
        return pace_reconnect(c);
    }

    pace_bytes += (uint64_t) n;
    at = 0;

    if (!c->in_body) {
        at = pace_head(c, buffer, (size_t) n);
    }

    if (c->in_body) {
        size = (size_t) n - at;
        c->left -= size < c->left ? size : c->left;

        if (c->left == 0 && c->busy) {
            pace_answered(c);
        }
    }

    return 0;
}


static void
pace_send(uint64_t number, uint64_t due_ns)
{
    ssize_t          n;
    pace_conn_t     *c;
    pace_request_t  *r;

    c = &pace_conns[pace_free[--pace_nfree]];
    r = &pace_requests[number % pace_nrequests];

    c->busy = true;
    c->due_ns = due_ns;

    n = send(c->fd, r->start, r->length, MSG_NOSIGNAL);

    if (n != (ssize_t) r->length) {
        pace_bad_write++;
        (void) pace_reconnect(c);
    }
}


static int
pace_load(const char *path)
{
    int      fd;
    char    *data, *at, *end;
    off_t    size;

    fd = open(path, O_RDONLY);

    if (fd == -1) {
        return -1;
    }

    size = lseek(fd, 0, SEEK_END);
    data = calloc(1, (size_t) size + 1);

    if (data == NULL || pread(fd, data, (size_t) size, 0) != size) {
        return -1;
    }

    (void) close(fd);

    pace_requests = calloc((size_t) size / 4 + 1, sizeof(pace_request_t));

    if (pace_requests == NULL) {
        return -1;
    }

    for (at = data; (end = strstr(at, "\r\n\r\n")) != NULL; at = end + 4) {
        pace_requests[pace_nrequests].start = at;
        pace_requests[pace_nrequests++].length = (size_t) (end + 4 - at);
    }

    return pace_nrequests > 0 ? 0 : -1;
}


/* Sends what is due; returns nanoseconds until the next, -1: no more. */

static int64_t
pace_due(uint64_t start, uint64_t count, double rate, uint64_t *next)
{
    uint64_t  now, due;

    now = pace_now();

    while (*next < count) {
        due = start + (uint64_t) ((double) *next * 1e9 / rate);

        if (due > now) {
            return (int64_t) (due - now);
        }

        if (pace_nfree == 0) {
            /* the next answer frees one */
            return 1000000000;
        }

        pace_send((*next)++, due);
    }

    return -1;
}


static void
pace_run(uint64_t count, double rate)
{
    int                 i, n;
    int64_t             wait;
    uint64_t            start, end, next;
    struct timespec     timeout;
    struct epoll_event  events[PACE_EVENTS];

    start = pace_now();
    end = start + (uint64_t) ((double) count / rate * 1e9)
          + PACE_PATIENCE_S * 1000000000ull;
    next = 0;

    while (pace_now() < end) {
        wait = pace_due(start, count, rate, &next);

        if (wait == -1) {
            if (pace_done + pace_bad_read + pace_bad_write >= count) {
                break;
            }

            wait = 10000000;
        }

        timeout.tv_sec = wait / 1000000000;
        timeout.tv_nsec = wait % 1000000000;

        n = epoll_pwait2(pace_epoll, events, PACE_EVENTS, &timeout, NULL);

        for (i = 0; i < n; i++) {
            if (pace_read(events[i].data.ptr) == -1) {
                return;
            }
        }
    }

    printf("slice {\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"duration_us\": %" PRIu64 ", \"p50_us\": %" PRIu64
           ", \"p90_us\": %" PRIu64 ", \"p99_us\": %" PRIu64
           ", \"p999_us\": %" PRIu64 ", \"connect\": %" PRIu64
           ", \"read\": %" PRIu64 ", \"write\": %" PRIu64
           ", \"timeout\": %" PRIu64 ", \"status\": %" PRIu64 "}\n",
           pace_done, pace_bytes, (pace_now() - start) / 1000,
           pace_percentile(0.5), pace_percentile(0.9), pace_percentile(0.99),
           pace_percentile(0.999), pace_bad_connect, pace_bad_read,
           pace_bad_write,
           count - pace_done - pace_bad_read - pace_bad_write,
           pace_bad_status);
}


int
main(int argc, char **argv)
{
    int     i, connections;
    double  rate;

    if (argc != 7) {
        fprintf(stderr, "usage: pace address port file connections rate "
                        "seconds\n");
        return 2;
    }

    connections = atoi(argv[4]);
    rate = atof(argv[5]);

    pace_address.sin_family = AF_INET;
    pace_address.sin_port = htons((uint16_t) atoi(argv[2]));

    if (inet_pton(AF_INET, argv[1], &pace_address.sin_addr) != 1
        || connections < 1 || connections > PACE_MAX_CONNS || rate <= 0
        || pace_load(argv[3]) == -1)
    {
        fprintf(stderr, "pace: an argument cannot be used\n");
        return 2;
    }

    pace_epoll = epoll_create1(0);
    pace_conns = calloc((size_t) connections, sizeof(pace_conn_t));
    pace_free = calloc((size_t) connections, sizeof(int));

    if (pace_epoll == -1 || pace_conns == NULL || pace_free == NULL) {
        return 1;
    }

    for (i = 0; i < connections; i++) {
        if (pace_connect(&pace_conns[i]) == -1) {
            fprintf(stderr, "pace: cannot connect\n");
            return 1;
        }
    }

    pace_run((uint64_t) (rate * atof(argv[6])), rate);

    return 0;
}
