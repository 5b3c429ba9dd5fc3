
/*
 * Timers: what a wheel's nodes are for.  Their memory, handles, times,
 * policies and statistics.  Plain C that reads no clock: callers give it now.
 *
 *     waiting --> ready --> taken --> finished --> waiting, or freed
 *
 * sluice_timers_begin moves what is due to a queue.  sluice_timers_take hands
 * out runs until that queue is empty, and the caller ends each of them by
 * sluice_timers_finish.  A timer that is made meanwhile waits for the next
 * begin, even if it is due at once.
 *
 * Times are monotonic: microseconds for what is due, nanoseconds for what is
 * measured.
 */


#ifndef SLUICE_WHEEL_TIMERS_H_INCLUDED
#define SLUICE_WHEEL_TIMERS_H_INCLUDED


#include "wheel.h"


/* A page has 1024 timers, 28 pages of the system. */
#define SLUICE_TIMERS_PAGE_BITS  10
#define SLUICE_TIMERS_PAGE       (1u << SLUICE_TIMERS_PAGE_BITS)
#define SLUICE_TIMERS_PAGES      4096
#define SLUICE_TIMERS_MAX        (SLUICE_TIMERS_PAGES * SLUICE_TIMERS_PAGE)

/* A handle is a serial number and an index: 53 bits, a number in Lua. */
#define SLUICE_TIMERS_INDEX_BITS   22
#define SLUICE_TIMERS_SERIAL_BITS  31

/* So many runs wait of a timer that queues them; more are left out. */
#define SLUICE_TIMERS_QUEUE_MAX  100

/* Nodes that one call moves in the wheel. */
#define SLUICE_TIMERS_MOVES      4096

/* Creation places; what is created at others counts as account 0. */
#define SLUICE_TIMERS_ACCOUNTS   65536

/* Options, given by Lua. */
#define SLUICE_TIMER_FIXED_DELAY  0x01
#define SLUICE_TIMER_QUEUE        0x02
#define SLUICE_TIMER_CONCURRENT   0x04
#define SLUICE_TIMER_OWN_STATS    0x08
/* For the caller. */
#define SLUICE_TIMER_NAMED        0x10
#define SLUICE_TIMER_ERROR        0x20
/* State. */
#define SLUICE_TIMER_PAUSED       0x40
#define SLUICE_TIMER_GONE         0x80  /* no handle leads to it any more */
/* For the caller, too. */
#define SLUICE_TIMER_ARGUMENTS    0x100
#define SLUICE_TIMER_DEBUG        0x200
/* State. */
#define SLUICE_TIMER_ONCE         0x400

/* Four buckets an octave of nanoseconds, up to 18 minutes. */
#define SLUICE_TIMERS_BUCKETS     160


typedef struct {
    sluice_wheel_node_t  node;
    uint64_t             due_us;      /* while paused: what is left */
    uint64_t             grid_us;     /* the same without jitter */
    uint64_t             interval_us; /* of one that runs once: its delay */
    uint32_t             index;
    uint32_t             serial;      /* 0: free */
    uint32_t             jitter_ms;
    uint32_t             tolerance_ms;
    uint32_t             warn_ms;
    uint32_t             runs;        /* that have ended */
    uint32_t             failures;
    float                min_ns;      /* elapsed; of no runs infinite */
    float                max_ns;
    float                mean_ns;
    float                variance;
    uint16_t             place;       /* account of its creation place */
    uint16_t             account;     /* of its own, or 0 */
    uint16_t             running;
    uint16_t             flags;
    uint8_t              queued;
    const void          *callback;    /* the caller's: prefetched for a run */
} sluice_timer_t;

_Static_assert(sizeof(sluice_timer_t) == 112, "a page is whole pages");


/* An exact sum: of 2^38 measures, each up to 2^45 ns, 10 hours. */
typedef unsigned __int128  sluice_timers_squares_t;


/* A spread is sums, so that a measure divides nothing. */

typedef struct {
    sluice_timers_squares_t  squares;
    uint64_t                 sum_ns;
    uint64_t                 count;
    uint64_t                 min_ns;
    uint64_t                 max_ns;
    uint32_t                 buckets[SLUICE_TIMERS_BUCKETS];
} sluice_timers_spread_t;


typedef struct {
    uint64_t                created;
    uint64_t                live;     /* timers now */
    uint64_t                failures;
    uint64_t                skipped;  /* periods left out */
    uint64_t                running;
    sluice_timers_spread_t  elapsed;  /* its count is that of runs */
    sluice_timers_spread_t  late;
    /* for the caller: when it last wrote a line to the log */
    uint64_t                logged_ns;
    uint64_t                unlogged;
} sluice_timers_account_t;


typedef struct {
    sluice_timer_t  *timers;
    uint32_t         free;            /* index + 1 of the first, 0: none */
    uint32_t         used;
    uint32_t         next;            /* page with free timers, or NONE */
    uint32_t         prev;
} sluice_timers_page_t;


typedef struct {
    uint64_t  delay_us;
    uint64_t  interval_us; /* 0: runs once */
    uint32_t  jitter_ms;
    uint32_t  tolerance_ms;
    uint32_t  warn_ms;
    uint32_t  place;
    uint16_t  flags;
} sluice_timers_spec_t;


/* A run: begun by take, ended by finish, with the same structure. */

typedef struct {
    sluice_timer_t  *timer;
    uint64_t         start_ns;
    int              premature;
} sluice_timers_run_t;


typedef struct sluice_timers_s  sluice_timers_t;

/* The timer is freed; or only its name is, before its last run. */
typedef void (*sluice_timers_release_pt)(void *data, sluice_timer_t *t,
    int name_only);
/* The page has no timers any more, and its memory was given back. */
typedef void (*sluice_timers_drop_pt)(void *data, uint32_t page);

struct sluice_timers_s {
    sluice_wheel_t             wheel;
    sluice_wheel_node_t        current;   /* to be taken */

    sluice_timers_release_pt   release;
    sluice_timers_drop_pt      drop;
    void                      *data;

    uint64_t                   runs;      /* that have ended */
    uint64_t                   failures;
    uint64_t                   skipped;
    uint64_t                   created;
    uint32_t                   count;     /* timers that exist */
    uint32_t                   running;   /* runs under way */
    uint32_t                   paused;
    uint32_t                   serial;
    uint32_t                   partial;   /* first page with free timers */
    uint32_t                   spare;     /* page without a used one */
    int                        exiting;
    uint64_t                   random;

    sluice_timers_account_t  **accounts;
    uint32_t                   account_count;
    uint32_t                   account_free;  /* heads a list, 0: none */

    sluice_timers_page_t       pages[SLUICE_TIMERS_PAGES];
};


/* 0: no memory. */
int sluice_timers_init(sluice_timers_t *ts, uint64_t now_ns);
void sluice_timers_close(sluice_timers_t *ts);

/* NULL: 4 million exist, or no memory. */
sluice_timer_t *sluice_timers_create(sluice_timers_t *ts,
    const sluice_timers_spec_t *spec, uint64_t now_ns);

double sluice_timers_handle(const sluice_timer_t *t);
/* The timer, or NULL.  find: not once it is cancelled or its last run has
   begun.  at: until that run has ended. */
sluice_timer_t *sluice_timers_find(sluice_timers_t *ts, double handle);
sluice_timer_t *sluice_timers_at(sluice_timers_t *ts, double handle);

void sluice_timers_cancel(sluice_timers_t *ts, sluice_timer_t *t);
void sluice_timers_pause(sluice_timers_t *ts, sluice_timer_t *t,
    uint64_t now_ns);
void sluice_timers_resume(sluice_timers_t *ts, sluice_timer_t *t,
    uint64_t now_ns);
/* The whole delay or interval begins anew, whether it was paused or not. */
void sluice_timers_restart(sluice_timers_t *ts, sluice_timer_t *t,
    uint64_t now_ns);

/* Everything is due from now on, and premature. */
void sluice_timers_exit(sluice_timers_t *ts);

/* Of all timers: none is left save those that run. */
void sluice_timers_clear(sluice_timers_t *ts);

/*
 * Moves what is due to the queue of runs, if that is empty.  One call moves
 * SLUICE_TIMERS_MOVES timers; 0: there are more, so call it again soon.
 */
int sluice_timers_begin(sluice_timers_t *ts, uint64_t now_ns);
#define sluice_timers_empty(ts)  sluice_wheel_queue_empty(&(ts)->current)
/* Nanoseconds by which the first in the queue of runs is late; 0 of none. */
uint64_t sluice_timers_late(const sluice_timers_t *ts, uint64_t now_ns);
/* Milliseconds; SLUICE_WHEEL_NEVER. */
uint64_t sluice_timers_next(const sluice_timers_t *ts);

/* 0: there is none. */
int sluice_timers_take(sluice_timers_t *ts, sluice_timers_run_t *run,
    uint64_t now_ns);
void sluice_timers_finish(sluice_timers_t *ts, sluice_timers_run_t *run,
    uint64_t now_ns, int failed);

/* Index of a new account; 0, which is shared, if there is no more. */
uint32_t sluice_timers_account(sluice_timers_t *ts);

/* Nanoseconds, or their square; 0 of none. */
double sluice_timers_mean(const sluice_timers_spread_t *spread);
double sluice_timers_variance(const sluice_timers_spread_t *spread);
double sluice_timers_p99(const sluice_timers_spread_t *spread);

/* How many are due and not taken, up to a limit: it walks along them. */
uint32_t sluice_timers_backlog(const sluice_timers_t *ts, uint32_t limit,
    uint64_t now_ns, uint64_t *age_us);

/* The first timer from an index on, or NULL; also one in its last run. */
sluice_timer_t *sluice_timers_from(sluice_timers_t *ts, uint32_t index);


#endif /* SLUICE_WHEEL_TIMERS_H_INCLUDED */
