
#include "support.h"

#include "../seed.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>


static const char  *test_name = "test";
static uint64_t     test_seed_used;


static double test_clock(clockid_t clock);
static uint64_t test_sum(const uint8_t *payload, uint32_t length);


void
test_failed(const char *file, int line, const char *what, const char *format,
    ...)
{
    va_list  args;

    fflush(stdout);

    fprintf(stderr, "%s FAILED at %s:%d (%s), pid %d, SEED=%llu: ", test_name,
            file, line, what, (int) getpid(),
            (unsigned long long) test_seed_used);

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);

    fprintf(stderr, "\n");

    _exit(1);
}


uint64_t
test_env(const char *name, uint64_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}


uint64_t
test_seed(const char *name)
{
    uint64_t     own;
    const char  *c;

    own = TEST_SEED;

    for (c = name; *c; c++) {
        own = (own * 31 + (uint8_t) *c) % 2147483647;
    }

    test_name = name;
    test_seed_used = test_env("SEED", own);

    printf("%s: SEED=%llu\n", name, (unsigned long long) test_seed_used);
    fflush(stdout);

    return test_seed_used;
}


pid_t
test_fork(void)
{
    pid_t  parent, pid;

    parent = getpid();
    pid = fork();
    test_check(pid != -1, "fork: %s", strerror(errno));

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);

        if (getppid() != parent) {
            _exit(1);
        }
    }

    return pid;
}


uint64_t
test_random(uint64_t *state)
{
    uint64_t  z;

    z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;

    return z ^ (z >> 31);
}


uint64_t
test_below(uint64_t *state, uint64_t limit)
{
    return test_random(state) % limit;
}


double
test_now(void)
{
    return test_clock(CLOCK_MONOTONIC);
}


double
test_cpu(void)
{
    return test_clock(CLOCK_THREAD_CPUTIME_ID);
}


static double
test_clock(clockid_t clock)
{
    struct timespec  ts;

    clock_gettime(clock, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


static uint64_t
test_sum(const uint8_t *payload, uint32_t length)
{
    uint32_t     i;
    uint64_t     sum, word;
    test_head_t  head;

    memcpy(&head, payload, sizeof(head));

    sum = head.who * 31 + head.number + length;

    for (i = TEST_HEAD; i + 8 <= length; i += 8) {
        memcpy(&word, payload + i, 8);
        sum = (sum ^ word) * 0x100000001b3u;
    }

    for ( /* void */ ; i < length; i++) {
        sum = (sum ^ payload[i]) * 0x100000001b3u;
    }

    return sum;
}


void
test_fill(uint8_t *payload, uint32_t length, uint64_t who, uint64_t number)
{
    uint32_t     i;
    uint64_t     state, word;
    test_head_t  head;

    state = who ^ (number << 20);

    for (i = TEST_HEAD; i < length; i += 8) {
        word = test_random(&state);
        memcpy(payload + i, &word, length - i < 8 ? length - i : 8);
    }

    head.who = who;
    head.number = number;
    head.sum = 0;
    memcpy(payload, &head, sizeof(head));

    head.sum = test_sum(payload, length);
    memcpy(payload, &head, sizeof(head));
}


int
test_whole(const uint8_t *payload, uint32_t length, test_head_t *head)
{
    if (length < TEST_HEAD) {
        return 0;
    }

    memcpy(head, payload, sizeof(*head));

    return head->sum == test_sum(payload, length);
}
