
/*
 * Shards and lines of what is counted, and their sums (ngx_sluice_metrics.h).
 */


#include "ngx_sluice_timer.h"
#include "ngx_sluice_metrics.h"


/* Of a line, and of a sum. */

#define NGX_SLUICE_METRICS_NUMBERS                                            \
    (sizeof(sluice_metrics_sum_t) / sizeof(uint64_t))


#define NGX_SLUICE_METRICS_WAIT  1000          /* ms, for a shard */


static ngx_int_t ngx_sluice_metrics_find(ngx_sluice_metrics_t *shared);
static void ngx_sluice_metrics_wait_handler(ngx_event_t *e);
static void ngx_sluice_metrics_bring(void);
static void ngx_sluice_metrics_bring_target(
    const sluice_metrics_target_t *target);
static ngx_int_t ngx_sluice_metrics_lock(int command, ngx_uint_t shard,
    struct flock *lock);
static void ngx_sluice_metrics_take(ngx_sluice_metrics_t *shared,
    ngx_uint_t shard);
static sluice_metrics_line_t *ngx_sluice_metrics_place(
    ngx_sluice_metrics_t *shared, ngx_uint_t shard, ngx_uint_t kind,
    uint32_t slot);
static ngx_uint_t ngx_sluice_metrics_is_held(ngx_uint_t shard);
static void ngx_sluice_metrics_sum(uint64_t *sums,
    const sluice_metrics_line_t *line, ngx_uint_t from, ngx_uint_t to);


static ngx_sluice_metrics_shard_t  ngx_sluice_metrics_own;
static ngx_uint_t                  ngx_sluice_metrics_index;

/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_metrics_none = { .fd = (ngx_socket_t) -1 };
static ngx_event_t       ngx_sluice_metrics_wait;

ngx_sluice_metrics_t       *ngx_sluice_metrics;
int                         ngx_sluice_metrics_fd = -1;
ngx_sluice_metrics_shard_t  *ngx_sluice_metrics_shard =
    &ngx_sluice_metrics_own;


/* Takes a shard; without "sluice_control on", none. */

ngx_int_t
ngx_sluice_metrics_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t           *e;
    ngx_sluice_metrics_t  *shared;

    shared = ngx_sluice_metrics;

    ngx_sluice_timer_counts =
                    &ngx_sluice_metrics_own.counts[SLUICE_METRICS_TIMER_RUNS];

    if (shared == NULL || ngx_sluice_metrics_find(shared) == NGX_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                  "sluice: no slot for the counts of this worker: /metrics "
                  "lacks them until another worker has left");

    if (ngx_process == NGX_PROCESS_WORKER) {
        e = &ngx_sluice_metrics_wait;
        e->handler = ngx_sluice_metrics_wait_handler;
        e->log = cycle->log;
        e->data = &ngx_sluice_metrics_none;
        e->cancelable = 1;

        ngx_add_timer(e, NGX_SLUICE_METRICS_WAIT);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_metrics_find(ngx_sluice_metrics_t *shared)
{
    ngx_uint_t    i;
    struct flock  lock;

    for (i = 0; i < shared->count; i++) {

        if (ngx_sluice_metrics_lock(F_SETLK, i, &lock) == NGX_OK) {
            ngx_sluice_metrics_take(shared, i);
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static void
ngx_sluice_metrics_wait_handler(ngx_event_t *e)
{
    if (ngx_sluice_metrics_find(ngx_sluice_metrics) != NGX_OK) {
        ngx_add_timer(e, NGX_SLUICE_METRICS_WAIT);
        return;
    }

    ngx_sluice_metrics_bring();

    ngx_log_error(NGX_LOG_NOTICE, e->log, 0,
                  "sluice: this worker has a slot for its counts");
}


/* What was counted without a shard.  Of routes and services nothing was. */

static void
ngx_sluice_metrics_bring(void)
{
    ngx_uint_t                   i;
    uint64_t                    *to;
    const uint64_t              *from;
    ngx_sluice_metrics_shard_t  *shard;

    shard = ngx_sluice_metrics_shard;

    shard->node.unanswered += ngx_sluice_metrics_own.node.unanswered;

    to = (uint64_t *) &shard->node;
    from = (const uint64_t *) &ngx_sluice_metrics_own.node;

    for (i = 1; i < NGX_SLUICE_METRICS_NUMBERS; i++) {
        to[i] += from[i];
    }

    for (i = 0; i < SLUICE_METRICS_COUNTS; i++) {
        shard->counts[i] += ngx_sluice_metrics_own.counts[i];
    }

    for (i = 0; i < SLUICE_METRICS_TARGETS; i++) {
        ngx_sluice_metrics_bring_target(&ngx_sluice_metrics_own.targets[i]);
    }
}


static void
ngx_sluice_metrics_bring_target(const sluice_metrics_target_t *target)
{
    ngx_str_t   address;
    ngx_uint_t  i;

    address.data = (u_char *) target->address;
    address.len = ngx_strlen(target->address);

    for (i = 0; i < SLUICE_METRICS_REASONS; i++) {
        if (target->failed[i]) {
            ngx_sluice_metrics_fail(&address, i, target->failed[i]);
        }
    }
}


static ngx_int_t
ngx_sluice_metrics_lock(int command, ngx_uint_t shard, struct flock *lock)
{
    ngx_memzero(lock, sizeof(struct flock));
    lock->l_type = F_WRLCK;
    lock->l_whence = SEEK_SET;
    lock->l_start = (off_t) shard;
    lock->l_len = 1;

    return fcntl(ngx_sluice_metrics_fd, command, lock) == -1 ? NGX_ERROR
                                                             : NGX_OK;
}


static void
ngx_sluice_metrics_take(ngx_sluice_metrics_t *shared, ngx_uint_t shard)
{
    uint32_t  used;

    ngx_sluice_metrics_index = shard;
    ngx_sluice_metrics_shard = &shared->shards[shard];
    ngx_sluice_timer_counts =
                  &ngx_sluice_metrics_shard->counts[SLUICE_METRICS_TIMER_RUNS];

    /* a gauge is not inherited */
    ngx_sluice_metrics_shard->counts[SLUICE_METRICS_POOL_IDLE] = 0;

    do {
        used = shared->used;
    } while (used <= shard
             && !__sync_bool_compare_and_swap(&shared->used, used,
                                              (uint32_t) shard + 1));
}


/*
 * This worker's line of an entity; NULL: it has none, or the slot is another's
 * by now.
 */

sluice_metrics_line_t *
ngx_sluice_metrics_line(ngx_uint_t kind, uint32_t slot, uint32_t generation)
{
    uint32_t               *end;
    ngx_sluice_metrics_t   *shared;
    sluice_metrics_line_t  *line;

    shared = ngx_sluice_metrics;

    if (shared == NULL || slot >= shared->series
        || ngx_sluice_metrics_shard == &ngx_sluice_metrics_own)
    {
        return NULL;
    }

    line = ngx_sluice_metrics_place(shared, ngx_sluice_metrics_index, kind,
                                    slot);

    if (line->stamp == generation + 1) {
        return line;
    }

    if (line->stamp && (int32_t) (generation + 1 - line->stamp) < 0) {
        return NULL;
    }

    end = &ngx_sluice_metrics_shard->ends[kind];
    __atomic_store_n(end, ngx_max(*end, slot + 1), __ATOMIC_RELAXED);

    /* readers look at the stamp before and after the counts */

    __atomic_store_n(&line->stamp, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    ngx_memzero(&line->unanswered, sizeof(*line)
                - offsetof(sluice_metrics_line_t, unanswered));

    __atomic_store_n(&line->stamp, generation + 1, __ATOMIC_RELEASE);

    return line;
}


static sluice_metrics_line_t *
ngx_sluice_metrics_place(ngx_sluice_metrics_t *shared, ngx_uint_t shard,
    ngx_uint_t kind, uint32_t slot)
{
    sluice_metrics_line_t  *lines;

    lines = (sluice_metrics_line_t *) &shared->shards[shared->count];

    return &lines[(shard * SLUICE_METRICS_KINDS + kind) * shared->series
                  + slot];
}


/* How many routes, and services, have lines: those of the lowest slots. */

uint32_t
sluice_metrics_limit(void)
{
    ngx_sluice_metrics_t  *shared;

    shared = ngx_sluice_metrics;

    return shared ? shared->series : 0;
}


/* The node's: sums of all shards. */

void
sluice_metrics_node(sluice_metrics_sum_t *sum, uint64_t *counts)
{
    ngx_uint_t                   i, k;
    ngx_sluice_metrics_t        *shared;
    ngx_sluice_metrics_shard_t  *shard;

    ngx_memzero(sum, sizeof(sluice_metrics_sum_t));
    ngx_memzero(counts, SLUICE_METRICS_COUNTS * sizeof(uint64_t));

    shared = ngx_sluice_metrics;

    for (i = 0; shared && i < shared->used; i++) {
        shard = &shared->shards[i];

        ngx_sluice_metrics_sum((uint64_t *) sum, &shard->node, 0,
                               NGX_SLUICE_METRICS_NUMBERS);

        for (k = 0; k < SLUICE_METRICS_POOL_IDLE; k++) {
            counts[k] += shard->counts[k];
        }

        if (ngx_sluice_metrics_is_held(i)) {
            counts[k] += shard->counts[k];
        }
    }
}


static ngx_uint_t
ngx_sluice_metrics_is_held(ngx_uint_t shard)
{
    struct flock  lock;

    if (&ngx_sluice_metrics->shards[shard]
        == ngx_sluice_metrics_shard)
    {
        return 1;
    }

    return ngx_sluice_metrics_lock(F_GETLK, shard, &lock) == NGX_OK
           && lock.l_type != F_UNLCK;
}


/* What will be read of an entity soon: stamps, and numbers from this on. */

void
ngx_sluice_metrics_prefetch(ngx_uint_t kind, uint32_t slot, ngx_uint_t number)
{
    ngx_uint_t              i;
    ngx_sluice_metrics_t   *shared;
    sluice_metrics_line_t  *line;

    shared = ngx_sluice_metrics;

    for (i = 0; shared && i < shared->used; i++) {

        if (slot < shared->shards[i].ends[kind]) {
            line = ngx_sluice_metrics_place(shared, i, kind, slot);

            __builtin_prefetch(line);
            __builtin_prefetch((uint64_t *) line + number);
        }
    }
}


/*
 * Of a route or service, those numbers of a sluice_metrics_sum_t which are
 * asked for: a scrape needs few at a time, and lines are cold.  0: nobody has
 * counted anything of it.
 */

ngx_uint_t
ngx_sluice_metrics_entity(ngx_uint_t kind, uint32_t slot, uint32_t generation,
    ngx_uint_t from, ngx_uint_t to, uint64_t *sums)
{
    uint32_t                stamp;
    ngx_uint_t              i, found;
    ngx_sluice_metrics_t   *shared;
    sluice_metrics_line_t  *line, copy;

    found = 0;
    shared = ngx_sluice_metrics;

    if (shared == NULL || slot >= shared->series) {
        return 0;
    }

    ngx_memzero(&sums[from], (to - from) * sizeof(uint64_t));

    for (i = 0; i < shared->used; i++) {

        if (slot >= shared->shards[i].ends[kind]) {
            continue;
        }

        line = ngx_sluice_metrics_place(shared, i, kind, slot);

        stamp = __atomic_load_n(&line->stamp, __ATOMIC_ACQUIRE);
        if (stamp != generation + 1) {
            continue;
        }

        ngx_memcpy((uint64_t *) &copy + from, (uint64_t *) line + from,
                   (to - from) * sizeof(uint64_t));
        __atomic_thread_fence(__ATOMIC_ACQUIRE);

        if (__atomic_load_n(&line->stamp, __ATOMIC_RELAXED) == stamp) {
            ngx_sluice_metrics_sum(sums, &copy, from, to);
            found = 1;
        }
    }

    return found;
}


static void
ngx_sluice_metrics_sum(uint64_t *sums, const sluice_metrics_line_t *line,
    ngx_uint_t from, ngx_uint_t to)
{
    ngx_uint_t       i;
    const uint64_t  *numbers;

    numbers = (const uint64_t *) line;

    for (i = from; i < to; i++) {
        sums[i] += i ? numbers[i] : line->unanswered;
    }
}


/* 0: this nginx does not count them. */

int
sluice_metrics_connections(sluice_metrics_connections_t *connections)
{
#if (NGX_STAT_STUB)

    connections->accepted = *ngx_stat_accepted;
    connections->handled = *ngx_stat_handled;
    connections->active = *ngx_stat_active;
    connections->reading = *ngx_stat_reading;
    connections->writing = *ngx_stat_writing;
    connections->waiting = *ngx_stat_waiting;
    connections->total = *ngx_stat_requests;

    return 1;

#else

    ngx_memzero(connections, sizeof(sluice_metrics_connections_t));

    return 0;

#endif
}


/* One more of sluice_metrics_count_e. */

void
sluice_metrics_count(int what)
{
    ngx_sluice_metrics_add(what, 1);
}
