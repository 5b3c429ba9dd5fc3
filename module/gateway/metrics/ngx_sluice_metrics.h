
/*
 * What is counted of traffic, in memory that all processes of this nginx
 * share (ngx_sluice_page.c makes it, and keeps it over reloads and upgrades).
 *
 *
 * SHARDS
 *
 * Each worker counts in a shard of its own, which no other process writes: an
 * increment is one plain instruction and no worker waits for another's cache
 * lines.  A scrape sums all shards.  A shard is held by a lock of the kernel
 * on its byte of the memory's file, which ends with its process, however that
 * ends.  The next worker takes the shard with its counts and goes on with
 * them: so a death loses nothing of what was counted, and no count ever falls.
 * There are as many shards as the events' log has slots.  A worker that finds
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
 * TARGETS
 *
 * Addresses of upstreams whose tries have failed are counted by reason, so
 * many a shard: one more takes the place of that which has failed longest ago.
 *
 *
 * Readers take no lock.  They may see one request counted in half.  They look
 * at no line behind a shard's last one: to read memory that nobody has written
 * takes pages of it.
 */


#ifndef NGX_SLUICE_METRICS_H_INCLUDED
#define NGX_SLUICE_METRICS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "exposition.h"


/* FFI */

#define SLUICE_METRICS_SERIES    10000         /* the most that may be set */
#define SLUICE_METRICS_BUCKETS   15            /* the last has no bound */
#define SLUICE_METRICS_CLASSES   5             /* 1xx to 5xx */

#define SLUICE_METRICS_TARGETS   32            /* that have failed, a shard */
#define SLUICE_METRICS_ADDRESS   56            /* bytes, with a NUL */
#define SLUICE_METRICS_REASONS   16            /* 0 is none */


/* What a shard counts beside its lines. */

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
    SLUICE_METRICS_PROXY_PROTOCOL_MISSING,     /* connections closed for */
    SLUICE_METRICS_PROXY_PROTOCOL_MALFORMED,   /* a header that is no such, */
    SLUICE_METRICS_PROXY_PROTOCOL_OVERSIZED,   /* too large, */
    SLUICE_METRICS_PROXY_PROTOCOL_CUT,         /* or not whole in time */
    SLUICE_METRICS_UNROUTED,                   /* beyond the budget */
    SLUICE_METRICS_UNMATCHED,                  /* no route has them */
    SLUICE_METRICS_POOL_IDLE,                  /* a gauge, the last */
    SLUICE_METRICS_COUNTS = 24
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
    uint64_t  total;                           /* requests */
} sluice_metrics_connections_t;


typedef struct {
    uint64_t  buckets[SLUICE_METRICS_BUCKETS];
    uint64_t  sum;                             /* ms */
} sluice_metrics_histogram_t;


/* What a scrape makes the text of; ngx_sluice_metrics_text.c has them. */

typedef struct sluice_metrics_names_s  sluice_metrics_names_t;


/* A line of all shards together: all of it are numbers of 64 bits. */

typedef struct {
    uint64_t                    unanswered;
    uint64_t                    answered[SLUICE_METRICS_CLASSES];
    uint64_t                    received;
    uint64_t                    sent;

    sluice_metrics_histogram_t  total;
    sluice_metrics_histogram_t  upstream;
    sluice_metrics_histogram_t  gateway;
} sluice_metrics_sum_t;


/* Tries of an address of upstreams that have failed, by reason. */

typedef struct {
    uint32_t  version;                         /* odd: it becomes another's */
    uint32_t  failed_at;                       /* the last, in seconds */
    char      address[SLUICE_METRICS_ADDRESS]; /* empty: nobody's yet */
    uint64_t  failed[SLUICE_METRICS_REASONS];
} sluice_metrics_target_t;


/* ngx_sluice_metrics.c */

uint32_t sluice_metrics_limit(void);
void sluice_metrics_node(sluice_metrics_sum_t *sum, uint64_t *counts);

/* ngx_http_sluice_metrics.c */

void sluice_metrics_count(int what);
const char *sluice_metrics_reason(int reason);
int sluice_metrics_connections(sluice_metrics_connections_t *connections);

/* ngx_sluice_metrics_targets.c */

uint32_t sluice_metrics_targets(sluice_metrics_target_t *sums, uint32_t size);

/* ngx_sluice_metrics_text.c */

sluice_metrics_names_t *sluice_metrics_names_create(int kind);
int sluice_metrics_names_read(sluice_metrics_names_t *names, uint32_t slots);
void sluice_metrics_names_destroy(sluice_metrics_names_t *names);
uint32_t sluice_metrics_names_count(const sluice_metrics_names_t *names);
size_t sluice_metrics_write(const sluice_metrics_names_t *names,
    const sluice_exposition_row_t *row, uint32_t *next, char *out,
    size_t size);

/* FFI end */


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


typedef struct {
    sluice_metrics_line_t  node;
    uint64_t               counts[SLUICE_METRICS_COUNTS];
    uint32_t               ends[SLUICE_METRICS_KINDS];  /* of slots in use */
    uint64_t               zero[7];

    sluice_metrics_target_t  targets[SLUICE_METRICS_TARGETS];
} ngx_sluice_metrics_shard_t;


/* Behind the shards stand the lines: those of a shard and kind together. */

typedef struct {
    uint32_t                    series;         /* lines a shard and kind */
    uint32_t                    used;           /* shards ever taken */
    uint32_t                    count;          /* of shards */
    uint32_t                    zero[13];

    ngx_sluice_metrics_shard_t  shards[];
} ngx_sluice_metrics_t;


_Static_assert(sizeof(sluice_metrics_line_t) == 448, "whole cache lines");
_Static_assert(sizeof(sluice_metrics_sum_t) == sizeof(sluice_metrics_line_t)
               && offsetof(sluice_metrics_sum_t, answered)
                  == offsetof(sluice_metrics_line_t, answered),
               "the same but for what stands before the classes");
_Static_assert(sizeof(sluice_metrics_target_t) == 192, "whole cache lines");
_Static_assert(sizeof(ngx_sluice_metrics_shard_t)
               == 704 + 192 * SLUICE_METRICS_TARGETS, "whole cache lines");
_Static_assert(offsetof(ngx_sluice_metrics_t, shards) == 64, "a cache line");


/* Bytes of the memory; what nobody writes or reads takes none. */

#define ngx_sluice_metrics_size(shards, series)                               \
    (sizeof(ngx_sluice_metrics_t)                                             \
     + (size_t) (shards) * (sizeof(ngx_sluice_metrics_shard_t)                \
                            + (size_t) SLUICE_METRICS_KINDS * (series)        \
                              * sizeof(sluice_metrics_line_t)))


/* In shared memory, a part of a file; NULL without "sluice_control on". */

extern ngx_sluice_metrics_t  *ngx_sluice_metrics;
extern int                    ngx_sluice_metrics_fd;


/* This process's; where nothing is shared, memory of its own. */

extern ngx_sluice_metrics_shard_t  *ngx_sluice_metrics_shard;


#define ngx_sluice_metrics_add(what, n)                                       \
    (ngx_sluice_metrics_shard->counts[what] += (uint64_t) (n))


/* ngx_sluice_metrics.c */

ngx_int_t ngx_sluice_metrics_init_process(ngx_cycle_t *cycle);
sluice_metrics_line_t *ngx_sluice_metrics_line(ngx_uint_t kind, uint32_t slot,
    uint32_t generation);
void ngx_sluice_metrics_prefetch(ngx_uint_t kind, uint32_t slot,
    ngx_uint_t number);
ngx_uint_t ngx_sluice_metrics_entity(ngx_uint_t kind, uint32_t slot,
    uint32_t generation, ngx_uint_t from, ngx_uint_t to, uint64_t *sums);

/* ngx_sluice_metrics_targets.c */

void ngx_sluice_metrics_fail(const ngx_str_t *address, ngx_uint_t reason,
    ngx_uint_t tries);


#endif /* NGX_SLUICE_METRICS_H_INCLUDED */
