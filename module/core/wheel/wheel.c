
/*
 * The timing wheel; wheel.h says how it works.
 */


#include "wheel.h"


#define WHEEL_MASK  (SLUICE_WHEEL_SLOTS - 1)

#define wheel_number(time, level)  ((time) >> ((level) * SLUICE_WHEEL_BITS))
#define wheel_index(time, level)   (wheel_number(time, level) & WHEEL_MASK)

#define wheel_word(w, level, i)    (w)->occupied[level][(i) / 64]
#define wheel_bit(i)               ((uint64_t) 1 << (i) % 64)


static void wheel_queue_add(sluice_wheel_node_t *queue,
    sluice_wheel_node_t *node);
static void wheel_put(sluice_wheel_t *w, sluice_wheel_node_t *node);
static int wheel_first(const sluice_wheel_t *w, int level, uint64_t *number);
static int wheel_move(sluice_wheel_t *w, size_t *limit);


void
sluice_wheel_queue_init(sluice_wheel_node_t *queue)
{
    queue->next = queue;
    queue->prev = queue;
    queue->expires = SLUICE_WHEEL_NEVER;
}


static void
wheel_queue_add(sluice_wheel_node_t *queue, sluice_wheel_node_t *node)
{
    node->prev = queue->prev;
    node->next = queue;
    node->prev->next = node;
    queue->prev = node;
}


void
sluice_wheel_queue_remove(sluice_wheel_node_t *node)
{
    node->next->prev = node->prev;
    node->prev->next = node->next;
    node->next = NULL;
}


/* All of one queue to the end of another. */

void
sluice_wheel_queue_append(sluice_wheel_node_t *queue,
    sluice_wheel_node_t *from)
{
    if (sluice_wheel_queue_empty(from)) {
        return;
    }

    from->next->prev = queue->prev;
    queue->prev->next = from->next;
    from->prev->next = queue;
    queue->prev = from->prev;

    sluice_wheel_queue_init(from);
}


void
sluice_wheel_init(sluice_wheel_t *w, uint64_t now)
{
    int       level;
    unsigned  i;

    w->now = now;
    w->moving = 0;
    w->moving_level = 0;

    sluice_wheel_queue_init(&w->ready);

    for (level = 0; level < SLUICE_WHEEL_LEVELS; level++) {
        for (i = 0; i < SLUICE_WHEEL_WORDS; i++) {
            w->occupied[level][i] = 0;
        }

        for (i = 0; i < SLUICE_WHEEL_SLOTS; i++) {
            sluice_wheel_queue_init(&w->slots[level][i]);
        }
    }
}


/* Where a node belongs, seen from the wheel's time. */

static void
wheel_put(sluice_wheel_t *w, sluice_wheel_node_t *node)
{
    int                   level;
    unsigned              i;
    uint64_t              differs;
    sluice_wheel_node_t  *slot;

    if (node->expires <= w->now) {
        wheel_queue_add(&w->ready, node);
        return;
    }

    differs = node->expires ^ w->now;
    i = (unsigned) (node->expires & WHEEL_MASK);

    if (differs >= SLUICE_WHEEL_SLOTS) {
        level = (63 - __builtin_clzll(differs)) / SLUICE_WHEEL_BITS;
        i = (unsigned) (level * (int) SLUICE_WHEEL_SLOTS
                        + (int) wheel_index(node->expires, level));
    }

    /* of all slots, those of lower levels first */

    slot = &w->slots[0][0] + i;

    wheel_queue_add(slot, node);

    if (node->expires < slot->expires) {
        slot->expires = node->expires;
    }

    *(&w->occupied[0][0] + i / 64) |= wheel_bit(i);
}


/*
 * While a slot moves down, what belongs into its time goes behind what still
 * waits there, so that equal times keep their order.
 */

void
sluice_wheel_insert(sluice_wheel_t *w, sluice_wheel_node_t *node)
{
    int  level;

    level = w->moving_level;

    if (level && wheel_number(node->expires, level) == w->moving) {
        wheel_queue_add(&w->slots[level][w->moving & WHEEL_MASK], node);
        return;
    }

    wheel_put(w, node);
}


void
sluice_wheel_remove(sluice_wheel_t *w, sluice_wheel_node_t *node)
{
    size_t                i;
    sluice_wheel_node_t  *list;

    list = node->next;

    sluice_wheel_queue_remove(node);

    if (list != node->prev) {
        return;
    }

    /* what is left is the list's head, or one other node */

    if (list < &w->slots[0][0]
        || list > &w->slots[SLUICE_WHEEL_LEVELS - 1][SLUICE_WHEEL_SLOTS - 1])
    {
        return;
    }

    i = (size_t) (list - &w->slots[0][0]);

    if (w->moving_level && i / SLUICE_WHEEL_SLOTS == (size_t) w->moving_level
        && i % SLUICE_WHEEL_SLOTS == (w->moving & WHEEL_MASK))
    {
        return;
    }

    wheel_word(w, i / SLUICE_WHEEL_SLOTS, i % SLUICE_WHEEL_SLOTS) &=
        ~wheel_bit(i);
    list->expires = SLUICE_WHEEL_NEVER;
}


/* The first slot of a level with something in it, as its number since 0. */

static int
wheel_first(const sluice_wheel_t *w, int level, uint64_t *number)
{
    unsigned  i;
    uint64_t  at;

    for (i = 0; i < SLUICE_WHEEL_WORDS; i++) {

        if (w->occupied[level][i] == 0) {
            continue;
        }

        /* all are later than the wheel's own slot and in the same turn */

        at = i * 64 + (uint64_t) __builtin_ctzll(w->occupied[level][i]);
        *number = (wheel_number(w->now, level) & ~(uint64_t) WHEEL_MASK) | at;

        return 1;
    }

    return 0;
}


uint64_t
sluice_wheel_next(const sluice_wheel_t *w)
{
    int       level;
    uint64_t  number;

    if (w->moving_level || !sluice_wheel_queue_empty(&w->ready)) {
        return w->now;
    }

    for (level = 0; level < SLUICE_WHEEL_LEVELS; level++) {

        if (wheel_first(w, level, &number)) {
            return w->slots[level][number & WHEEL_MASK].expires;
        }
    }

    return SLUICE_WHEEL_NEVER;
}


/* Goes on with the slot that moves down; 0: not done within the limit. */

static int
wheel_move(sluice_wheel_t *w, size_t *limit)
{
    sluice_wheel_node_t  *slot, *node;

    slot = &w->slots[w->moving_level][w->moving & WHEEL_MASK];

    while (!sluice_wheel_queue_empty(slot)) {

        if (*limit == 0) {
            return 0;
        }

        (*limit)--;

        node = slot->next;
        node->next->prev = slot;
        slot->next = node->next;

        wheel_put(w, node);
    }

    slot->expires = SLUICE_WHEEL_NEVER;
    w->moving_level = 0;

    return 1;
}


int
sluice_wheel_advance(sluice_wheel_t *w, uint64_t now, size_t limit)
{
    int                   level;
    uint64_t              number, start;
    sluice_wheel_node_t  *slot;

    for ( ;; ) {

        if (w->moving_level && !wheel_move(w, &limit)) {
            return 0;
        }

        if (now <= w->now) {
            return 1;
        }

        /* the lowest level that has something has the earliest */

        for (level = 0; level < SLUICE_WHEEL_LEVELS; level++) {
            if (wheel_first(w, level, &number)) {
                break;
            }
        }

        if (level == SLUICE_WHEEL_LEVELS) {
            w->now = now;
            return 1;
        }

        start = number << (level * SLUICE_WHEEL_BITS);

        if (start > now) {
            w->now = now;
            return 1;
        }

        w->now = start;
        wheel_word(w, level, number & WHEEL_MASK) &= ~wheel_bit(number);

        if (level > 0) {
            w->moving = number;
            w->moving_level = level;
            continue;
        }

        slot = &w->slots[0][number & WHEEL_MASK];

        sluice_wheel_queue_append(&w->ready, slot);
        slot->expires = SLUICE_WHEEL_NEVER;
    }
}
