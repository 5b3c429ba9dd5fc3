
/* What the tests of the log share: a seed, messages that can be checked. */


#ifndef TEST_RING_SUPPORT_H_INCLUDED
#define TEST_RING_SUPPORT_H_INCLUDED


#include "ring_layout.h"

#include <stdio.h>
#include <sys/types.h>


#define TEST_HEAD   sizeof(test_head_t)
#define TEST_SLOTS  64          /* of a log */


/* A payload begins with this; the rest follows from it. */

typedef struct {
    uint64_t  who;       /* names a publisher and its life */
    uint64_t  number;    /* 1, 2, 3 ... of that publisher */
    uint64_t  sum;       /* of all that follows, and of who and number */
} test_head_t;


/* Fails with file, line and words. */
#define test_check(ok, ...)                                                   \
    do {                                                                      \
        if (!(ok)) {                                                          \
            test_failed(__FILE__, __LINE__, #ok, __VA_ARGS__);                \
        }                                                                     \
    } while (0)

void test_failed(const char *file, int line, const char *what,
    const char *format, ...) __attribute__((noreturn, format(printf, 4, 5)));

/* The seed: SEED of the environment, or the name's own; printed either way. */
uint64_t test_seed(const char *name);
uint64_t test_env(const char *name, uint64_t otherwise);

/* As fork; the child ends when its parent does, however that ends. */
pid_t test_fork(void);

/* splitmix64 */
uint64_t test_random(uint64_t *state);
uint64_t test_below(uint64_t *state, uint64_t limit);

double test_now(void);

/* Seconds of the CPU that this thread has had. */
double test_cpu(void);

/*
 * No test waits longer than that for what comes at once: so long a wait is one
 * for ever, also on a machine that has no time for the test.
 */
#define TEST_FOR_EVER_S   60
#define TEST_FOR_EVER_MS  (TEST_FOR_EVER_S * 1000)

/* Fills length (at least TEST_HEAD) bytes; and says whether they are whole. */
void test_fill(uint8_t *payload, uint32_t length, uint64_t who,
    uint64_t number);
int test_whole(const uint8_t *payload, uint32_t length, test_head_t *head);


#endif /* TEST_RING_SUPPORT_H_INCLUDED */
