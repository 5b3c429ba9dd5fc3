
/*
 * The log in a worker's event loop.
 *
 * A sleeping worker is woken by its eventfd, which is an ordinary connection
 * to nginx; the handler posts the semaphore on which the Lua dispatcher waits,
 * if it does.  A worker that wakes itself does so by a posted event instead of
 * a system call.  Nothing here has a timer while there is nothing to do.
 */


#include "ngx_sluice_events.h"
#include "ngx_sluice_loop.h"


static void ngx_sluice_events_wake(void *data, uint32_t slot);
static void ngx_sluice_events_read_handler(ngx_event_t *rev);
static void ngx_sluice_events_alarm_handler(ngx_event_t *rev);
static void ngx_sluice_events_wakeup_handler(ngx_event_t *e);
static void ngx_sluice_events_yielded_handler(ngx_event_t *e);
static void ngx_sluice_events_retry_handler(ngx_event_t *e);
static void ngx_sluice_events_linger_handler(ngx_event_t *e);
static void ngx_sluice_events_ready(sluice_events_t *ev);
static void ngx_sluice_events_leave(sluice_events_t *ev);
static void ngx_sluice_events_loosen(void);
static ngx_uint_t ngx_sluice_events_waits(void);


/* those that have an eventfd in the loop; beside them the alarm of all */
static sluice_events_t   *ngx_sluice_events_connected[NGX_SLUICE_EVENTS_VMS];
static ngx_connection_t  *ngx_sluice_events_alarm;

void  (*ngx_sluice_events_leaving)(ngx_cycle_t *cycle);


void
ngx_sluice_events_prepare(sluice_events_t *ev)
{
    ngx_sluice_loop_prepare(&ev->wakeup, ngx_sluice_events_wakeup_handler, ev);
    ngx_sluice_loop_prepare(&ev->turn, ngx_sluice_events_turn_handler, ev);
    ngx_sluice_loop_prepare(&ev->yielded, ngx_sluice_events_yielded_handler,
                            ev);
    ngx_sluice_loop_prepare(&ev->retry, ngx_sluice_events_retry_handler, ev);
    ngx_sluice_loop_prepare(&ev->linger, ngx_sluice_events_linger_handler, ev);

    sluice_ring_set_wake(&ev->ring, ngx_sluice_events_wake, ev);
}


void
ngx_sluice_events_forget(sluice_events_t *ev)
{
    ngx_sluice_loop_cancel(&ev->retry);
    ngx_sluice_loop_cancel(&ev->linger);
    ngx_sluice_loop_cancel(&ev->wakeup);
    ngx_sluice_loop_cancel(&ev->yielded);

    if (ev->turn.posted) {
        ngx_delete_posted_event(&ev->turn);
        ngx_sluice_events_turn_handler(&ev->turn);
    }
}


ngx_int_t
ngx_sluice_events_connect(sluice_events_t *ev)
{
    ngx_connection_t  *c;

    c = ngx_sluice_loop_listen(ngx_sluice_ring.fds[ev->ring.index],
                               ngx_sluice_events_read_handler, ev);
    if (c == NULL) {
        return NGX_ERROR;
    }

    /* nginx calls the handler when a graceful exit begins */
    c->idle = 1;

    /* other methods than epoll report no edges: an alarm would stay on */

    if (ngx_sluice_events_alarm == NULL
        && (ngx_event_flags & NGX_USE_CLEAR_EVENT))
    {
        ngx_sluice_events_alarm =
                         ngx_sluice_loop_listen(ngx_sluice_ring.alarm,
                                       ngx_sluice_events_alarm_handler, NULL);

        if (ngx_sluice_events_alarm == NULL) {
            ngx_sluice_loop_unlisten(c);
            return NGX_ERROR;
        }
    }

    ev->connection = c;
    ngx_sluice_events_connected[ev->vm] = ev;

    return NGX_OK;
}


void
ngx_sluice_events_disconnect(sluice_events_t *ev)
{
    ngx_uint_t  i;

    ngx_sluice_loop_unlisten(ev->connection);

    ev->connection = NULL;
    ngx_sluice_events_connected[ev->vm] = NULL;

    for (i = 0; i < NGX_SLUICE_EVENTS_VMS; i++) {
        if (ngx_sluice_events_connected[i]) {
            return;
        }
    }

    if (ngx_sluice_events_alarm) {
        ngx_sluice_loop_unlisten(ngx_sluice_events_alarm);
        ngx_sluice_events_alarm = NULL;
    }
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

    sluice_ring_wake_fds(ngx_sluice_ring.fds, slot);
}


static void
ngx_sluice_events_read_handler(ngx_event_t *rev)
{
    ngx_connection_t  *c;
    sluice_events_t   *ev;

    c = rev->data;
    ev = c->data;

    if (c->close) {
        c->close = 0;

        if (ngx_sluice_events_leaving) {
            ngx_sluice_events_leaving((ngx_cycle_t *) ngx_cycle);
        }

        ngx_sluice_events_leave(ev);
        return;
    }

    ev->looping = 1;

    ngx_sluice_loop_take(rev, "an eventfd", "wakeups");
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


/*
 * Somebody has published, and has come to no end of its turn.  An edge: there
 * is no need to read how often.
 */

static void
ngx_sluice_events_alarm_handler(ngx_event_t *rev)
{
    ngx_uint_t        i;
    sluice_events_t  *ev;

    for (i = 0; i < NGX_SLUICE_EVENTS_VMS; i++) {
        ev = ngx_sluice_events_connected[i];

        if (ev) {
            ev->looping = 1;
            ngx_sluice_events_ready(ev);
        }
    }
}


/* nginx's loop goes on, and the dispatcher did not say that it is done. */

static void
ngx_sluice_events_yielded_handler(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    (void) ev->post(ev->spare, 1);
}


static void
ngx_sluice_events_retry_handler(ngx_event_t *e)
{
    ngx_sluice_events_flush(e->data);
}


/*
 * A graceful exit has begun.  The waiting dispatcher does not hold it up, so
 * what is in the log already gets a moment to be delivered.  A worker that has
 * requests left stays, and goes on to receive events.
 */

static void
ngx_sluice_events_leave(sluice_events_t *ev)
{
    ev->leaving = ngx_current_msec;

    ngx_sluice_events_post_soon(&ev->wakeup);

    if (!ev->linger.timer_set) {
        ngx_add_timer(&ev->linger, 1);
    }
}


static void
ngx_sluice_events_linger_handler(ngx_event_t *e)
{
    ngx_msec_t        waited;
    sluice_events_t  *ev = e->data;

    waited = ngx_current_msec - ev->leaving;

    if (ev->parked || waited >= NGX_SLUICE_EVENTS_LINGER) {
        e->cancelable = 1;
        ngx_sluice_events_loosen();
    }

    ngx_add_timer(e, waited < NGX_SLUICE_EVENTS_LINGER
                     ? 1 : NGX_SLUICE_EVENTS_LOOK);
}


/*
 * A context that waits for events has a timer, and nginx does not end a worker
 * that has one.  So when no other timers are left, these do not count.  Those
 * that were found before are remembered: a client's, which comes after, is
 * none of them.
 */

static void
ngx_sluice_events_loosen(void)
{
    ngx_uint_t          i, waits, n;
    ngx_event_t        *timers[NGX_SLUICE_EVENTS_WAITS], *timer;
    ngx_rbtree_node_t  *node;

    static ngx_uint_t    count;
    static ngx_event_t  *found[NGX_SLUICE_EVENTS_WAITS];

    if (ngx_event_timer_rbtree.root == ngx_event_timer_rbtree.sentinel) {
        return;
    }

    waits = ngx_sluice_events_waits();
    n = 0;

    for (node = ngx_rbtree_min(ngx_event_timer_rbtree.root,
                               ngx_event_timer_rbtree.sentinel);
         node;
         node = ngx_rbtree_next(&ngx_event_timer_rbtree, node))
    {
        timer = ngx_rbtree_data(node, ngx_event_t, timer);

        if (timer->cancelable) {

            for (i = 0; i < count && found[i] != timer; i++) { /* void */ }

            if (i == count) {
                continue;
            }
        }

        if (n == waits || n == NGX_SLUICE_EVENTS_WAITS) {
            return;
        }

        timers[n++] = timer;
    }

    for (count = 0; count < n; count++) {
        timers[count]->cancelable = 1;
        found[count] = timers[count];
    }
}


/* Contexts of all machines that wait to be woken: for events, as a spare. */

static ngx_uint_t
ngx_sluice_events_waits(void)
{
    ngx_uint_t        i, n;
    sluice_events_t  *ev;

    n = 0;

    for (i = 0; i < NGX_SLUICE_EVENTS_VMS; i++) {
        ev = ngx_sluice_events_connected[i];

        if (ev) {
            n += ngx_max(-ev->count_of(ev->semaphore), 0);
            n += ngx_max(-ev->count_of(ev->spare), 0);
        }
    }

    return n;
}
