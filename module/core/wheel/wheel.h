
/*
 * A hierarchical timing wheel without a tick.
 *
 * Time is a number that only grows (here milliseconds).  A node waits in the
 * level of the highest group of 10 bits in which its time differs from the
 * wheel's; there are 5 levels of 1024 slots, so 2^50 of time and no other path
 * for far ones.  Inserting and removing take a few instructions, whatever
 * else is in the wheel.  A node moves down at most 4 times in its life; each
 * is a visit to its memory, so slots are many and levels few.
 *
 * Nodes of equal time come out in the order in which they went in: at any one
 * moment all of them are in the same slot, and slots are queues.
 *
 * The wheel allocates nothing: nodes are parts of the caller's structures.
 * After Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987);
 * the slots' minima, which make wakeups for mere moving down unnecessary, and
 * moving down in portions, are additions.
 */


#ifndef SLUICE_WHEEL_H_INCLUDED
#define SLUICE_WHEEL_H_INCLUDED


#include <stddef.h>
#include <stdint.h>


#define SLUICE_WHEEL_BITS    10
#define SLUICE_WHEEL_LEVELS  5
#define SLUICE_WHEEL_SLOTS   (1u << SLUICE_WHEEL_BITS)
#define SLUICE_WHEEL_WORDS   (SLUICE_WHEEL_SLOTS / 64)

/* A time further from the wheel's than this does not fit. */
#define SLUICE_WHEEL_MAX     ((uint64_t) 1 << 47)

#define SLUICE_WHEEL_NEVER   UINT64_MAX


/* Of functions that a fire of a timer seldom calls: kept out of its way. */
#define SLUICE_WHEEL_RARE    __attribute__ ((cold, noinline))


typedef struct sluice_wheel_node_s  sluice_wheel_node_t;

struct sluice_wheel_node_s {
    sluice_wheel_node_t  *next;     /* NULL: in no wheel */
    sluice_wheel_node_t  *prev;
    uint64_t              expires;  /* of a slot: the earliest there may be */
};


typedef struct {
    uint64_t              now;      /* no node waits for an earlier time */
    uint64_t              occupied[SLUICE_WHEEL_LEVELS][SLUICE_WHEEL_WORDS];
    uint64_t              moving;   /* number of the slot that moves down */
    int                   moving_level;        /* 0: none */
    sluice_wheel_node_t   ready;    /* expired, in order */
    sluice_wheel_node_t   slots[SLUICE_WHEEL_LEVELS][SLUICE_WHEEL_SLOTS];
} sluice_wheel_t;


void sluice_wheel_init(sluice_wheel_t *w, uint64_t now);

/* node->expires is set, and not earlier than any now given to advance. */
void sluice_wheel_insert(sluice_wheel_t *w, sluice_wheel_node_t *node);

/* From the wheel or its ready queue, or any other list. */
void sluice_wheel_remove(sluice_wheel_t *w, sluice_wheel_node_t *node);

/*
 * Moves what has expired at now to the ready queue.  Touches at most limit
 * nodes; returns 1, or 0 if that was not enough: call again with any now.
 */
int sluice_wheel_advance(sluice_wheel_t *w, uint64_t now, size_t limit);

/* When the next node expires.  Too early, perhaps, once the earliest node of a
   slot was removed.  SLUICE_WHEEL_NEVER: the wheel is empty. */
uint64_t sluice_wheel_next(const sluice_wheel_t *w);

/* Of plain queues, such as the ready one. */
void sluice_wheel_queue_init(sluice_wheel_node_t *queue);
void sluice_wheel_queue_append(sluice_wheel_node_t *queue,
    sluice_wheel_node_t *from);
void sluice_wheel_queue_remove(sluice_wheel_node_t *node);


#define sluice_wheel_queue_empty(queue)  ((queue)->next == (queue))


#endif /* SLUICE_WHEEL_H_INCLUDED */
