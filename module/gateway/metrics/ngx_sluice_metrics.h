
/*
 * What is counted of traffic, in memory that all processes of this nginx
 * share (ngx_sluice_page.c makes it, and keeps it over reloads and upgrades).
 *
 *
 * SEATS
 *
 * Each worker counts in a seat of its own, which no other process writes: an
 * increment is one plain instruction and no worker waits for another's cache
 * lines.  A scrape sums all seats.  A seat is held by a lock of the kernel on
 * its byte of the memory's file, which ends with its process, however that
 * ends.  The next worker takes the seat with its counts and goes on with
 * them: so a death loses nothing of what was counted, and no count ever falls.
 * There are as many seats as the events' log has slots.  A worker that finds
 * none counts in memory of its own, asks again once a second, and brings what
 * it has counted along.
 *
 *
 * LINES
 *
 * A line has the counts of one node, route or service.  Those of routes and
 * services are found by slot; slots of routes beyond "series" have none, as
 * memory is bounded.  A line is stamped with its entity's generation: who
 * comes into a slot after another begins at zero, and what still comes of the
 * other counts for the node alone.
 *
 * Readers take no lock.  They may see one request counted in half.  They look
 * at no line behind a seat's last one: to read memory that nobody has written
 * takes pages of it.
 */


#ifndef NGX_SLUICE_METRICS_H_INCLUDED
#define NGX_SLUICE_METRICS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


#define SLUICE_METRICS_SERIES    10000         /* the most that may be set */
#define SLUICE_METRICS_BUCKETS   15            /* the last has no bound */
#define SLUICE_METRICS_CLASSES   5             /* 1xx to 5xx */


/* What a seat counts beside its lines. */

typedef enum {
    SLUICE_METRICS_RETRIES = 0,
    SLUICE_METRICS_RATE_LIMITED,
    SLUICE_METRICS_POOL_OPENED,
    SLUICE_METRICS_POOL_REUSED,
    SLUICE_METRICS_POOL_CLOSED,
    SLUICE_METRICS_UNNAMED,                    /* requests without a line */
    SLUICE_METRICS_TIMER_RUNS,
    SLUICE_METRICS_TIMER_FAILURES,
    SLUICE_METRICS_HTTP2_RESETS,
    SLUICE_METRICS_HTTP2_REFUSED,
    SLUICE_METRICS_HTTP2_CLOSED_RESETS,        /* too many of those, */
    SLUICE_METRICS_HTTP2_CLOSED_STREAMS,       /* refused streams, */
    SLUICE_METRICS_HTTP2_CLOSED_FRAMES,        /* frames that control, */
    SLUICE_METRICS_HTTP2_CLOSED_HEADER,        /* or a header that is none */
    SLUICE_METRICS_UNROUTED,
    SLUICE_METRICS_POOL_IDLE,                  /* a gauge, the last */
    SLUICE_METRICS_COUNTS = 16
} sluice_metrics_count_e;


typedef enum {
    SLUICE_METRICS_ROUTE = 0,
    SLUICE_METRICS_SERVICE,
    SLUICE_METRICS_KINDS
} sluice_metrics_kind_e;


/* Of nginx, the admin listener's connections among them. */

typedef struct {
    uint64_t  accepted;
    uint64_t  handled;
    uint64_t  active;
    uint64_t  reading;
    uint64_t  writing;
    uint64_t  waiting;
} sluice_metrics_connections_t;


typedef struct {
    uint64_t  buckets[SLUICE_METRICS_BUCKETS];
    uint64_t  sum;                             /* ms */
} sluice_metrics_histogram_t;


/* What a scrape makes the text of; ngx_sluice_metrics_text.c has them. */

typedef struct sluice_metrics_names_s  sluice_metrics_names_t;


/* Its first cache line is all that a request needs to be counted in. */

typedef struct {
    uint32_t  stamp;                           /* generation + 1; 0: unused */
    uint32_t  unanswered;
    uint64_t  answered[SLUICE_METRICS_CLASSES];
    uint64_t  received;                        /* bytes, of the client */
    uint64_t  sent;

    sluice_metrics_histogram_t  total;
    sluice_metrics_histogram_t  upstream;
    sluice_metrics_histogram_t  gateway;
} sluice_metrics_line_t;


/* A line of all seats together: all of it are numbers of 64 bits. */

typedef struct {
    uint64_t                    unanswered;
    uint64_t                    answered[SLUICE_METRICS_CLASSES];
    uint64_t                    received;
    uint64_t                    sent;

    sluice_metrics_histogram_t  total;
    sluice_metrics_histogram_t  upstream;
    sluice_metrics_histogram_t  gateway;
} sluice_metrics_sum_t;


typedef struct {
    sluice_metrics_line_t  node;
    uint64_t               counts[SLUICE_METRICS_COUNTS];
    uint32_t               ends[SLUICE_METRICS_KINDS];  /* of slots in use */
    uint64_t               zero[7];
} ngx_sluice_metrics_seat_t;


/* Behind the seats stand the lines: those of a seat and kind together. */

typedef struct {
    uint32_t                   series;         /* lines a seat and kind */
    uint32_t                   used;           /* seats that were ever taken */
    uint32_t                   count;          /* of seats */
    uint32_t                   zero[13];

    ngx_sluice_metrics_seat_t  seats[];
} ngx_sluice_metrics_t;


_Static_assert(sizeof(sluice_metrics_line_t) == 448, "whole cache lines");
_Static_assert(sizeof(sluice_metrics_sum_t) == sizeof(sluice_metrics_line_t)
               && offsetof(sluice_metrics_sum_t, answered)
                  == offsetof(sluice_metrics_line_t, answered),
               "the same but for what stands before the classes");
_Static_assert(sizeof(ngx_sluice_metrics_seat_t) == 640, "whole cache lines");
_Static_assert(offsetof(ngx_sluice_metrics_t, seats) == 64, "a cache line");


/* Bytes of the memory; what nobody writes or reads takes none. */

#define ngx_sluice_metrics_size(seats, series)                                \
    (sizeof(ngx_sluice_metrics_t)                                             \
     + (size_t) (seats) * (sizeof(ngx_sluice_metrics_seat_t)                  \
                           + (size_t) SLUICE_METRICS_KINDS * (series)         \
                             * sizeof(sluice_metrics_line_t)))


/* This process's; where nothing is shared, memory of its own. */

extern ngx_sluice_metrics_seat_t  *ngx_sluice_metrics_seat;


#define ngx_sluice_metrics_add(what, n)                                       \
    (ngx_sluice_metrics_seat->counts[what] += (uint64_t) (n))


/* ngx_sluice_metrics.c */

ngx_int_t ngx_sluice_metrics_init_process(ngx_cycle_t *cycle);
sluice_metrics_line_t *ngx_sluice_metrics_line(ngx_uint_t kind, uint32_t slot,
    uint32_t generation);
void ngx_sluice_metrics_prefetch(ngx_uint_t kind, uint32_t slot,
    ngx_uint_t number);
ngx_uint_t ngx_sluice_metrics_entity(ngx_uint_t kind, uint32_t slot,
    uint32_t generation, ngx_uint_t from, ngx_uint_t to, uint64_t *sums);


#endif /* NGX_SLUICE_METRICS_H_INCLUDED */
