
/*
 * Timers in nginx's event loop.
 *
 * A timerfd wakes the worker at the next expiry.  nginx's own timers would be
 * up to 4 ms late: it compares them with a clock that ticks so often.
 */


#include "ngx_sluice_loop.h"
#include "ngx_sluice_timer.h"

#include <sys/timerfd.h>


static ngx_int_t ngx_sluice_timer_connect(sluice_timer_core_t *core);
static void ngx_sluice_timer_read_handler(ngx_event_t *rev);
static void ngx_sluice_timer_turn_handler(ngx_event_t *e);
static void ngx_sluice_timer_yielded_handler(ngx_event_t *e);
static void ngx_sluice_timer_linger_handler(ngx_event_t *e);
static void ngx_sluice_timer_dispatch(sluice_timer_core_t *core);
static void ngx_sluice_timer_exit(sluice_timer_core_t *core);


static ngx_queue_t  ngx_sluice_timer_cores;


void
ngx_sluice_timer_add(sluice_timer_core_t *core)
{
    if (ngx_sluice_timer_cores.next == NULL) {
        ngx_queue_init(&ngx_sluice_timer_cores);
    }

    ngx_queue_insert_tail(&ngx_sluice_timer_cores, &core->queue);

    core->owner = NGX_SLUICE_TIMER_NOBODY;
    core->armed = SLUICE_WHEEL_NEVER;
}


/* In the worker: returns 0, or -1 without a timerfd, or memory. */

int
sluice_timer_start(sluice_timer_core_t *core, void *semaphore,
    ngx_sluice_timer_post_pt post, ngx_sluice_timer_ctx_pt ctx)
{
    core->contexts = ngx_calloc(core->max * sizeof(*core->contexts),
                                ngx_cycle->log);
    if (core->contexts == NULL) {
        return -1;
    }

    ngx_sluice_loop_prepare(&core->turn, ngx_sluice_timer_turn_handler, core);
    ngx_sluice_loop_prepare(&core->yielded, ngx_sluice_timer_yielded_handler,
                            core);
    ngx_sluice_loop_prepare(&core->shrink, ngx_sluice_timer_shrink_handler,
                            core);
    ngx_sluice_loop_prepare(&core->late, ngx_sluice_timer_late_handler, core);
    ngx_sluice_loop_prepare(&core->linger, ngx_sluice_timer_linger_handler,
                            core);

    /* nothing but the contexts' waiting holds up an exit */
    core->shrink.cancelable = 1;
    core->late.cancelable = 1;

    if (ngx_sluice_timer_connect(core) != NGX_OK) {
        ngx_free(core->contexts);
        core->contexts = NULL;
        return -1;
    }

    core->semaphore = semaphore;
    core->post = post;
    core->ctx = ctx;
    core->started = 1;
    core->coming = 1;
    core->coming_ns = ngx_sluice_timer_now(core);

    /* of its own: the core may be its master's, and so its other workers' */

    core->timers.random = (core->coming_ns ^ (uint64_t) ngx_pid << 40) | 1;

    ngx_sluice_timer_poke(core);

    return 0;
}


static ngx_int_t
ngx_sluice_timer_connect(sluice_timer_core_t *core)
{
    int                fd;
    ngx_connection_t  *c;

    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK|TFD_CLOEXEC);
    if (fd == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "sluice: timerfd_create() failed");
        return NGX_ERROR;
    }

    c = ngx_sluice_loop_listen(fd, ngx_sluice_timer_read_handler, core);
    if (c == NULL) {
        (void) close(fd);
        return NGX_ERROR;
    }

    /* nginx calls the handler when a graceful exit begins */
    c->idle = 1;

    core->connection = c;

    return NGX_OK;
}


void
ngx_sluice_timer_disconnect(sluice_timer_core_t *core)
{
    ngx_fd_t           fd;
    ngx_connection_t  *c;

    c = core->connection;

    if (c == NULL) {
        return;
    }

    fd = c->fd;
    core->connection = NULL;

    ngx_sluice_loop_unlisten(c);
    (void) close(fd);
}


/* When the Lua machine closes, which is later than the process's hook. */

void
ngx_sluice_timer_close(sluice_timer_core_t *core)
{
    ngx_uint_t  i;

    core->destroyed = 1;

    ngx_sluice_timer_disconnect(core);

    ngx_sluice_loop_cancel(&core->turn);
    ngx_sluice_loop_cancel(&core->yielded);
    ngx_sluice_loop_cancel(&core->shrink);
    ngx_sluice_loop_cancel(&core->linger);
    ngx_sluice_loop_cancel(&core->late);

    if (core->contexts) {
        for (i = 0; i < core->max; i++) {
            if (core->contexts[i].end) {
                core->contexts[i].end->core = NULL;
            }
        }

        ngx_free(core->contexts);
        core->contexts = NULL;
    }

    ngx_queue_remove(&core->queue);
}


/* nginx reports connections that are open after this. */

void
ngx_sluice_timer_exit_process(void)
{
    ngx_queue_t          *q;
    sluice_timer_core_t  *core;

    if (ngx_sluice_timer_cores.next == NULL) {
        return;
    }

    for (q = ngx_queue_head(&ngx_sluice_timer_cores);
         q != ngx_queue_sentinel(&ngx_sluice_timer_cores);
         q = ngx_queue_next(q))
    {
        core = ngx_queue_data(q, sluice_timer_core_t, queue);

        ngx_sluice_timer_disconnect(core);
    }
}


static void
ngx_sluice_timer_read_handler(ngx_event_t *rev)
{
    ngx_connection_t     *c;
    sluice_timer_core_t  *core;

    c = rev->data;
    core = c->data;

    if (c->close) {
        c->close = 0;
        ngx_sluice_timer_exit(core);
        return;
    }

    ngx_sluice_loop_take(rev, "a timerfd", "timers");

    core->armed = SLUICE_WHEEL_NEVER;

    if (!core->turn.posted) {
        ngx_sluice_timer_turn_handler(&core->turn);
    }
}


static void
ngx_sluice_timer_turn_handler(ngx_event_t *e)
{
    uint64_t              now, slice;
    sluice_timer_core_t  *core = e->data;

    now = ngx_sluice_timer_now(core);
    slice = sluice_timers_late(&core->timers, now) / NGX_SLUICE_TIMER_SHARE;
    slice = ngx_max(slice, NGX_SLUICE_TIMER_SLICE);

    core->looping = 1;
    core->slice_end = now + ngx_min(slice, NGX_SLUICE_TIMER_LONGEST);

    ngx_sluice_timer_dispatch(core);
}


/*
 * nginx's loop goes on and the owner did not say that it is done: its callback
 * waits.  Another context goes on with what is left, within the same slice.
 */

static void
ngx_sluice_timer_yielded_handler(ngx_event_t *e)
{
    sluice_timer_core_t *core = e->data;

    core->owner = NGX_SLUICE_TIMER_NOBODY;

    if (ngx_sluice_timer_now(core) >= core->slice_end) {

        if (ngx_sluice_timer_has_work(core)) {
            ngx_post_event(&core->turn, &ngx_posted_next_events);

        } else {
            ngx_sluice_timer_arm(core);
        }

        return;
    }

    ngx_sluice_timer_dispatch(core);
}


static void
ngx_sluice_timer_dispatch(sluice_timer_core_t *core)
{
    int  done;

    if (core->frozen || core->destroyed
        || core->owner != NGX_SLUICE_TIMER_NOBODY)
    {
        return;
    }

    done = sluice_timers_begin(&core->timers, ngx_sluice_timer_now(core));

    if (!sluice_timers_empty(&core->timers)) {
        ngx_sluice_timer_call(core);
        return;
    }

    if (!done) {
        ngx_post_event(&core->turn, &ngx_posted_next_events);
        return;
    }

    ngx_sluice_timer_arm(core);
}


/*
 * A graceful exit has begun: all that is pending runs now, prematurely.
 * Posted events alone do not keep the process, so a timer does.
 */

static void
ngx_sluice_timer_exit(sluice_timer_core_t *core)
{
    sluice_timers_exit(&core->timers);

    ngx_sluice_timer_thaw(core);
    ngx_sluice_timer_poke(core);

    core->exit_ns = ngx_sluice_timer_now(core);

    ngx_sluice_timer_linger(core);
}


static void
ngx_sluice_timer_linger_handler(ngx_event_t *e)
{
    sluice_timer_core_t *core = e->data;

    if (!ngx_sluice_timer_has_work(core)) {
        ngx_sluice_timer_end_parked(core);
    }

    /*
     * Contexts whose callbacks wait have timers of their own.  Without a
     * context nothing runs; what comes later makes one.
     */

    if (ngx_sluice_timer_coming(core) || core->parked
        || (core->total && ngx_sluice_timer_has_work(core)))
    {
        ngx_sluice_timer_linger(core);
    }
}
