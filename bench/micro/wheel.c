/*
 * The timing wheel alone.
 *
 *     wheel <case> <count>    prints the nanoseconds that count timers took
 *
 * Cases: insert_remove, a timer that is cancelled; insert_expire, one that is
 * waited for, among 100,000 others that are far away.
 */

#include "wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHEEL_OTHERS  100000
#define WHEEL_FAR     1000000000
#define WHEEL_WITHIN  1000
#define WHEEL_BATCH   64


static sluice_wheel_t       wheel;
static sluice_wheel_node_t  wheel_others[WHEEL_OTHERS];
static sluice_wheel_node_t  wheel_nodes[WHEEL_BATCH];


static double
wheel_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static uint64_t
wheel_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;

    return *state >> 33;
}


static void
wheel_turn(int expire, uint64_t *state)
{
    int       i;
    uint64_t  now;

    now = wheel.now;

    for (i = 0; i < WHEEL_BATCH; i++) {
        wheel_nodes[i].expires = now + 1 + wheel_random(state) % WHEEL_WITHIN;
        sluice_wheel_insert(&wheel, &wheel_nodes[i]);
    }

    if (expire) {
        while (!sluice_wheel_advance(&wheel, now + WHEEL_WITHIN + 1,
                                     WHEEL_BATCH))
        {
            /* in portions */
        }
    }

    for (i = 0; i < WHEEL_BATCH; i++) {
        sluice_wheel_remove(&wheel, &wheel_nodes[i]);
    }
}


int
main(int argc, char **argv)
{
    int       i, expire;
    long      count, done;
    double    start;
    uint64_t  state;

    if (argc != 3) {
        fprintf(stderr, "usage: wheel <case> <count>\n");
        return 1;
    }

    expire = strcmp(argv[1], "insert_expire") == 0;
    count = atol(argv[2]);
    state = 1;

    sluice_wheel_init(&wheel, 1);

    for (i = 0; i < WHEEL_OTHERS; i++) {
        wheel_others[i].expires = WHEEL_FAR + wheel_random(&state);
        sluice_wheel_insert(&wheel, &wheel_others[i]);
    }

    start = wheel_now();

    for (done = 0; done < count; done += WHEEL_BATCH) {
        wheel_turn(expire, &state);
    }

    printf("%.0f\n", wheel_now() - start);

    return 0;
}
