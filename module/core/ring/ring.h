
/*
 * Long on purpose: the whole contract in one place.
 *
 * The log: one sequence of events in shared memory that every process reads
 * at its own pace, in place, without a lock.  Plain C11 on Linux, no nginx
 * headers: tests build it alone and run sanitizers over it.
 *
 *
 * SYNOPSIS
 *
 *     once, in the master, before the first fork:
 *         sluice_ring_create(&ring, 16 << 20, 256, 10000);
 *         sluice_ring_set_wake(&ring, sluice_ring_wake_fds, fds);
 *     in the master, before each generation of workers is forked:
 *         sluice_ring_generation(&ring, workers, &generation);
 *     in each worker:
 *         sluice_ring_attach(&ring, generation, worker, &missed);
 *         sluice_ring_publish(&ring, &message);
 *
 *     its loop:
 *         do {
 *             while ((n = sluice_ring_next_batch(&ring, frames, 64)) > 0) {
 *                 use frames[0 .. n - 1];
 *                 rc = sluice_ring_advance(&ring, &frames[n - 1]);
 *             }
 *             n or rc is SLUICE_OVERRUN or SLUICE_BAD:
 *                 sluice_ring_rejoin(&ring, &missed); report missed;
 *         } while (sluice_ring_sleep(&ring) != SLUICE_NONE);
 *         wait for the eventfd;
 *
 *
 * WHAT IS PROMISED
 *
 *   order   All readers see the same frames in the same order; seq grows by
 *           exactly one from frame to frame.
 *   whole   A frame is seen whole or not at all, also when its publisher is
 *           killed at any instruction.
 *   once    A reader that is not detached gets every frame published after
 *           it attached (or since its generation began), once.
 *   known   A reader that was detached notices before it can act on
 *           overwritten memory, and gets the exact number of frames missed.
 *   alive   No death blocks anybody: the lock and the places of the dead are
 *           taken over by the next process that needs them, within one call.
 *   idle    Nothing happens unless somebody calls a verb.
 *
 *
 * MEMORY
 *
 * One memfd, sealed against resizing, mapped shared:
 *
 *     +---------+-----------+-----------------+-----------+ - - - - - - +
 *     | control | slots     | entries         | data      | data again  |
 *     +---------+-----------+-----------------+-----------+ - - - - - - +
 *       pages     pages       size / 8          size, 2^n
 *
 * The data area is mapped twice in a row, so a frame that begins near its end
 * simply goes on: no padding, no split, one case for writers and readers.  A
 * page without access lies behind.  The structures are in ring_layout.h, each
 * with its size and alignment asserted; all of them start with zeroes.  magic,
 * SLUICE_RING_LAYOUT, the sizes of slot, entry, frame header and mutex are in
 * the first line, and a process maps a log only if all of them are its own.
 * How many slots there are is said at creation, and stands there, too.
 *
 * A position is a count of bytes, 64 bits, that only grows: no wrap, no ABA.
 * tail is the end of what is published, a slot's cursor the end of what its
 * reader has used.  A byte is at data[position & (size - 1)].
 *
 *     frame, 8-byte aligned:
 *      0 length      u32  whole frame, multiple of 8
 *      4 check       u32  of position and header: no stale or torn header
 *      8 seq         u64  1, 2, 3 ... no gaps
 *     16 sent_ms     u64  CLOCK_MONOTONIC
 *     24 name_hash   u64  sluice_ring_name_hash(source, event)
 *     32 message     u32  the sender's number for the pieces of one payload
 *     36 piece       u32  0, 1, 2 ... within message
 *     40 payload     u32  bytes
 *     44 entry       u32  of a unique frame
 *     48 epoch       u32  of the sender's slot: slot and epoch name a process
 *     52 sender      u16  slot; SLUICE_RING_NOBODY if it has none, and its pid
 *                         as the epoch
 *     54 worker      u16  receiver of a frame for one worker
 *     56 source      u16  bytes
 *     58 event       u16  bytes
 *     60 kind        u8   SLUICE_RING_ALL, _WORKER, _UNIQUE
 *     61 flags       u8
 *     62 zero        u16
 *     64 source, event, payload, 0 to 7 bytes of padding
 *
 *
 * WHO WRITES WHAT, AND WHY THAT IS ENOUGH
 *
 * Writers take turns by a robust process-shared mutex.  A publisher copies its
 * frame behind the tail, writes {new tail, new seq} into the one of two commit
 * records that does not match the tail, and last stores the tail: that store
 * publishes.  Before it nothing exists, so a publisher that dies before it
 * leaves nothing, and one that dies behind it has published; the record that
 * matches the tail is always whole, so there is no third state to repair.
 * The next locker gets EOWNERDEAD, undoes at most one entry (below), goes on.
 *
 * Readers load the tail (acquire: pairs with the store, so the bytes of every
 * frame below it are visible), read in place, and store their cursor (release:
 * their reads are over before a writer that loads it may overwrite them).
 *
 * A reader trusts nothing in a frame: the header is copied once and checked in
 * the copy (check, seq that follows the last, lengths against the tail and the
 * limit); otherwise SLUICE_BAD, and rejoin starts again at the tail.
 *
 * Sleep (Dekker's two flags, each store and load seq_cst, so one of the two
 * sees the other's):
 *     reader: sleep word = odd number; load tail, changed? then do not sleep
 *     writer: store tail; load sleep words, odd? then wake; word = even
 * The writer wakes first and then changes the word, by compare and exchange
 * with the odd number that it read (each sleep has its own).  Done the other
 * way, a writer that dies in between would leave a reader asleep that nobody
 * wakes again.  A reader that is awake costs its writers one load.
 *
 * A writer that dies between the tail and the wake leaves readers asleep until
 * anybody publishes, attaches, or finds the log full.  nginx respawns a killed
 * worker in milliseconds and that one attaches.  Not respawned are workers
 * that were leaving already: there, the next event wakes all.
 *
 * Space: a frame may not reach further than size beyond the slowest cursor of
 * an attached slot and the start of each generation that is not complete.
 * When it would: a slot whose process is dead is freed; one that has been at
 * the same cursor for stall_ms is detached; else SLUICE_FULL.  What nobody has
 * to wait for is given up an eighth of the log at a time: a mark is good until
 * seven eighths have been published behind it, or keys are crowded.  The clock
 * of a stall begins when a publisher first finds the log full because of that
 * slot.
 * A detached reader may be reading what is overwritten: as in a seqlock it
 * compares its slot's state after use (advance and intact do), behind an
 * acquire fence, while the writer stores the state before it overwrites.
 *
 * A master does not take part: it may be root, and workers that somebody has
 * taken over can write anything here.  All it does is to store numbers at
 * places that it knows (generation, set_stall) and to read others; it takes no
 * lock (to leave a robust mutex is to write through pointers that lie in it)
 * and trusts nothing that it reads.  What the dead leave, workers tidy up.
 *
 * Life: each slot has a robust mutex that its process holds while it lives.
 * A trylock that answers EOWNERDEAD is proof of death, and whoever got it
 * tidies up and frees the slot.  No pids are guessed, and a stopped process is
 * not a dead one.
 *
 * A unique frame owns an entry from its publication until it is both expired
 * and claimed-and-done or read by all.  An entry holds the key's hash, the
 * time until which repeats are ignored, and the claim: seq of its frame, and
 * 0 (open), slot + 1 (claimed) or "done".  Claims are not in the frame, since
 * a late reader's compare-and-exchange would hit whatever has been written
 * over it; with the seq in the word a late one just fails.  A key can live in
 * either of two buckets of eight entries: each look-up is 16 compares, and
 * SLUICE_CROWDED comes near size / 256 live keys (65,536 at 16 MB), never a
 * broken promise.  Whoever frees a dead slot hands the frames that asked for
 * it (SLUICE_RING_REDELIVER) and that the dead had claimed but not done, or
 * had not yet read and nobody claimed, to its redeliver handler, if the log
 * still holds them; it owns their claims then, and should it die before it
 * has published them again, so does whoever frees its slot.
 *
 *
 * COSTS (bench/micro/ring_flow.c, AMD EPYC VM)
 *
 * To readers that are awake: 70 ns a publication of 64 B, 90 of 1 KB, 0.5 us
 * of 16 KB, payload's copy included; 16 ns a frame read in batches.
 *
 * publish takes one trylock and one unlock, one store that is a barrier and a
 * copy of the payload; it never allocates, never sleeps, and tries at most
 * 250 us for the lock (SLUICE_BUSY: its holder is stopped or off the
 * processor; a holder that runs is done in 0.1 us, or 150 us with the largest
 * frame).  Reading makes no atomic read-modify-write and no system call.
 *
 *
 * SOURCES
 *
 * HAProxy's mpring.h (the contract of a byte ring in its header) and Aeron's
 * broadcast buffer (a reader learns that it was lapped from one comparison
 * after use).  Neither survives a producer that dies between reserve and
 * commit, hence the lock here.  Robust futexes: the kernel's
 * Documentation/locking/robust-futexes.rst.  Seqlock readers: H. Boehm, "Can
 * seqlocks get along with programming language memory models?", 2012.  Two
 * buckets: Azar, Broder, Karlin, Upfal, "Balanced allocations", 1994.
 */


#ifndef SLUICE_RING_H_INCLUDED
#define SLUICE_RING_H_INCLUDED


#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>


#define SLUICE_RING_LAYOUT     4           /* grows with each change */

#define SLUICE_RING_SLOTS      1024        /* the most of a log */
#define SLUICE_RING_GATES      8           /* generations being made */
#define SLUICE_RING_NOBODY     0xffff      /* a slot that is none */
#define SLUICE_RING_AGENT      1023        /* a privileged agent's worker id */

#define SLUICE_RING_SIZE_MIN   (64u << 10)
#define SLUICE_RING_SIZE_MAX   (1u << 30)
#define SLUICE_RING_FRAME_MAX  (1u << 20)  /* and at most size / 8 */
#define SLUICE_RING_NAME_MAX   4096        /* bytes of source, and of event */
#define SLUICE_RING_BATCH_MAX  1024


/*
 * Every verb that can fail returns one of these, save that next_batch returns
 * a count where it is positive.
 */

typedef enum {
    SLUICE_OK = 0,
    SLUICE_NONE = -1,      /* nothing to read; asleep; claimed by another */
    SLUICE_FULL = -2,      /* no space: retry when woken or in 10 ms */
    SLUICE_BUSY = -3,      /* lock not free in time: retry in 10 ms */
    SLUICE_REPEAT = -4,    /* key seen within its timeout: nothing to do */
    SLUICE_OVERRUN = -5,   /* detached: rejoin */
    SLUICE_BAD = -6,       /* a damaged frame: rejoin; or not a log */
    SLUICE_LARGE = -7,     /* frame over the limit: publish pieces */
    SLUICE_CROWDED = -8,   /* no room for one more live unique key */
    SLUICE_NOSLOT = -9,    /* all are taken, or this process has none */
    SLUICE_VERSION = -10,  /* a log of another layout */
    SLUICE_SYSTEM = -11    /* errno says it */
} sluice_ring_rc_e;


typedef enum {
    SLUICE_RING_ALL = 0,   /* every reader */
    SLUICE_RING_WORKER,    /* readers with that worker id */
    SLUICE_RING_UNIQUE     /* every reader sees it, one claims it */
} sluice_ring_kind_e;


#define SLUICE_RING_MORE       0x01  /* further pieces of the message follow */
#define SLUICE_RING_REDELIVER  0x02  /* unique: again if its receiver dies */
#define SLUICE_RING_AGAIN      0x04  /* such a second delivery: no key */


/* FFI */

/*
 * What a slot counts; each word is written by the slot's process alone.  The
 * ring keeps those above USER, a binding may use the others as it likes.
 */

typedef enum {
    SLUICE_RING_C_PUBLISHED = 0,    /* frames */
    SLUICE_RING_C_PUBLISHED_BYTES,  /* of the log */
    SLUICE_RING_C_REPEATS,
    SLUICE_RING_C_FULL,
    SLUICE_RING_C_BUSY,
    SLUICE_RING_C_WAKES,            /* sent to others and itself */
    SLUICE_RING_C_READ,             /* frames passed, used or not mine */
    SLUICE_RING_C_READ_BYTES,
    SLUICE_RING_C_OVERRUNS,
    SLUICE_RING_C_MISSED,           /* frames */
    SLUICE_RING_C_CLAIMED,
    SLUICE_RING_C_SLEEPS,
    SLUICE_RING_C_USER,
    SLUICE_RING_COUNTERS = 24
} sluice_ring_counter_e;

/* FFI end */


typedef struct sluice_ring_s          sluice_ring_t;
typedef struct sluice_ring_control_s  sluice_ring_control_t;
typedef struct sluice_ring_slot_s     sluice_ring_slot_t;
typedef struct sluice_ring_entry_s    sluice_ring_entry_t;


/* What to publish.  Zero what you do not need. */

typedef struct {
    const void  *payload[2];   /* one after the other */
    const char  *source;
    const char  *event;
    uint64_t     key;          /* sluice_ring_hash() of a unique key */
    uint64_t     name_hash;    /* 0: computed here */
    uint32_t     timeout_ms;   /* how long a repeat of key is ignored */
    uint32_t     message;      /* both only for payloads in pieces; the key */
    uint32_t     piece;        /*   of a unique one counts in the last piece */
    uint32_t     length[2];
    uint32_t     epoch;        /* both by sluice_ring_sign(), for pieces */
    uint16_t     sender;
    uint16_t     source_length;
    uint16_t     event_length;
    uint16_t     worker;
    uint8_t      kind;
    uint8_t      flags;
} sluice_ring_message_t;


/* FFI */

/*
 * What was read: pointers into the log, good until this process advances past
 * the frame, or is detached (ask intact() or advance() after use).  All of a
 * batch can be read through the first one's payload, at their offsets.
 */

typedef struct {
    const uint8_t  *payload;
    const char     *source;
    const char     *event;
    uint64_t        seq;
    uint64_t        end;            /* position behind it */
    uint64_t        sent_ms;
    union {
        uint64_t    name_hash;
        struct {                    /* the same; Lua's numbers have 53 bits */
            uint32_t  name_low;
            uint32_t  name_high;
        };
    };
    uint32_t        length;         /* of payload */
    uint32_t        offset;         /* of payload from the batch's first one */
    uint32_t        message;
    uint32_t        piece;
    uint32_t        epoch;
    uint32_t        entry;
    uint16_t        source_length;
    uint16_t        event_length;
    uint16_t        sender;
    uint16_t        worker;
    uint8_t         kind;
    uint8_t         flags;
} sluice_ring_frame_t;


typedef struct {
    uint64_t        count[SLUICE_RING_COUNTERS];
    uint64_t        lag;            /* frames that it has not passed yet */
    uint64_t        lag_bytes;
    uint32_t        pid;
    uint32_t        epoch;
    uint32_t        generation;
    uint16_t        worker;
    uint8_t         state;          /* SLUICE_RING_FREE and so on */
    uint8_t         asleep;
} sluice_ring_slot_stats_t;


typedef struct {
    uint64_t        size;
    uint64_t        used;           /* bytes that a publisher must not touch */
    uint64_t        tail;
    uint64_t        seq;            /* frames published since the log began */
    uint32_t        attached;
    uint32_t        detached;
    uint32_t        slots;
    uint32_t        top;            /* look at slots 0 .. top - 1 */
    uint32_t        frame_limit;
    uint32_t        stall_ms;
    uint32_t        generation;     /* the youngest */
    uint32_t        zero;
} sluice_ring_stats_t;


#define SLUICE_RING_FREE        0
#define SLUICE_RING_ATTACHED    1
#define SLUICE_RING_DETACHED    2

/* FFI end */


/*
 * Wakes the process in a slot.  Called without the lock; also for the caller's
 * own slot, if it published between sleep and the next read.
 */
typedef void (*sluice_ring_wake_pt)(void *data, uint32_t slot);

/*
 * Takes over a frame whose receiver died.  Called WITH the lock, from attach
 * or publish: copy frame and payload, call no verb.  Later publish the copy,
 * with SLUICE_RING_REDELIVER | SLUICE_RING_AGAIN and no key, and then call
 * done with the frame.  A death in between delivers it once more.
 */
typedef void (*sluice_ring_redeliver_pt)(void *data,
    const sluice_ring_frame_t *frame);

typedef uint64_t (*sluice_ring_clock_pt)(void);    /* milliseconds */


/*
 * A process's view of the log: private, made by create or open, copied by
 * fork.  One thread at a time.  Only the ring's own files look inside.
 */

struct sluice_ring_s {
    sluice_ring_control_t    *control;
    sluice_ring_slot_t       *slots;
    sluice_ring_entry_t      *entries;
    uint8_t                  *data;
    uint64_t                  size;
    uint64_t                  mask;         /* size - 1 */
    uint64_t                  seed;
    uint64_t                  buckets;      /* their number - 1 */
    uint32_t                  limit;        /* of a frame */
    uint32_t                  count;        /* of slots */

    uint32_t                  index;        /* own slot, or NOBODY */
    uint32_t                  epoch;
    sluice_ring_slot_t       *own;
    uint64_t                  read;         /* end and seq of the last frame */
    uint64_t                  read_seq;     /*   handed out or skipped */
    uint64_t                  handed;       /* end of the last handed out */
    uint64_t                  used;         /* of the last advanced past */
    uint64_t                  used_seq;
    uint64_t                  offered;      /* used, at the last wake-up of
                                               publishers that need space */
    uint64_t                  tail;         /* as last seen */
    uint32_t                  ticket;       /* last value of own sleep word */
    uint32_t                  claims;       /* to redeliver, not done yet */
    uint16_t                  worker;

    uint16_t                  marked;       /* mark() has set these: */
    uint64_t                  mark;         /* a position */
    uint64_t                  mark_seq;     /* of the last frame before it */
    uint64_t                  mark_missed;  /* frames that were gone by then */

    sluice_ring_wake_pt       wake;
    void                     *wake_data;
    sluice_ring_redeliver_pt  redeliver;
    void                     *redeliver_data;
    sluice_ring_clock_pt      clock;

    void                     *map;
    size_t                    mapped;
    int                       fd;
};


/* creation */

/*
 * Makes a log of size bytes (rounded up to a power of two, between the limits)
 * for so many processes at a time (1 .. SLUICE_RING_SLOTS), in a new memfd
 * without close-on-exec: ring->fd.  SLUICE_OK, SLUICE_SYSTEM.
 */
int sluice_ring_create(sluice_ring_t *ring, size_t size, uint32_t slots,
    uint32_t stall_ms);

/*
 * Maps the log in fd.  SLUICE_OK; SLUICE_BAD: that is not a log;
 * SLUICE_VERSION: of another layout; SLUICE_SYSTEM.  fd stays the caller's.
 */
int sluice_ring_open(sluice_ring_t *ring, int fd);

/* Unmaps; detach first.  fd stays open. */
void sluice_ring_close(sluice_ring_t *ring);

void sluice_ring_set_wake(sluice_ring_t *ring, sluice_ring_wake_pt wake,
    void *data);
void sluice_ring_set_redeliver(sluice_ring_t *ring,
    sluice_ring_redeliver_pt redeliver, void *data);
void sluice_ring_set_clock(sluice_ring_t *ring, sluice_ring_clock_pt clock);

/* Shared by all processes, takes effect at once. */
void sluice_ring_set_stall(sluice_ring_t *ring, uint32_t stall_ms);

/* A wake: data is an int[ring->count] of eventfds; -1 is skipped. */
void sluice_ring_wake_fds(void *data, uint32_t slot);


/* life */

/*
 * In the master before it forks workers 0 .. workers - 1.  A worker that
 * attaches with this generation gets what is published from here on, or the
 * number of frames that it missed.  The log keeps them until all workers have
 * attached or passed, or it has been full for stall_ms.  generation is a new
 * number.  SLUICE_OK, SLUICE_BUSY (the tail was never still: they begin at the
 * tail).
 */
int sluice_ring_generation(sluice_ring_t *ring, uint32_t workers,
    uint32_t *generation);

/*
 * Notes where this process begins to read, for an attach that comes later:
 * for the first one of a worker id of a generation where that generation
 * began, else at the tail.  The mark lies in ring, and goes with copies of it.
 * Once more: nothing.  SLUICE_OK, SLUICE_BUSY.
 */
int sluice_ring_mark(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker);

/*
 * This process attaches later or never, and its generation's log is not kept
 * for it any more.  One that does not attach costs nothing then, and one that
 * was lapped learns it when it attaches.  SLUICE_OK, SLUICE_BUSY.
 */
int sluice_ring_pass(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker);

/*
 * Takes a slot for this process (ring->index: its eventfd's number too).
 * Starts at its mark; without one the first to come for a worker id of a
 * generation starts where that generation began, a respawned one at the tail.
 * missed: frames since then that the log no longer holds for it (an overrun if
 * not 0).  Frees the slots of the dead and wakes those to whom they owed a
 * wake.  SLUICE_OK, SLUICE_BUSY, SLUICE_NOSLOT.
 */
int sluice_ring_attach(sluice_ring_t *ring, uint32_t generation,
    uint16_t worker, uint64_t *missed);

/*
 * Gives the slot back.  Must be called by the thread that attached, and before
 * close; a process that just exits is tidied up like a dead one.
 */
void sluice_ring_detach(sluice_ring_t *ring);


/* publishing */

/*
 * Appends one frame and wakes who sleeps.  SLUICE_OK: it is in the log.  Else
 * nothing happened: SLUICE_REPEAT (a success, by contract), SLUICE_FULL (the
 * slot is woken when there is space; have a 10 ms timer too, for stalls and
 * deaths), SLUICE_BUSY, SLUICE_LARGE, SLUICE_CROWDED.  To keep the order of
 * one publisher, what comes after a FULL or BUSY must queue behind it.
 */
int sluice_ring_publish(sluice_ring_t *ring, const sluice_ring_message_t *m);

/*
 * The two halves of that, for who publishes many frames at once: a reader that
 * is woken for each of them sleeps again before the next.  Appending wakes
 * nobody.  Who appends sees to it that the wake follows, also should he die,
 * be stopped or loop meanwhile.
 */
int sluice_ring_append(sluice_ring_t *ring, const sluice_ring_message_t *m);
void sluice_ring_wake_sleepers(sluice_ring_t *ring);

/*
 * A word that all share, 0 at first, in which a binding may note when it has
 * the kernel wake everybody.  Others write it, too: believe no value.
 */
_Atomic uint64_t *sluice_ring_alarm(sluice_ring_t *ring);

/*
 * Names this process as the sender of all pieces of a message: readers put
 * those of one sender together, and it may get or lose its slot in between.
 * To be called before the first piece.
 */
void sluice_ring_sign(const sluice_ring_t *ring, sluice_ring_message_t *m);

/* Bytes of payload that fit one frame beside these names; 0: none does. */
uint32_t sluice_ring_payload_limit(const sluice_ring_t *ring,
    size_t source_length, size_t event_length);

/* 64-bit hashes, seeded at random when a log is made, never 0. */
uint64_t sluice_ring_hash(const sluice_ring_t *ring, const void *data,
    size_t length);
uint64_t sluice_ring_name_hash(const sluice_ring_t *ring, const char *source,
    size_t source_length, const char *event, size_t event_length);


/* reading */

/*
 * Fills frames with up to n (1 .. SLUICE_RING_BATCH_MAX) frames behind those
 * handed out before, skipping those for other workers, up to the tail as it is
 * at the call.  Returns how many; 0: none left; SLUICE_OVERRUN, SLUICE_BAD,
 * SLUICE_NOSLOT.
 */
int sluice_ring_next_batch(sluice_ring_t *ring, sluice_ring_frame_t *frames,
    int n);

/*
 * Everything up to and including last (NULL: all that was handed out) has been
 * used: its space is free, and that of skipped frames behind the last one that
 * was handed out.  SLUICE_OK, or SLUICE_OVERRUN: detached, and what was read
 * from the log's memory since intact() or advance() last said OK may be
 * garbage.
 */
int sluice_ring_advance(sluice_ring_t *ring, const sluice_ring_frame_t *last);

/* SLUICE_OK: everything read so far was whole.  One load. */
int sluice_ring_intact(const sluice_ring_t *ring);

/*
 * After SLUICE_OVERRUN or SLUICE_BAD: goes on at the tail.  missed: frames
 * between the last one advanced past and the tail.  SLUICE_OK, SLUICE_BUSY.
 */
int sluice_ring_rejoin(sluice_ring_t *ring, uint64_t *missed);

/*
 * Says that this process is about to wait.  SLUICE_NONE: it is marked asleep
 * and will be woken; SLUICE_OK: there is something to read; SLUICE_OVERRUN.
 * The next call of next_batch marks it awake.
 */
int sluice_ring_sleep(sluice_ring_t *ring);

/*
 * Claims a unique frame (without SLUICE_RING_MORE).  SLUICE_OK: it is this
 * process's, to be followed by done when its callback has returned, even if
 * that is after advance; SLUICE_NONE: another has it.
 */
int sluice_ring_claim(sluice_ring_t *ring, const sluice_ring_frame_t *frame);
void sluice_ring_done(sluice_ring_t *ring, const sluice_ring_frame_t *frame);


/* figures; nothing is locked, so they are each true, not all at one instant */

void sluice_ring_stats(const sluice_ring_t *ring, sluice_ring_stats_t *stats);
int sluice_ring_slot_stats(const sluice_ring_t *ring, uint32_t slot,
    sluice_ring_slot_stats_t *stats);

/* Own counters (USER and above are the binding's), NULL without a slot. */
uint64_t *sluice_ring_counters(sluice_ring_t *ring);

/* The word for a code: "ok", "full", "busy" ...; documented, never changed. */
const char *sluice_ring_word(int rc);


#endif /* SLUICE_RING_H_INCLUDED */
