
/*
 * When a publisher wakes those who sleep.
 *
 * Who publishes 300 events in a row and wakes at each of them wakes the same
 * workers over and over: each reads what there is, which is one event, and
 * sleeps again before the next.  With 48 workers on two cores that took three
 * quarters of all CPU time, and more.  So a few publications of a turn of the
 * event loop wake at once: a lone event loses no time.  From then on it is a
 * burst: all are woken together when the turn ends, by a posted event.  After
 * a turn with a burst another one is expected: of that the first publication
 * waits, too.
 *
 * A publisher that dies, is stopped, or goes on to compute comes to no end of
 * its turn.  So a burst sets an alarm: one timerfd, which is in the loop of
 * every worker, wakes all after HOLD.  It is set again for as long as the
 * burst lasts, and taken back when the turn ends.  Publishers share it: a word
 * in the log says until when it is set.
 *
 *     publisher:  append; word in the past?  word = then, set the alarm
 *     turn's end: word = 0; wake the sleepers; take the alarm back; word set
 *                 meanwhile?  set the alarm again
 *
 * Whoever finds the word set has appended before it was cleared, and so is
 * seen by who wakes the sleepers after that.  And the alarm is on until they
 * are woken: at whichever instruction a publisher dies, either it or a wake
 * has come, or will.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_events.h"

#include <sys/timerfd.h>


static void ngx_sluice_events_alarm_set(sluice_events_t *ev);
static void ngx_sluice_events_alarm_at(uint64_t ns);


/* Appends a frame, and wakes, at once or soon; as sluice_ring_append(). */

int
ngx_sluice_events_append(sluice_events_t *ev, const sluice_ring_message_t *m)
{
    int  rc;

    if (!ev->turn.posted) {
        ngx_sluice_events_post_soon(&ev->turn);

        ev->bursts = (ev->published >= NGX_SLUICE_EVENTS_BURST);
        ev->published = 0;
    }

    /* other methods than epoll report no edges: an alarm would stay on */

    if ((!ev->bursts && ev->published < NGX_SLUICE_EVENTS_BURST)
        || !(ngx_event_flags & NGX_USE_CLEAR_EVENT))
    {
        rc = sluice_ring_publish(&ev->ring, m);
        ev->published += (rc == SLUICE_OK);

        return rc;
    }

    rc = sluice_ring_append(&ev->ring, m);

    if (rc == SLUICE_OK) {
        ev->published++;
        ev->owed = 1;
        ngx_sluice_events_alarm_set(ev);
    }

    return rc;
}


/*
 * In this turn of the loop, once it turns.  Before its first turn, and after a
 * graceful exit has begun, nginx sleeps without a look at the posted events,
 * but not with a look at those for the next turn.
 */

void
ngx_sluice_events_post_soon(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    if (ev->looping && !ngx_exiting) {
        ngx_post_event(e, &ngx_posted_events);

    } else {
        ngx_post_event(e, &ngx_posted_next_events);
    }
}


/* The turn of the loop ends, or the process. */

void
ngx_sluice_events_turn_handler(ngx_event_t *e)
{
    sluice_events_t *ev = e->data;

    uint64_t           then;
    _Atomic uint64_t  *word;

    if (!ev->owed) {
        return;
    }

    ev->owed = 0;

    word = sluice_ring_alarm(&ev->ring);

    atomic_store(word, 0);

    sluice_ring_wake_sleepers(&ev->ring);

    ngx_sluice_events_alarm_at(0);

    then = atomic_load(word);

    if (then) {
        ngx_sluice_events_alarm_at(then);
    }
}


static void
ngx_sluice_events_alarm_set(sluice_events_t *ev)
{
    uint64_t           now, then;
    _Atomic uint64_t  *word;

    word = sluice_ring_alarm(&ev->ring);
    now = ngx_sluice_clock_ns(CLOCK_MONOTONIC);
    then = atomic_load(word);

    /* further away than it can be: somebody has written nonsense */

    if (then > now && then <= now + NGX_SLUICE_EVENTS_HOLD) {
        return;
    }

    then = now + NGX_SLUICE_EVENTS_HOLD;

    atomic_store(word, then);
    ngx_sluice_events_alarm_at(then);
}


/* Monotonic; 0: never. */

static void
ngx_sluice_events_alarm_at(uint64_t ns)
{
    struct itimerspec  at;

    ngx_memzero(&at, sizeof(struct itimerspec));

    at.it_value.tv_sec = (time_t) (ns / 1000000000);
    at.it_value.tv_nsec = (long) (ns % 1000000000);

    if (timerfd_settime(ngx_sluice_ring.alarm, TFD_TIMER_ABSTIME, &at, NULL)
        == -1)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "sluice: timerfd_settime() failed");
    }
}
