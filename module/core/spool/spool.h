
/*
 * The spool: what log plugins of all processes write, on its way to the one
 * that reads it (the control worker's thread).  A ring of bytes in memory that
 * they share; plain C11 on Linux, no nginx headers.
 *
 *
 * WHAT IS PROMISED
 *
 *   whole   An entry is read whole or not at all, also where its writer is
 *           killed at any instruction.
 *   bound   A writer takes one lock and copies; it never sleeps and never
 *           allocates.  It tries at most 1 ms for the lock, whose holder may
 *           have lost its processor; where that was in vain, 50 us until it
 *           gets it again.  Meanwhile its entries wait in memory of its own,
 *           and are written before its next one, or by a flush.  What has no
 *           room, there or here, is dropped, the newest, and counted.
 *   once    There is one reader at a time.  Where it stands is in the memory:
 *           where it dies, the next one goes on with the entry that it had in
 *           hand, which so may be read twice.
 *   alive   No death blocks anybody: locks are robust.
 *   safe    What stands in the memory is believed by nobody: the worst that a
 *           process which writes anything there can do is that entries are
 *           lost.
 *
 *
 * HOW
 *
 * tail and head are counts of bytes, 64 bits, that only grow; a byte is at
 * data[position % size].  Writers take turns by a mutex.  A writer copies its
 * entry behind the tail and last stores the tail: that store publishes, before
 * it nothing exists.  The reader loads the tail, copies the entry out, and
 * stores the head when it has handed the entry on.
 *
 *     entry, 8-byte aligned:
 *      0 length      u32  whole entry, multiple of 8
 *      4 check       u32  of its position
 *      8 lengths     u32  of three texts: plugin, target, text
 *     20 zero        u32
 *     24 the texts, 0 to 7 bytes of padding
 *
 * A reader that finds nothing sleeps on a futex, after it has said so:
 * Dekker's two flags, tail and asleep, each store and load seq_cst.  A writer
 * that dies between its tail and the wake leaves the reader asleep until
 * anybody writes, or a process that begins wakes it.
 */


#ifndef SLUICE_SPOOL_H_INCLUDED
#define SLUICE_SPOOL_H_INCLUDED


#include "ring.h"


#define SLUICE_SPOOL_MIN     (64u << 10)
#define SLUICE_SPOOL_MAX     (1u << 30)
#define SLUICE_SPOOL_SHARE   4         /* an entry takes a quarter at most */


typedef struct sluice_spool_area_s  sluice_spool_area_t;


typedef enum {
    SLUICE_SPOOL_PLUGIN = 0,       /* which reads it */
    SLUICE_SPOOL_TARGET,           /* where it goes, in the plugin's words */
    SLUICE_SPOOL_TEXT,             /* what */
    SLUICE_SPOOL_TEXTS
} sluice_spool_text_e;


/* A process's view. */

typedef struct {
    sluice_spool_area_t  *area;
    uint8_t              *data;
    uint64_t              size;
    int                   is_stuck;        /* the lock's holder */
    uint8_t              *held;            /* entries that wait for it: */
    uint32_t              held_size;       /*   bytes there may be, */
    uint32_t              held_used;       /*   and there are, */
    uint32_t              held_count;      /*   of so many entries */
} sluice_spool_t;


typedef struct {
    const void           *data[SLUICE_SPOOL_TEXTS];
    uint32_t              length[SLUICE_SPOOL_TEXTS];
} sluice_spool_entry_t;


/* What the reader has in hand. */

typedef struct {
    uint64_t              position;
    uint64_t              end;
    uint32_t              length[SLUICE_SPOOL_TEXTS];
} sluice_spool_found_t;


/* FFI */

typedef struct {
    uint64_t  written;             /* entries with a text */
    uint64_t  full;                /* dropped: no room, */
    uint64_t  busy;                /*   no lock in time, */
    uint64_t  large;               /*   too large */
    uint64_t  damaged;             /* what was found that is no entry, each
                                      time with all behind it */
    uint64_t  lost;                /* dropped by who has read them */
    uint64_t  used;                /* bytes, now */
    uint64_t  size;
} sluice_spool_stats_t;

/* FFI end */


/* In zeroed memory, page-aligned, of a size between the bounds.  SLUICE_OK,
 * SLUICE_SYSTEM. */
int sluice_spool_init(void *base, size_t size);

/* SLUICE_OK; SLUICE_VERSION: that is none of this layout and size. */
int sluice_spool_attach(sluice_spool_t *spool, void *base, size_t size);


/* writing */

/* Memory of this process for entries that wait for the lock; NULL: none. */
void sluice_spool_hold(sluice_spool_t *spool, void *memory, uint32_t size);

/*
 * SLUICE_OK: it was written, or waits (held_used is above 0); else it was
 * dropped, and counted: SLUICE_FULL, _BUSY, _LARGE.
 */
int sluice_spool_write(sluice_spool_t *spool,
    const sluice_spool_entry_t *entry);

/*
 * Writes what waits, trying so long for the lock.  SLUICE_OK; SLUICE_BUSY: it
 * still waits.
 */
int sluice_spool_flush(sluice_spool_t *spool, uint32_t patience_us);

/* Drops what waits, and counts it. */
void sluice_spool_give_up(sluice_spool_t *spool);

/* Wakes the reader, whether it sleeps or not. */
void sluice_spool_wake(const sluice_spool_t *spool);


/* reading; all of it by one thread */

/*
 * SLUICE_OK: this thread is the reader until it calls leave or dies.
 * SLUICE_BUSY: another is, and is told that somebody wants to be.
 */
int sluice_spool_enter(const sluice_spool_t *spool);
void sluice_spool_leave(const sluice_spool_t *spool);

/* Whether somebody wants to be the reader since this one entered. */
int sluice_spool_is_wanted(const sluice_spool_t *spool);

/* SLUICE_OK: the oldest entry; SLUICE_NONE. */
int sluice_spool_next(const sluice_spool_t *spool,
    sluice_spool_found_t *found);

/* Copies bytes of the texts, which stand one behind the other. */
void sluice_spool_copy(const sluice_spool_t *spool,
    const sluice_spool_found_t *found, uint64_t from, uint64_t length,
    void *to);

/* It was handed on: its room is free. */
void sluice_spool_advance(const sluice_spool_t *spool,
    const sluice_spool_found_t *found);

/* Returns when there may be something to read, or it was woken. */
void sluice_spool_sleep(const sluice_spool_t *spool);

/* Counts entries that were read and then dropped. */
void sluice_spool_lose(const sluice_spool_t *spool, uint64_t count);


/* Of any process; each figure is true, not all at one instant. */
void sluice_spool_stats(const sluice_spool_t *spool,
    sluice_spool_stats_t *stats);


#endif /* SLUICE_SPOOL_H_INCLUDED */
