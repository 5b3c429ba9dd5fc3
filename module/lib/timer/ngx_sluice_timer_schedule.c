
/*
 * When the dispatcher runs next: in the loop's next turn, or when the timerfd
 * expires.
 */


#include "ngx_sluice_timer.h"

#include <sys/timerfd.h>


/*
 * The dispatcher's next turn: in this turn of the loop, once it turns.  Before
 * its first turn, and after a graceful exit has begun, nginx sleeps without a
 * look at the posted events, but not with a look at those for the next turn.
 */

void SLUICE_WHEEL_RARE
ngx_sluice_timer_poke(sluice_timer_core_t *core)
{
    if (!core->started || core->destroyed) {
        return;
    }

    if (core->looping && !ngx_exiting) {
        ngx_post_event(&core->turn, &ngx_posted_events);

    } else {
        ngx_post_event(&core->turn, &ngx_posted_next_events);
    }
}


/* While there is an owner, what comes first is looked at when it is done. */

void
ngx_sluice_timer_created(sluice_timer_core_t *core, sluice_timer_t *t)
{
    if (t->node.expires < core->armed
        && core->owner == NGX_SLUICE_TIMER_NOBODY)
    {
        ngx_sluice_timer_poke(core);
    }
}


/*
 * Whether anything can run now.  In a process that exits all that waits can,
 * also what has yet to move down through the wheel.
 */

ngx_uint_t
ngx_sluice_timer_has_work(sluice_timer_core_t *core)
{
    uint64_t  next;

    if (core->frozen || core->destroyed) {
        return 0;
    }

    if (!sluice_timers_empty(&core->timers)) {
        return 1;
    }

    next = sluice_timers_next(&core->timers);

    return core->timers.exiting ? next != SLUICE_WHEEL_NEVER
                                : next <= ngx_sluice_timer_now(core) / 1000000;
}


/* The owner has nothing more to do, or its time is up. */

void SLUICE_WHEEL_RARE
ngx_sluice_timer_release(sluice_timer_core_t *core)
{
    core->owner = NGX_SLUICE_TIMER_NOBODY;

    if (core->yielded.posted) {
        ngx_delete_posted_event(&core->yielded);
    }

    if (ngx_sluice_timer_has_work(core)) {
        ngx_post_event(&core->turn, &ngx_posted_next_events);
        return;
    }

    if (!core->frozen) {
        ngx_sluice_timer_arm(core);
    }
}


/* Wakes the process when the next timer is due; one system call. */

void
ngx_sluice_timer_arm(sluice_timer_core_t *core)
{
    uint64_t           next, at;
    struct itimerspec  its;

    next = sluice_timers_next(&core->timers);

    if (next >= core->armed || core->connection == NULL) {
        return;
    }

    ngx_memzero(&its, sizeof(its));

    at = next * 1000000 + core->behind_ns + 1;
    its.it_value.tv_sec = (time_t) (at / 1000000000);
    its.it_value.tv_nsec = (long) (at % 1000000000);

    if (timerfd_settime(core->connection->fd, TFD_TIMER_ABSTIME, &its, NULL)
        == -1)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "sluice: timerfd_settime() failed");
        return;
    }

    core->armed = next;
}
