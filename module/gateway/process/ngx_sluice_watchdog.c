
/*
 * The control worker's watchdog: a timer of the kernel that kills it when its
 * event loop has not come round for so long; the master starts another.  While
 * it waits for events there is nothing that it could be stuck in: the timer is
 * taken off, and nothing wakes it.  What it beats, or that it rests, stands in
 * shared memory.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_process.h"
#include "ngx_sluice_images.h"

#include <signal.h>
#include <time.h>


#define NGX_SLUICE_WATCHDOG_BEAT  500        /* ms, of one that works */


static ngx_int_t ngx_sluice_watchdog_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
static void ngx_sluice_watchdog_beat(ngx_log_t *log);
static void ngx_sluice_watchdog_rest(ngx_log_t *log);
static void ngx_sluice_watchdog_note(uint64_t rests);
static void ngx_sluice_watchdog_arm(ngx_msec_t ms, ngx_log_t *log);


static ngx_msec_t   ngx_sluice_watchdog_time;
static timer_t      ngx_sluice_watchdog_timer;
static ngx_uint_t   ngx_sluice_watchdog_named;
static ngx_uint_t   ngx_sluice_watchdog_rests;
static uint64_t     ngx_sluice_watchdog_beaten;

/* the event module's own */

static ngx_int_t  (*ngx_sluice_watchdog_process)(ngx_cycle_t *cycle,
                        ngx_msec_t timer, ngx_uint_t flags);


/*
 * From now on this process is watched, unless nginx.conf says otherwise: what
 * Lua does in init_worker, too, so Lua asks for it.
 */

void
sluice_watchdog_begin(void)
{
    ngx_cycle_t        *cycle;
    ngx_core_conf_t    *ccf;
    struct sigevent     event;
    ngx_sluice_process_conf_t  *conf;

    if (ngx_sluice_watchdog_time) {
        return;
    }

    cycle = (ngx_cycle_t *) ngx_cycle;
    conf = ngx_sluice_process_conf(cycle);

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    /* who stops at "debug_points" wants to look at it */

    if (conf->watchdog && ccf->debug_points == 0) {

        ngx_memzero(&event, sizeof(struct sigevent));
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = SIGKILL;

        if (timer_create(CLOCK_MONOTONIC, &event, &ngx_sluice_watchdog_timer)
            == -1)
        {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "sluice: timer_create() of the watchdog failed");
        } else {
            ngx_sluice_watchdog_time = conf->watchdog;
            ngx_sluice_watchdog_arm(conf->watchdog, cycle->log);
        }
    }
}


/* What "sluice_control_watchdog" is set to; 0: nobody is watched. */

uint32_t
sluice_watchdog_ms(void)
{
    ngx_sluice_process_conf_t  *conf;

    conf = ngx_sluice_process_conf((ngx_cycle_t *) ngx_cycle);

    return (uint32_t) conf->watchdog;
}


/* Whoever's Lua has not asked is watched from here on. */

void
ngx_sluice_watchdog_start(ngx_cycle_t *cycle)
{
    (void) cycle;

    sluice_watchdog_begin();

    ngx_sluice_watchdog_process = ngx_event_actions.process_events;
    ngx_event_actions.process_events = ngx_sluice_watchdog_process_events;
}


/*
 * A turn of the event loop.  Before a long wait the watchdog is taken off.
 * The event module is told to hand over what it finds instead of calling
 * handlers: so they run with the watchdog, here, and before timers as they
 * always do.
 */

static ngx_int_t
ngx_sluice_watchdog_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_int_t  rc;

    if (!ngx_sluice_watchdog_named && !ngx_exiting) {
        /* nginx has given the process its title by now */
        ngx_sluice_watchdog_named = 1;
        ngx_setproctitle("control process");
    }

    if (timer < NGX_SLUICE_WATCHDOG_BEAT) {
        ngx_sluice_watchdog_beat(cycle->log);
        return ngx_sluice_watchdog_process(cycle, timer, flags);
    }

    ngx_sluice_watchdog_rest(cycle->log);

    rc = ngx_sluice_watchdog_process(cycle, timer, flags|NGX_POST_EVENTS);

    ngx_sluice_watchdog_beat(cycle->log);

    ngx_event_process_posted(cycle, &ngx_posted_accept_events);
    ngx_event_process_posted(cycle, &ngx_posted_events);

    return rc;
}


static void
ngx_sluice_watchdog_beat(ngx_log_t *log)
{
    uint64_t  now;

    now = ngx_sluice_clock_ms(CLOCK_MONOTONIC);

    if (!ngx_sluice_watchdog_rests
        && now - ngx_sluice_watchdog_beaten < NGX_SLUICE_WATCHDOG_BEAT)
    {
        return;
    }

    ngx_sluice_watchdog_rests = 0;
    ngx_sluice_watchdog_beaten = now;

    ngx_sluice_watchdog_note(0);

    ngx_sluice_watchdog_arm(ngx_sluice_watchdog_time, log);
}


static void
ngx_sluice_watchdog_rest(ngx_log_t *log)
{
    ngx_sluice_watchdog_rests = 1;

    ngx_sluice_watchdog_note(SLUICE_CONTROL_RESTS);

    ngx_sluice_watchdog_arm(0, log);
}


/* Only who has the role writes there. */

static void
ngx_sluice_watchdog_note(uint64_t rests)
{
    sluice_control_t  *block;

    block = sluice_images_control_block();

    if (block->pid == (uint32_t) ngx_pid) {
        block->heartbeat = ngx_sluice_clock_ms(CLOCK_REALTIME) | rests;
    }
}


/* 0: takes it off. */

static void
ngx_sluice_watchdog_arm(ngx_msec_t ms, ngx_log_t *log)
{
    struct itimerspec  when;

    if (ngx_sluice_watchdog_time == 0) {
        return;
    }

    ngx_memzero(&when, sizeof(struct itimerspec));
    when.it_value.tv_sec = ms / 1000;
    when.it_value.tv_nsec = ms % 1000 * 1000000;

    if (timer_settime(ngx_sluice_watchdog_timer, 0, &when, NULL) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "sluice: timer_settime() of the watchdog failed");
    }
}
