
/*
 * The log's structures in shared memory; see ring.h for what they mean.
 * Private to ring*.c and to tests.
 */


#ifndef SLUICE_RING_LAYOUT_H_INCLUDED
#define SLUICE_RING_LAYOUT_H_INCLUDED


#ifndef _GNU_SOURCE
#define _GNU_SOURCE           /* memfd_create(); include this file first */
#endif

#include <pthread.h>
#include <stdatomic.h>

#include "ring.h"


#define SLUICE_RING_MAGIC     0x474f4c2d4543554cull      /* "LUCE-LOG" */
#define SLUICE_RING_LINE      64
#define SLUICE_RING_ALIGN     (64u << 10)   /* of areas: the largest page */
#define SLUICE_RING_BUCKET    8             /* entries */
#define SLUICE_RING_PER_KEY   256           /* bytes of data per entry */
#define SLUICE_RING_STEPS     8             /* of the gate, in a lap */

/* How long to try for the lock: a publisher, and a verb that is rare. */
#define SLUICE_RING_SHORT_US  250
#define SLUICE_RING_LONG_US   2000

/*
 * A claim: seq << 16 | REDELIVER bit | owner.  The seq is cut to 48 bits; by
 * it a frame differs from those that used the entry before and after.
 */
#define SLUICE_RING_OWNER      0x7ffu
#define SLUICE_RING_DONE       0x7ffu
#define SLUICE_RING_REDO       0x8000u
#define sluice_ring_tag(seq)   ((uint64_t) (seq) << 16)


__extension__ typedef unsigned __int128  sluice_ring_u128_t;

typedef struct {
    uint32_t  length;
    uint32_t  check;
    uint64_t  seq;
    uint64_t  sent_ms;
    uint64_t  name_hash;
    uint32_t  message;
    uint32_t  piece;
    uint32_t  payload;
    uint32_t  entry;
    uint32_t  epoch;
    uint16_t  sender;
    uint16_t  worker;
    uint16_t  source;
    uint16_t  event;
    uint8_t   kind;
    uint8_t   flags;
    uint16_t  zero;
} sluice_ring_header_t;


/* What must be equal for a process to map a log; magic is written last. */

typedef struct {
    uint64_t          size;
    uint64_t          seed;
    uint32_t          layout;
    uint32_t          slots;
    uint32_t          control_size;
    uint32_t          slot_size;
    uint32_t          entry_size;
    uint32_t          header_size;
    uint32_t          mutex_size;
    uint32_t          zero;
    _Atomic uint64_t  magic;
} sluice_ring_identity_t;


/*
 * The record whose tail equals the log's tail is the valid one.  Atomic since
 * stats reads them without the lock.
 */

typedef struct {
    _Atomic uint64_t  tail;
    _Atomic uint64_t  seq;
} sluice_ring_commit_t;


/*
 * A generation: space behind start is kept while open.  The one of number n is
 * at n % SLUICE_RING_GATES.
 */

typedef struct {
    /* the master's, who takes no lock: number is 0 while it writes the rest */
    _Atomic uint64_t  start;
    _Atomic uint64_t  start_seq;
    _Atomic uint32_t  number;
    _Atomic uint32_t  workers;
    _Atomic uint32_t  open;         /* number, until it is closed; or 0 */

    /* with the lock; of the generation noted, of another it counts for none */
    uint32_t          noted;
    uint64_t          attached[SLUICE_RING_SLOTS / 64];   /* worker ids */
    uint64_t          since_ms;     /* the log is full because of it; or 0 */
    uint32_t          zero[22];
} sluice_ring_gate_t;


struct sluice_ring_control_s {
    /* never changed after creation */
    _Alignas(SLUICE_RING_LINE)
    sluice_ring_identity_t  identity;

    /* seldom changed */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint32_t        top;            /* slots ever used */
    _Atomic uint32_t        stall_ms;
    _Atomic uint32_t        generation;
    _Atomic uint32_t        redeliver;      /* was ever asked for */

    /* read by everybody, stored at each publication */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint64_t        tail;

    /* the writers' own */
    _Alignas(SLUICE_RING_LINE)
    pthread_mutex_t         mutex;
    _Atomic uint64_t        gate;           /* no cursor is below */
    _Atomic uint64_t        note;           /* last entry taken, plus 1 */

    _Alignas(SLUICE_RING_LINE)
    sluice_ring_commit_t    commit[2];

    /* a binding's own: see sluice_ring_alarm() */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint64_t        alarm;

    /* a bit for each slot that found the log full */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint64_t        waiting[SLUICE_RING_SLOTS / 64];

    /* odd: asleep */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint32_t        sleep[SLUICE_RING_SLOTS];

    _Alignas(SLUICE_RING_LINE)
    sluice_ring_gate_t      gates[SLUICE_RING_GATES];
};


struct sluice_ring_slot_s {
    /* the reader's */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint64_t        cursor;
    _Atomic uint64_t        seq;

    /* seldom changed */
    _Alignas(SLUICE_RING_LINE)
    _Atomic uint32_t        state;
    _Atomic uint32_t        epoch;
    _Atomic uint32_t        pid;
    _Atomic uint32_t        generation;
    _Atomic uint32_t        worker;
    uint32_t                zero;
    uint64_t                stuck_at;       /* cursor when the log was full */
    uint64_t                stuck_since_ms;

    /* held while the process lives */
    _Alignas(SLUICE_RING_LINE)
    pthread_mutex_t         alive;

    _Alignas(SLUICE_RING_LINE)
    _Atomic uint64_t        count[SLUICE_RING_COUNTERS];
};


struct sluice_ring_entry_s {
    _Atomic uint64_t        hash;
    _Atomic uint64_t        expiry_ms;
    _Atomic uint64_t        position;       /* of its frame */
    _Atomic uint64_t        claim;          /* 0: never used */
};


_Static_assert(sizeof(void *) == 8, "64-bit only");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "atomics must work across processes");
_Static_assert(sizeof(_Atomic uint64_t) == 8, "atomic without a lock");
_Static_assert(sizeof(sluice_ring_header_t) == 64, "frame header");
_Static_assert(offsetof(sluice_ring_header_t, kind) == 60, "frame header");
_Static_assert(sizeof(sluice_ring_identity_t) == 56, "identity");
_Static_assert(sizeof(sluice_ring_commit_t) == 16, "commit record");
_Static_assert(sizeof(sluice_ring_gate_t) == 256, "gate");
_Static_assert(sizeof(pthread_mutex_t) <= 48, "mutex beside gate and note");
_Static_assert(offsetof(sluice_ring_control_t, tail) == 128, "tail");
_Static_assert(offsetof(sluice_ring_control_t, mutex) == 192, "mutex");
_Static_assert(offsetof(sluice_ring_control_t, commit) == 256, "commit");
_Static_assert(offsetof(sluice_ring_control_t, sleep) == 512, "sleep");
_Static_assert(offsetof(sluice_ring_control_t, gates) == 4608, "gates");
_Static_assert(sizeof(sluice_ring_control_t) == 6656, "control");
_Static_assert(offsetof(sluice_ring_slot_t, state) == 64, "slot");
_Static_assert(offsetof(sluice_ring_slot_t, alive) == 128, "slot");
_Static_assert(sizeof(sluice_ring_slot_t) == 384, "slot");
_Static_assert(sizeof(sluice_ring_entry_t) == 32, "entry");
_Static_assert(SLUICE_RING_SLOTS < SLUICE_RING_OWNER, "owner in a claim");


/* ring_tail.c */

uint64_t sluice_ring_tail_seq(const sluice_ring_t *ring, uint64_t tail);
int sluice_ring_tail_now(const sluice_ring_t *ring, uint64_t *tail,
    uint64_t *seq);

/* ring_lock.c */

int sluice_ring_lock(sluice_ring_t *ring, uint32_t patience_us);
void sluice_ring_unlock(sluice_ring_t *ring);

/* ring_frame.c */

uint32_t sluice_ring_frame_check(const sluice_ring_header_t *h,
    uint64_t position);
uint32_t sluice_ring_frame_size(const sluice_ring_message_t *m);
void sluice_ring_frame_write(sluice_ring_t *ring, uint64_t position,
    sluice_ring_header_t *h, const sluice_ring_message_t *m);
int sluice_ring_frame_read(const sluice_ring_t *ring, uint64_t position,
    uint64_t tail, uint64_t seq, sluice_ring_frame_t *frame);

/* ring_room.c */

int sluice_ring_room(sluice_ring_t *ring, uint64_t tail, uint64_t floor);
void sluice_ring_gate_look(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker, uint64_t *start, uint64_t *seq, uint64_t *missed);
void sluice_ring_gate_enter(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker);

/* ring_slot.c */

void sluice_ring_reap(sluice_ring_t *ring);

/* ring_wake.c */

void sluice_ring_wait(sluice_ring_t *ring);
void sluice_ring_wake_waiting(sluice_ring_t *ring);

/* ring_unique.c */

int sluice_ring_entry_take(sluice_ring_t *ring, const sluice_ring_message_t *m,
    uint64_t position, uint64_t seq, uint64_t now_ms, uint32_t *entry);
int sluice_ring_entry_inherit(sluice_ring_t *ring, uint32_t slot,
    uint64_t cursor);

/* ring_stats.c */

void sluice_ring_count(sluice_ring_t *ring, int counter, uint64_t n);


#endif /* SLUICE_RING_LAYOUT_H_INCLUDED */
