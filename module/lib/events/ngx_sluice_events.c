
/*
 * A worker's end of the log: how it comes to a slot, reads, and leaves.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_events.h"


/* For the lock, which is held for microseconds, or its holder is stopped. */
#define NGX_SLUICE_EVENTS_TRIES  100


static void ngx_sluice_events_setup(sluice_events_t *ev, int vm);
static void ngx_sluice_events_mark(void);
static void ngx_sluice_events_started_handler(ngx_event_t *e);
static void ngx_sluice_events_copy_counts(sluice_events_t *ev);
static void ngx_sluice_events_disarm(sluice_events_t *ev);
static ngx_uint_t ngx_sluice_events_has_worker(void);


static sluice_events_t  ngx_sluice_events[NGX_SLUICE_EVENTS_VMS];
static ngx_event_t      ngx_sluice_events_started;


ngx_int_t
ngx_sluice_events_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t  i;

    if (!ngx_sluice_ring.ready) {
        return NGX_OK;
    }

    if (ngx_process != NGX_PROCESS_SINGLE) {

        /* not for the programs that a worker might execute */

        (void) fcntl(ngx_sluice_ring.ring.fd, F_SETFD, FD_CLOEXEC);

        (void) fcntl(ngx_sluice_ring.alarm, F_SETFD, FD_CLOEXEC);

        for (i = 0; i < ngx_sluice_ring.ring.count; i++) {
            (void) fcntl(ngx_sluice_ring.fds[i], F_SETFD, FD_CLOEXEC);
        }
    }

    ngx_sluice_events_mark();

    if (ngx_sluice_events_has_worker()) {
        ngx_sluice_events_started.handler = ngx_sluice_events_started_handler;
        ngx_sluice_events_started.log = cycle->log;

        ngx_post_event(&ngx_sluice_events_started, &ngx_posted_next_events);
    }

    return NGX_OK;
}


/*
 * Where this process begins to read, whenever its Lua comes to attach, and in
 * whichever machine.  A helper belongs to no generation: most have no Lua, and
 * the privileged agent attaches when it starts.
 */

static void
ngx_sluice_events_mark(void)
{
    uint32_t    generation;
    ngx_uint_t  i;

    generation = ngx_sluice_events_has_worker() ? ngx_sluice_ring.generation
                                                : 0;

    for (i = 0; i < NGX_SLUICE_EVENTS_TRIES; i++) {
        if (sluice_ring_mark(&ngx_sluice_ring.ring, generation,
                             (uint16_t) ngx_worker)
            == SLUICE_OK)
        {
            return;
        }
    }
}


/*
 * init_worker_by_lua is over.  Until all workers have come here, or attached,
 * the log keeps what was published since their generation began.
 */

static void
ngx_sluice_events_started_handler(ngx_event_t *e)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_SLUICE_EVENTS_TRIES; i++) {
        if (sluice_ring_pass(&ngx_sluice_ring.ring, ngx_sluice_ring.generation,
                             (uint16_t) ngx_worker)
            == SLUICE_OK)
        {
            return;
        }
    }
}


void
ngx_sluice_events_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_SLUICE_EVENTS_VMS; i++) {
        if (ngx_sluice_events[i].open) {
            sluice_events_detach(&ngx_sluice_events[i]);
        }
    }

    /*
     * The dispatcher still waits for its semaphore when the machine closes.
     * The Lua module alerts of that, save in a process that was told to quit;
     * so was this one, but the worker's loop has taken the mark away.
     */

    if (ngx_exiting) {
        ngx_quit = 1;
    }
}


static ngx_uint_t
ngx_sluice_events_has_worker(void)
{
    return ngx_process == NGX_PROCESS_WORKER
           || ngx_process == NGX_PROCESS_SINGLE;
}


const char *
sluice_events_word(int rc)
{
    return sluice_ring_word(rc);
}


/* Seconds that only grow. */

double
sluice_events_clock(void)
{
    return (double) ngx_sluice_clock_ns(CLOCK_MONOTONIC) * 1e-9;
}


/* This process's end for publishing; NULL in one that has no log. */

sluice_events_t *
sluice_events_open(int vm)
{
    sluice_events_t  *ev;

    if (!ngx_sluice_ring.ready || vm < 0 || vm >= NGX_SLUICE_EVENTS_VMS) {
        return NULL;
    }

    ev = &ngx_sluice_events[vm];

    if (!ev->open) {
        ngx_sluice_events_setup(ev, vm);
    }

    return ev;
}


static void
ngx_sluice_events_setup(sluice_events_t *ev, int vm)
{
    ngx_memzero(ev, sizeof(sluice_events_t));

    ngx_sluice_events_mark();

    ev->generation = ngx_sluice_ring.generation;
    ev->workers = ngx_sluice_ring.workers;

    ev->vm = vm;
    ev->ring = ngx_sluice_ring.ring;
    ev->worker = ngx_sluice_events_has_worker() ? (uint16_t) ngx_worker
                                                : SLUICE_RING_AGENT;

    /* unlike those of others that have no slot yet */
    ev->last_message = (uint32_t) ngx_pid << 12;

    ev->max_count = 10000;
    ev->max_bytes = 64 * 1024 * 1024;

    ngx_queue_init(&ev->waiting);

    ngx_sluice_events_prepare(ev);

    ev->open = 1;
}


/*
 * Takes a slot and begins to listen to its eventfd.  missed: events that the
 * log no longer holds for this worker; below 0: another log was used before.
 */

int
sluice_events_attach(sluice_events_t *ev, void *semaphore, void *spare,
    ngx_sluice_post_pt post, ngx_sluice_count_pt count_of, double *missed)
{
    int         rc;
    uint64_t    n;
    ngx_uint_t  i;

    if (ev->attached) {
        return SLUICE_OK;
    }

    sluice_ring_set_redeliver(&ev->ring, ngx_sluice_events_redeliver, ev);

    for (i = 0; i < NGX_SLUICE_EVENTS_TRIES; i++) {
        rc = sluice_ring_attach(&ev->ring, ngx_sluice_ring.generation,
                                ev->worker, &n);
        if (rc != SLUICE_BUSY) {
            break;
        }
    }

    if (rc != SLUICE_OK) {
        return rc;
    }

    ev->semaphore = semaphore;
    ev->spare = spare;
    ev->post = post;
    ev->count_of = count_of;

    if (ngx_sluice_events_connect(ev) != NGX_OK) {
        sluice_ring_detach(&ev->ring);
        return SLUICE_SYSTEM;
    }

    *missed = n;

    if (ngx_sluice_ring.renewed) {
        *missed = -1;
    }

    ev->attached = 1;

    return SLUICE_OK;
}


/* When the process ends, or its Lua machine alone (HUP without a master). */

void
sluice_events_detach(sluice_events_t *ev)
{
    ngx_queue_t           *q;
    ngx_sluice_waiting_t  *w;

    if (!ev->open) {
        return;
    }

    ngx_sluice_events_flush(ev);

    if (ev->count) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "sluice: %ui events were still queued at exit",
                      ev->count);
    }

    while (!ngx_queue_empty(&ev->waiting)) {
        q = ngx_queue_head(&ev->waiting);
        w = ngx_queue_data(q, ngx_sluice_waiting_t, queue);
        ngx_queue_remove(q);
        ngx_free(w);
    }

    if (ev->attached) {
        ngx_sluice_events_disconnect(ev);
        sluice_ring_detach(&ev->ring);
    }

    ngx_sluice_events_forget(ev);

    ev->attached = 0;
    ev->parked = 0;
    ev->open = 0;
}


/*
 * What was handed out before has been used, but for the last ev->lost, which
 * are missed; the number of frames that are in ev->frames now.  While there
 * are some, an event is posted that nginx's loop comes to only if a callback
 * yields.  0: none, and this process will be woken: wait for the semaphore.
 * SLUICE_OVERRUN, SLUICE_BAD: rejoin.
 */

int
sluice_events_next(sluice_events_t *ev)
{
    int  rc, used;

    if (!ev->attached) {
        return SLUICE_NOSLOT;
    }

    ev->parked = 0;

    used = ev->batch - ev->lost;

    if (ev->batch && used <= 0) {
        ev->batch = 0;
        return SLUICE_OVERRUN;
    }

    if (ev->batch) {
        /* all of it: frames for other workers follow the last one, too */

        rc = sluice_ring_advance(&ev->ring,
                                 ev->lost ? &ev->frames[used - 1] : NULL);
        ev->batch = 0;

        if (rc != SLUICE_OK) {
            return rc;
        }
    }

    for ( ;; ) {

        /* turns again only if something was published in between */

        rc = sluice_ring_next_batch(&ev->ring, ev->frames,
                                    NGX_SLUICE_EVENTS_BATCH);
        if (rc != 0) {
            if (rc > 0) {
                ev->batch = rc;
                ngx_post_event(&ev->yielded, &ngx_posted_events);
            }

            return rc;
        }

        ngx_sluice_events_disarm(ev);

        rc = sluice_ring_sleep(&ev->ring);

        if (rc == SLUICE_NONE) {
            ngx_sluice_events_copy_counts(ev);
            ev->parked = 1;
            return 0;
        }

        if (rc != SLUICE_OK) {
            return rc;
        }
    }
}


/* Whether what was read of the current batch was whole. */

int
sluice_events_intact(sluice_events_t *ev)
{
    return sluice_ring_intact(&ev->ring);
}


int
sluice_events_rejoin(sluice_events_t *ev, double *missed)
{
    int       rc;
    uint64_t  n;

    ev->batch = 0;

    rc = sluice_ring_rejoin(&ev->ring, &n);

    *missed = (double) n;

    return rc;
}


int
sluice_events_claim(sluice_events_t *ev, const sluice_ring_frame_t *frame)
{
    return sluice_ring_claim(&ev->ring, frame);
}


void
sluice_events_done(sluice_events_t *ev, const sluice_ring_frame_t *frame)
{
    if (ev->attached) {
        sluice_ring_done(&ev->ring, frame);
    }
}


/* The dispatcher's time is over: it is to be woken in the loop's next turn. */

void
sluice_events_pause(sluice_events_t *ev)
{
    if (ev->open) {
        ngx_sluice_events_copy_counts(ev);
        ngx_sluice_events_disarm(ev);
        ev->parked = 1;
        ngx_post_event(&ev->wakeup, &ngx_posted_next_events);
    }
}


static void
ngx_sluice_events_disarm(sluice_events_t *ev)
{
    if (ev->yielded.posted) {
        ngx_delete_posted_event(&ev->yielded);
    }
}


static void
ngx_sluice_events_copy_counts(sluice_events_t *ev)
{
    uint64_t  *counters;

    counters = sluice_ring_counters(&ev->ring);

    if (counters) {
        counters[NGX_SLUICE_C_DELIVERED] = (uint64_t) ev->delivered;
        counters[NGX_SLUICE_C_FAILED] = (uint64_t) ev->failed;
        counters[NGX_SLUICE_C_WAITING] = ev->count;
        counters[NGX_SLUICE_C_WAITING_BYTES] = ev->bytes;
    }
}


void
sluice_events_stats(sluice_events_t *ev, sluice_ring_stats_t *stats)
{
    ngx_sluice_events_copy_counts(ev);
    sluice_ring_stats(&ev->ring, stats);
}


int
sluice_events_slot_stats(sluice_events_t *ev, uint32_t slot,
    sluice_ring_slot_stats_t *stats)
{
    return sluice_ring_slot_stats(&ev->ring, slot, stats);
}
