
/*
 * The wheel against a dumb sorted list: OPS random steps, and after each the
 * same order, the same time of the next expiry.
 */


#include "support.h"
#include "wheel.h"

#include <stdlib.h>
#include <string.h>


#define ORDER_NODES  600


typedef struct {
    sluice_wheel_node_t  node;      /* first */
    uint64_t             order;     /* of insertion */
    uint64_t             expires;
    int                  used;
} order_node_t;


static sluice_wheel_t  wheel;
static order_node_t    nodes[ORDER_NODES];
static order_node_t   *list[ORDER_NODES];      /* sorted */
static size_t          count;
static uint64_t        state, now, inserted, popped;
static int             removed, busy;


static int
order_before(const order_node_t *a, const order_node_t *b)
{
    return a->expires != b->expires ? a->expires < b->expires
                                    : a->order < b->order;
}


static void
order_insert(uint64_t delay)
{
    size_t         i;
    order_node_t  *n;

    for (n = nodes; n < nodes + ORDER_NODES && n->used; n++) { /* void */ }

    if (n == nodes + ORDER_NODES) {
        return;
    }

    n->used = 1;
    n->expires = now + delay;
    n->order = ++inserted;
    n->node.expires = n->expires;

    sluice_wheel_insert(&wheel, &n->node);

    for (i = count++; i > 0 && order_before(n, list[i - 1]); i--) {
        list[i] = list[i - 1];
    }

    list[i] = n;
}


static void
order_drop(size_t i)
{
    list[i]->used = 0;
    count--;
    memmove(&list[i], &list[i + 1], (count - i) * sizeof(list[0]));
}


static void
order_pop(void)
{
    order_node_t  *n;

    while (!sluice_wheel_queue_empty(&wheel.ready)) {
        n = (order_node_t *) wheel.ready.next;

        test_check(count > 0 && n == list[0], "out of order: %lu before %lu",
                   n->expires, list[0]->expires);
        test_check(n->expires <= now, "early: %lu at %lu", n->expires, now);

        sluice_wheel_remove(&wheel, &n->node);
        order_drop(0);
        popped++;
    }
}


static void
order_advance(void)
{
    size_t  limit;

    limit = test_below(&state, 4) ? 100000 : 1 + test_below(&state, 20);
    busy = !sluice_wheel_advance(&wheel, now, limit);

    order_pop();

    if (!busy) {
        test_check(count == 0 || list[0]->expires > now, "left behind");
    }
}


/* Delays of all lengths, many of them equal. */

static uint64_t
order_delay(void)
{
    uint64_t  delay;

    switch (test_below(&state, 4)) {

    case 0:
        return test_below(&state, 3);

    case 1:
        return test_below(&state, 200);

    case 2:
        delay = (uint64_t) 1 << test_below(&state, 46);
        return delay - (now & (delay - 1)) + test_below(&state, 2);

    default:
        return test_below(&state, (uint64_t) 1 << test_below(&state, 47));
    }
}


static void
order_check_next(void)
{
    uint64_t  next;

    next = sluice_wheel_next(&wheel);

    if (busy) {
        test_check(next <= now, "more to move, but not now");

    } else if (count == 0) {
        test_check(next == SLUICE_WHEEL_NEVER, "empty, but next is %lu", next);

    } else if (removed) {
        test_check(next > now && next <= list[0]->expires, "next is %lu",
                   next);

    } else {
        test_check(next == list[0]->expires, "next is %lu, not %lu", next,
                   list[0]->expires);
    }
}


/* A wheel that nothing is removed from is never woken for nothing. */

static void
order_run(uint64_t ops, int removes)
{
    size_t    i;
    uint64_t  start;

    memset(nodes, 0, sizeof(nodes));
    count = 0;
    busy = 0;
    removed = removes;

    now = start = test_below(&state, (uint64_t) 1 << 40);
    sluice_wheel_init(&wheel, now);

    while (ops-- && now - start < (uint64_t) 1 << 46) {

        switch (test_below(&state, 8)) {

        case 0: case 1: case 2: case 3:
            order_insert(order_delay());
            break;

        case 4:
            if (removes && count) {
                i = test_below(&state, count);
                sluice_wheel_remove(&wheel, &list[i]->node);
                order_drop(i);
            }
            break;

        case 5:
            if (count && test_below(&state, 4) && !busy) {
                now = list[0]->expires;

            } else {
                now += test_below(&state, 70);
            }

            order_advance();
            break;

        case 6:
            now += test_below(&state, (uint64_t) 1 << test_below(&state, 24));
            order_advance();
            break;

        default:
            order_advance();
        }

        order_pop();

        if (!busy || !removes) {
            order_check_next();
        }
    }

    do {
        now += (uint64_t) 1 << 47;
        order_advance();
    } while (busy);

    test_check(count == 0, "%zu never came", count);
}


int
main(void)
{
    uint64_t  ops, done;

    state = test_seed("order");
    ops = test_env("OPS", 1000000);

    for (done = 0; done < ops; done += 20000) {
        order_run(10000, 1);
        order_run(10000, 0);
    }

    printf("order: %lu inserted, %lu expired in order\n", inserted, popped);

    return 0;
}
