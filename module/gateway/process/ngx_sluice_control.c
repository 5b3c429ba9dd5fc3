
/*
 * What worker 0 and the others do under "sluice_control on".
 *
 * Worker 0 is the control worker: it accepts on listeners of marked servers
 * (ngx_http_sluice_control.c) once its Lua says so, and on no other.  The
 * others are traffic workers: they accept on all but those, once an image is
 * live and mapped.  What nobody accepts yet waits in the kernel's backlog.  A
 * worker that cannot map what is live accepts after two seconds nevertheless,
 * and answers 503.
 *
 * Worker 0 takes a slot when it starts and gives it up when it leaves: a slot
 * of a process that is no more is a death.  ngx_sluice_watchdog.c kills one
 * that hangs.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_listen.h"
#include "ngx_sluice_process.h"
#include "ngx_sluice_tickets.h"

#include <malloc.h>
#include <signal.h>
#include <time.h>


#define NGX_SLUICE_CONTROL_POLL   5          /* ms, until an image is live */
#define NGX_SLUICE_CONTROL_GATE   2000       /* ms, for one that is damaged */
#define NGX_SLUICE_CONTROL_SLOT   1000       /* ms, until there is a slot */
#define NGX_SLUICE_CONTROL_KEEP   (1024 * 1024)  /* bytes of free memory */


static ngx_int_t ngx_sluice_control_hold(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_control_release(void);
static void ngx_sluice_control_gate_handler(ngx_event_t *e);
static void ngx_sluice_control_keep_little(void);
static ngx_int_t ngx_sluice_control_start(ngx_cycle_t *cycle);
static void ngx_sluice_control_take_slot(sluice_control_t *block);
static void ngx_sluice_control_sit(sluice_control_t *block);
static void ngx_sluice_control_take_place(sluice_control_t *block);
static void ngx_sluice_control_period_handler(ngx_event_t *e);


/* of a listener that is not accepted on yet */

typedef struct {
    ngx_connection_t  *connection;
    ngx_uint_t         kind;           /* ngx_http_sluice_control.h */
} ngx_sluice_control_held_t;


static ngx_sluice_control_held_t  *ngx_sluice_control_held;

static uint64_t            ngx_sluice_control_started;
static ngx_msec_t          ngx_sluice_control_gate;
static ngx_uint_t          ngx_sluice_control_has_slot;

/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_control_none = { .fd = (ngx_socket_t) -1 };
static ngx_event_t       ngx_sluice_control_event;


/* Behind init_worker of Lua, and behind the event module's. */

ngx_int_t
ngx_sluice_control_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t        *e;
    ngx_sluice_process_conf_t  *conf;

    conf = ngx_sluice_process_conf(cycle);

    if (!conf->control || ngx_process != NGX_PROCESS_WORKER) {
        return NGX_OK;
    }

    if (ngx_sluice_images_after_end(1)) {
        (void) __sync_fetch_and_add(&sluice_images_control_block()->crashes,
                                    1);
    }

    if (ngx_sluice_control_hold(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_sluice_notify_init_process(cycle);

    e = &ngx_sluice_control_event;
    e->log = cycle->log;
    e->data = &ngx_sluice_control_none;
    e->cancelable = 1;

    if (ngx_worker == 0) {
        ngx_sluice_control_keep_little();

        e->handler = ngx_sluice_control_period_handler;
        return ngx_sluice_control_start(cycle);
    }

    ngx_sluice_control_gate = ngx_current_msec;

    e->handler = ngx_sluice_control_gate_handler;
    e->handler(e);

    return NGX_OK;
}


/*
 * Nobody takes the accept mutex: who holds it waits for events with it, also
 * for the listeners that it does not accept on.
 */

static ngx_int_t
ngx_sluice_control_hold(ngx_cycle_t *cycle)
{
    ngx_uint_t         i, kind;
    ngx_listening_t   *ls;
    ngx_connection_t  *c;

    ngx_use_accept_mutex = 0;

    ngx_sluice_control_held = ngx_pcalloc(cycle->pool, cycle->listening.nelts
                                          * sizeof(ngx_sluice_control_held_t));
    if (ngx_sluice_control_held == NULL) {
        return NGX_ERROR;
    }

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].connection == NULL) {
            continue;
        }

        if (ngx_sluice_listen_stop(&ls[i], &c) != NGX_OK) {
            return NGX_ERROR;
        }

        kind = ngx_http_sluice_control_listener(&ls[i]);

        if ((kind != 0) == (ngx_worker == 0)) {
            ngx_sluice_control_held[i].connection = c;
            ngx_sluice_control_held[i].kind = kind;

        } else {
            ngx_free_connection(c);
            c->fd = (ngx_socket_t) -1;
        }
    }

    return NGX_OK;
}


/* Accepts, as ngx_event_process_init() does without a mutex. */

static ngx_int_t
ngx_sluice_control_release(void)
{
    ngx_int_t          flags;
    ngx_uint_t         i;
    ngx_listening_t   *ls;
    ngx_connection_t  *c;

    flags = 0;

#if (NGX_HAVE_EPOLLEXCLUSIVE)

    if (ngx_event_flags & NGX_USE_EPOLL_EVENT) {
        flags = NGX_EXCLUSIVE_EVENT;
    }

#endif

    ls = ngx_cycle->listening.elts;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {
        c = ngx_sluice_control_held[i].connection;

        if (c == NULL) {
            continue;
        }

        if (ngx_add_event(c->read, NGX_READ_EVENT, flags) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ngx_worker == 0
            && ngx_http_sluice_control_bound((ngx_cycle_t *) ngx_cycle, &ls[i],
                                             ngx_sluice_control_held[i].kind)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        ls[i].connection = c;
        ngx_sluice_control_held[i].connection = NULL;
    }

    return NGX_OK;
}


static void
ngx_sluice_control_gate_handler(ngx_event_t *e)
{
    int  rc;

    rc = ngx_sluice_images_refresh();

    if (rc == SLUICE_CORE_NONE) {
        ngx_sluice_control_gate = ngx_current_msec;
    }

    if (rc != SLUICE_CORE_OK
        && ngx_current_msec - ngx_sluice_control_gate
           < NGX_SLUICE_CONTROL_GATE)
    {
        ngx_add_timer(e, NGX_SLUICE_CONTROL_POLL);
        return;
    }

    if (ngx_sluice_control_release() != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, e->log, 0,
                      "sluice: this worker cannot accept connections");
        return;
    }

    ngx_sluice_notify_accepts();
    ngx_sluice_stay_accepts();
}


/*
 * By default glibc keeps up to 64 MB of what large files have taken for each
 * of its arenas, and every thread has one (gateway/threads/lua_state.lua).
 */

static void
ngx_sluice_control_keep_little(void)
{
#if defined(__GLIBC__)
    (void) mallopt(M_MMAP_THRESHOLD, NGX_SLUICE_CONTROL_KEEP);
    (void) mallopt(M_TRIM_THRESHOLD, NGX_SLUICE_CONTROL_KEEP);
#endif
}


static ngx_int_t
ngx_sluice_control_start(ngx_cycle_t *cycle)
{
    sluice_control_t  *block;

    block = sluice_images_control_block();

    ngx_sluice_control_started = ngx_sluice_clock_ms(CLOCK_REALTIME);

    ngx_sluice_control_take_slot(block);

    if (block->pid == 0 || (kill(block->pid, 0) == -1 && ngx_errno == ESRCH)) {
        ngx_sluice_control_take_place(block);
    }

    ngx_sluice_watchdog_start(cycle);

    ngx_sluice_control_period_handler(&ngx_sluice_control_event);

    return NGX_OK;
}


/*
 * Counts those who left theirs without a word.  At a reload, and at a binary
 * upgrade, there are two of us for a while.  Who takes the place of none comes
 * by one of these, or at the start: what died before, also in an upgrade that
 * was refused, is not held against it.
 */

static void
ngx_sluice_control_take_slot(sluice_control_t *block)
{
    uint32_t    pid;
    ngx_uint_t  i, n, found;

    found = 0;

    for (i = 0; i < NGX_SLUICE_CONTROL_SLOTS; i++) {
        pid = block->slots[i];

        if (pid && kill((ngx_pid_t) pid, 0) == -1 && ngx_errno == ESRCH
            && __sync_bool_compare_and_swap(&block->slots[i], pid, 0))
        {
            n = __sync_fetch_and_add(&block->deaths, 1);
            block->recent_deaths[n % NGX_SLUICE_CONTROL_DEATHS] =
                                       ngx_sluice_clock_ms(CLOCK_MONOTONIC);
            found = 1;
        }
    }

    if (!found || !ngx_sluice_images_after_end(0)) {
        ngx_memzero(block->recent_deaths, sizeof(block->recent_deaths));
    }

    ngx_sluice_control_sit(block);

    (void) __sync_fetch_and_add(&block->starts, 1);
}


/* Where all are taken, by those that drain: see the period's handler. */

static void
ngx_sluice_control_sit(sluice_control_t *block)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_SLUICE_CONTROL_SLOTS; i++) {

        if (__sync_bool_compare_and_swap(&block->slots[i], 0,
                                         (uint32_t) ngx_pid))
        {
            ngx_sluice_control_has_slot = 1;
            return;
        }
    }
}


/* Who has the role, or is about to. */

static void
ngx_sluice_control_take_place(sluice_control_t *block)
{
    block->started_at = ngx_sluice_control_started;
    block->heartbeat = ngx_sluice_control_started;
    block->state = SLUICE_CONTROL_STARTING;
    block->pid = (uint32_t) ngx_pid;

    ngx_sluice_tickets_turn(ngx_time());
}


/*
 * Keys of tickets that have had their time go, used or not.  And who has no
 * slot looks for one.
 */

static void
ngx_sluice_control_period_handler(ngx_event_t *e)
{
    time_t             now;
    sluice_control_t  *block;

    now = ngx_time();
    block = sluice_images_control_block();

    if (block->pid == (uint32_t) ngx_pid) {
        ngx_sluice_tickets_turn(now);
    }

    if (!ngx_sluice_control_has_slot) {
        ngx_sluice_control_sit(block);
    }

    now %= NGX_SLUICE_TICKETS_PERIOD;

    ngx_add_timer(e, ngx_sluice_control_has_slot
                     ? (NGX_SLUICE_TICKETS_PERIOD - now) * 1000
                     : NGX_SLUICE_CONTROL_SLOT);
}


/*
 * Worker 0 has the role: it accepts on its listeners, and the block is its
 * own.  Once more: nothing.  Returns 0, or -1: this is not worker 0, or the
 * event loop takes no listener.
 */

int
sluice_control_accept(void)
{
    sluice_control_t  *block;

    if (ngx_sluice_control_started == 0) {
        return -1;
    }

    block = sluice_images_control_block();

    if (block->pid != (uint32_t) ngx_pid) {
        ngx_sluice_control_take_place(block);
    }

    return ngx_sluice_control_release() == NGX_OK ? 0 : -1;
}


/* How many control workers have died without a word in so many last ms. */

int
sluice_control_deaths(uint32_t ms)
{
    int                found;
    uint64_t           now, died;
    ngx_uint_t         i;
    sluice_control_t  *block;

    block = sluice_images_control_block();

    if (block == NULL) {
        return 0;
    }

    found = 0;
    now = ngx_sluice_clock_ms(CLOCK_MONOTONIC);

    for (i = 0; i < NGX_SLUICE_CONTROL_DEATHS; i++) {
        died = block->recent_deaths[i];
        found += (died && now - died < ms);
    }

    return found;
}


/* The word of who leaves. */

void
ngx_sluice_control_exit_process(void)
{
    ngx_uint_t         i;
    sluice_control_t  *block;

    if (ngx_sluice_control_started == 0) {
        return;
    }

    block = sluice_images_control_block();

    if (block->pid == (uint32_t) ngx_pid) {
        block->state = SLUICE_CONTROL_STOPPED;
        block->pid = 0;
    }

    for (i = 0; i < NGX_SLUICE_CONTROL_SLOTS; i++) {
        (void) __sync_bool_compare_and_swap(&block->slots[i],
                                            (uint32_t) ngx_pid, 0);
    }
}
