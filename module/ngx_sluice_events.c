
/*
 * The log in a worker's event loop: how a worker comes to a slot, is woken,
 * reads, and leaves.
 *
 * A sleeping worker is woken by its eventfd, which is an ordinary connection
 * to nginx; the handler posts the semaphore on which the Lua dispatcher waits,
 * if it does.  A worker that wakes itself does so by a posted event instead of
 * a system call.  Nothing here has a timer while there is nothing to do.
 */


#include "ngx_sluice_events.h"


static void ngx_sluice_events_setup(sluice_events_t *ev);
static void ngx_sluice_events_wake(void *data, uint32_t slot);
static void ngx_sluice_events_read_handler(ngx_event_t *rev);
static void ngx_sluice_events_wakeup_handler(ngx_event_t *e);
static void ngx_sluice_events_retry_handler(ngx_event_t *e);
static void ngx_sluice_events_linger_handler(ngx_event_t *e);
static void ngx_sluice_events_loosen(void);
static void ngx_sluice_events_unread_handler(ngx_event_t *e);
static ngx_int_t ngx_sluice_events_connect(sluice_events_t *ev);
static void ngx_sluice_events_disconnect(sluice_events_t *ev);
static void ngx_sluice_events_ready(sluice_events_t *ev);
static void ngx_sluice_events_leave(sluice_events_t *ev);
static void ngx_sluice_events_post_soon(ngx_event_t *e);
static void ngx_sluice_events_copy_counts(sluice_events_t *ev);
static ngx_uint_t ngx_sluice_events_has_worker(void);


static sluice_events_t  ngx_sluice_events[NGX_SLUICE_EVENTS_VMS];
static ngx_event_t      ngx_sluice_events_unread;


ngx_int_t
ngx_sluice_events_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t  i;

    if (!ngx_sluice_log.ready) {
        return NGX_OK;
    }

    if (ngx_process != NGX_PROCESS_SINGLE) {

        /* not for the programs that a worker might execute */

        (void) fcntl(ngx_sluice_log.ring.fd, F_SETFD, FD_CLOEXEC);

        for (i = 0; i < SLUICE_RING_SLOTS; i++) {
            (void) fcntl(ngx_sluice_log.fds[i], F_SETFD, FD_CLOEXEC);
        }
    }

    if (ngx_sluice_events_has_worker()) {
        ngx_sluice_events_unread.handler = ngx_sluice_events_unread_handler;
        ngx_sluice_events_unread.log = cycle->log;

        ngx_post_event(&ngx_sluice_events_unread, &ngx_posted_next_events);
    }

    return NGX_OK;
}


/*
 * The log keeps what was published since this generation began until all of
 * its workers have attached.  One that has no use for events says so here,
 * when init_worker_by_lua is over.
 */

static void
ngx_sluice_events_unread_handler(ngx_event_t *e)
{
    uint64_t       missed;
    ngx_uint_t     i;
    sluice_ring_t  ring;

    for (i = 0; i < NGX_SLUICE_EVENTS_VMS; i++) {
        if (ngx_sluice_events[i].attached) {
            return;
        }
    }

    ring = ngx_sluice_log.ring;

    if (sluice_ring_attach(&ring, ngx_sluice_log.generation,
                           (uint16_t) ngx_worker, &missed)
        == SLUICE_OK)
    {
        sluice_ring_detach(&ring);
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


int
sluice_events_abi(void)
{
    return NGX_SLUICE_EVENTS_ABI;
}


size_t
sluice_events_sizeof(int what)
{
    switch (what) {

    case 0:
        return sizeof(sluice_ring_frame_t);

    case 1:
        return sizeof(sluice_ring_stats_t);

    case 2:
        return sizeof(sluice_ring_slot_stats_t);

    default:
        return offsetof(sluice_events_t, ring);
    }
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
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}


/* This process's end for publishing; NULL in one that has no log. */

sluice_events_t *
sluice_events_open(int vm)
{
    sluice_events_t  *ev;

    if (!ngx_sluice_log.ready || vm < 0 || vm >= NGX_SLUICE_EVENTS_VMS) {
        return NULL;
    }

    ev = &ngx_sluice_events[vm];

    if (!ev->open) {
        ngx_sluice_events_setup(ev);
    }

    return ev;
}


static void
ngx_sluice_events_setup(sluice_events_t *ev)
{
    ngx_memzero(ev, sizeof(sluice_events_t));

    ev->ring = ngx_sluice_log.ring;
    ev->worker = ngx_sluice_events_has_worker() ? (uint16_t) ngx_worker
                                                : SLUICE_RING_AGENT;

    /* unlike those of others that have no slot yet */
    ev->last_message = (uint32_t) ngx_pid << 12;

    ev->max_count = 10000;
    ev->max_bytes = 64 * 1024 * 1024;

    ngx_queue_init(&ev->waiting);

    ev->wakeup.handler = ngx_sluice_events_wakeup_handler;
    ev->wakeup.data = ev;
    ev->wakeup.log = ngx_cycle->log;

    ev->retry.handler = ngx_sluice_events_retry_handler;
    ev->retry.data = ev;
    ev->retry.log = ngx_cycle->log;

    ev->linger.handler = ngx_sluice_events_linger_handler;
    ev->linger.data = ev;
    ev->linger.log = ngx_cycle->log;

    sluice_ring_set_wake(&ev->ring, ngx_sluice_events_wake, ev);

    ev->open = 1;
}


/*
 * Takes a slot and begins to listen to its eventfd.  missed: events that the
 * log no longer holds for this worker; below 0: another log was used before.
 */

int
sluice_events_attach(sluice_events_t *ev, void *semaphore,
    ngx_sluice_post_pt post, double *missed)
{
    int         rc;
    uint64_t    n;
    ngx_uint_t  i;

    if (ev->attached) {
        return SLUICE_OK;
    }

    sluice_ring_set_redeliver(&ev->ring, ngx_sluice_events_redeliver, ev);

    /* the lock is held for microseconds, unless its holder is stopped */

    for (i = 0; i < 100; i++) {
        rc = sluice_ring_attach(&ev->ring, ngx_sluice_log.generation,
                                ev->worker, &n);
        if (rc != SLUICE_BUSY) {
            break;
        }
    }

    if (rc != SLUICE_OK) {
        return rc;
    }

    ev->semaphore = semaphore;
    ev->post = post;

    if (ngx_sluice_events_connect(ev) != NGX_OK) {
        sluice_ring_detach(&ev->ring);
        return SLUICE_SYSTEM;
    }

    *missed = n;

    if (ngx_sluice_log.renewed) {
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

    if (ev->retry.timer_set) {
        ngx_del_timer(&ev->retry);
    }

    if (ev->linger.timer_set) {
        ngx_del_timer(&ev->linger);
    }

    if (ev->wakeup.posted) {
        ngx_delete_posted_event(&ev->wakeup);
    }

    ev->attached = 0;
    ev->parked = 0;
    ev->open = 0;
}


static ngx_int_t
ngx_sluice_events_connect(sluice_events_t *ev)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(ngx_sluice_log.fds[ev->ring.index], ngx_cycle->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = ev;
    c->read->handler = ngx_sluice_events_read_handler;
    c->read->log = ngx_cycle->log;
    c->write->log = ngx_cycle->log;

    /* nginx calls the handler when a graceful exit begins */
    c->idle = 1;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        return NGX_ERROR;
    }

    ev->connection = c;

    return NGX_OK;
}


/* The eventfd stays open: it belongs to the slot. */

static void
ngx_sluice_events_disconnect(sluice_events_t *ev)
{
    ngx_connection_t  *c;

    c = ev->connection;
    ev->connection = NULL;

    if (c->read->active) {
        (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
    }

    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }

    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;
}


/* A wake function of the ring: called by publishing and reading. */

static void
ngx_sluice_events_wake(void *data, uint32_t slot)
{
    sluice_events_t *ev = data;

    if (slot == ev->ring.index) {
        ngx_sluice_events_post_soon(&ev->wakeup);
        return;
    }

    sluice_ring_wake_fds(ngx_sluice_log.fds, slot);
}


/*
 * In this turn of the loop, once it turns.  Before its first turn, and after a
 * graceful exit has begun, nginx sleeps without a look at the posted events,
 * but not with a look at those for the next turn.
 */

static void
ngx_sluice_events_post_soon(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    if (ev->looping && !ngx_exiting) {
        ngx_post_event(e, &ngx_posted_events);

    } else {
        ngx_post_event(e, &ngx_posted_next_events);
    }
}


static void
ngx_sluice_events_read_handler(ngx_event_t *rev)
{
    uint64_t           n;
    ngx_connection_t  *c;
    sluice_events_t   *ev;

    c = rev->data;
    ev = c->data;

    if (c->close) {
        c->close = 0;
        ngx_sluice_grace_begin((ngx_cycle_t *) ngx_cycle);
        ngx_sluice_events_leave(ev);
        return;
    }

    ev->looping = 1;

    /*
     * epoll tells of each write by its edge, so there is no need to read the
     * sum; it takes 2^64 writes to fill it.
     */

    if (!(ngx_event_flags & NGX_USE_CLEAR_EVENT)) {

        if (read(c->fd, &n, sizeof(n)) == -1 && ngx_errno != NGX_EAGAIN) {
            ngx_log_error(NGX_LOG_ALERT, rev->log, ngx_errno,
                          "sluice: read() from an eventfd failed");
        }

        if (ngx_handle_read_event(rev, 0) != NGX_OK) {
            ngx_log_error(NGX_LOG_ALERT, rev->log, 0,
                          "sluice: no wakeups any more");
        }
    }

    ngx_sluice_events_ready(ev);
}


static void
ngx_sluice_events_wakeup_handler(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    ev->looping = 1;

    ngx_sluice_events_ready(ev);
}


static void
ngx_sluice_events_ready(sluice_events_t *ev)
{
    if (ev->count) {
        ngx_sluice_events_flush(ev);
    }

    if (ev->parked) {
        ev->parked = 0;
        (void) ev->post(ev->semaphore, 1);
    }
}


static void
ngx_sluice_events_retry_handler(ngx_event_t *e)
{
    ngx_sluice_events_flush(e->data);
}


/*
 * A graceful exit has begun.  The waiting dispatcher does not hold it up, so
 * what is in the log already gets a moment to be delivered.  A worker that has
 * requests left stays, and goes on to hear events.
 */

static void
ngx_sluice_events_leave(sluice_events_t *ev)
{
    ev->leaving = ngx_current_msec;

    ngx_sluice_events_loosen();
    ngx_sluice_events_post_soon(&ev->wakeup);

    if (!ev->linger.timer_set) {
        ngx_add_timer(&ev->linger, 1);
    }
}


static void
ngx_sluice_events_linger_handler(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    ngx_sluice_events_loosen();

    if (!ev->parked
        && ngx_current_msec - ev->leaving < NGX_SLUICE_EVENTS_LINGER)
    {
        ngx_add_timer(e, 1);
        return;
    }

    /* from here on only for contexts that begin to wait later */

    e->cancelable = 1;
    ngx_add_timer(e, NGX_SLUICE_EVENTS_LOOSEN);
}


/*
 * Contexts that wait for events do so "for ever": some weeks, and nginx does
 * not end a worker with a timer.  These timers shall not count.
 */

static void
ngx_sluice_events_loosen(void)
{
    ngx_event_t        *timer;
    ngx_rbtree_node_t  *node;

    if (ngx_event_timer_rbtree.root == ngx_event_timer_rbtree.sentinel) {
        return;
    }

    for (node = ngx_rbtree_min(ngx_event_timer_rbtree.root,
                               ngx_event_timer_rbtree.sentinel);
         node;
         node = ngx_rbtree_next(&ngx_event_timer_rbtree, node))
    {
        if ((ngx_msec_int_t) (node->key - ngx_current_msec)
            > NGX_SLUICE_EVENTS_FAR)
        {
            timer = ngx_rbtree_data(node, ngx_event_t, timer);
            timer->cancelable = 1;
        }
    }
}


/*
 * Everything handed out before has been used; the number of frames that are
 * in ev->frames now.  0: none, and this process will be woken: wait for the
 * semaphore.  SLUICE_OVERRUN, SLUICE_BAD: rejoin.
 */

int
sluice_events_next(sluice_events_t *ev)
{
    int  rc;

    if (!ev->attached) {
        return SLUICE_NOSLOT;
    }

    ev->parked = 0;

    if (ev->batch) {
        rc = sluice_ring_advance(&ev->ring, &ev->frames[ev->batch - 1]);
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
            }

            return rc;
        }

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
        ev->parked = 1;
        ngx_post_event(&ev->wakeup, &ngx_posted_next_events);
    }
}


void
ngx_sluice_events_count(sluice_events_t *ev, int counter, uint64_t n)
{
    uint64_t  *counters;

    counters = sluice_ring_counters(&ev->ring);

    if (counters) {
        counters[counter] += n;
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
