
/*
 * The thread that reads the spool (ngx_sluice_reader.h).
 */


#include "ngx_sluice_reader.h"
#include "ngx_sluice_handover.h"
#include "ngx_sluice_lines.h"
#include "ngx_sluice_loop.h"
#include "ngx_sluice_ring.h"
#include "ngx_sluice_spool.h"

#include <pthread.h>
#include <signal.h>


/*
 * After it has found nothing the thread looks once more before it sleeps, so
 * that writers wake it once for many entries.
 */

#define NGX_SLUICE_READER_PASS    (256 * 1024)         /* bytes */
#define NGX_SLUICE_READER_NAP     10       /* ms */
#define NGX_SLUICE_READER_POLL    20       /* ms, while another one reads */
#define NGX_SLUICE_READER_LOOK    100      /* ms, of a worker that leaves */
#define NGX_SLUICE_READER_END     1000     /* ms, at the end */
#define NGX_SLUICE_READER_STACK   (128 * 1024)


static void *ngx_sluice_reader_main(void *data);
static void ngx_sluice_reader_read(const sluice_spool_t *spool);
static ngx_uint_t ngx_sluice_reader_pass(const sluice_spool_t *spool);
static void ngx_sluice_reader_leave_handler(ngx_event_t *e);
static ngx_uint_t ngx_sluice_reader_is_alone(void);
static ngx_uint_t ngx_sluice_reader_is_settled(void);
static void ngx_sluice_reader_stop(void);


typedef enum {
    NGX_SLUICE_READER_NONE = 0,
    NGX_SLUICE_READER_RUNS,
    NGX_SLUICE_READER_OVER
} ngx_sluice_reader_state_e;


static _Atomic uint32_t  ngx_sluice_reader_state;
static _Atomic uint32_t  ngx_sluice_reader_stops;

static ngx_event_t       ngx_sluice_reader_event;


ngx_int_t
ngx_sluice_reader_init_process(ngx_cycle_t *cycle, ngx_uint_t is_control)
{
    int                    err;
    sigset_t               all, before;
    pthread_t              thread;
    pthread_attr_t         attr;
    const sluice_spool_t  *spool;

    spool = ngx_sluice_spool();

    if (spool == NULL) {
        return NGX_OK;
    }

    if (!is_control) {
        sluice_spool_wake(spool);
        return NGX_OK;
    }

    if (ngx_sluice_reader_lines_init() != NGX_OK
        || ngx_sluice_handover_init() != NGX_OK)
    {
        return NGX_ERROR;
    }

    err = pthread_attr_init(&attr);

    if (err == 0) {
        (void) pthread_attr_setstacksize(&attr, NGX_SLUICE_READER_STACK);
        (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);

        /* signals are the event loop's; its threads inherit what is set */

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_BLOCK, &all, &before);

        ngx_sluice_reader_state = NGX_SLUICE_READER_RUNS;

        err = pthread_create(&thread, &attr, ngx_sluice_reader_main,
                             (void *) spool);

        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attr);
    }

    if (err) {
        ngx_sluice_reader_state = NGX_SLUICE_READER_OVER;
        ngx_log_error(NGX_LOG_ALERT, cycle->log, err,
                      "sluice: pthread_create() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void *
ngx_sluice_reader_main(void *data)
{
    const sluice_spool_t  *spool = data;

    while (!ngx_sluice_reader_stops
           && sluice_spool_enter(spool) != SLUICE_OK)
    {
        ngx_msleep(NGX_SLUICE_READER_POLL);
    }

    if (!ngx_sluice_reader_stops) {
        ngx_sluice_reader_read(spool);
        sluice_spool_leave(spool);
    }

    ngx_sluice_handover_end();
    ngx_sluice_reader_state = NGX_SLUICE_READER_OVER;

    return NULL;
}


static void
ngx_sluice_reader_read(const sluice_spool_t *spool)
{
    ngx_uint_t  naps;

    naps = 0;

    for ( ;; ) {

        if (ngx_sluice_reader_pass(spool)) {
            naps = 1;
            continue;
        }

        if (ngx_sluice_reader_stops) {
            return;
        }

        if (naps) {
            naps = 0;
            ngx_msleep(NGX_SLUICE_READER_NAP);
            continue;
        }

        sluice_spool_sleep(spool);
    }
}


/* 0: there was nothing */

static ngx_uint_t
ngx_sluice_reader_pass(const sluice_spool_t *spool)
{
    uint64_t              bytes;
    sluice_spool_found_t  found;

    bytes = 0;

    while (bytes < NGX_SLUICE_READER_PASS
           && sluice_spool_next(spool, &found) == SLUICE_OK)
    {
        ngx_sluice_lines_add(spool, &found);
        sluice_spool_advance(spool, &found);

        bytes += found.end - found.position;
    }

    ngx_sluice_lines_flush();

    return bytes > 0;
}


/* A timer that nginx waits for, unlike those of the gateway. */

void
ngx_sluice_reader_leave(void)
{
    ngx_event_t  *e;

    e = &ngx_sluice_reader_event;

    if (ngx_sluice_reader_state == NGX_SLUICE_READER_NONE || e->handler) {
        return;
    }

    ngx_sluice_loop_prepare(e, ngx_sluice_reader_leave_handler, NULL);
    ngx_add_timer(e, NGX_SLUICE_READER_LOOK);

    ngx_sluice_handover_wake();
}


static void
ngx_sluice_reader_leave_handler(ngx_event_t *e)
{
    if (sluice_spool_is_wanted(ngx_sluice_spool())
        || ngx_sluice_reader_is_alone())
    {
        ngx_sluice_reader_stop();
    }

    if (ngx_sluice_reader_state == NGX_SLUICE_READER_RUNS) {
        ngx_add_timer(e, NGX_SLUICE_READER_LOOK);
    }
}


/* Whether no traffic worker is left, of any generation. */

static ngx_uint_t
ngx_sluice_reader_is_alone(void)
{
    uint32_t                  i;
    sluice_ring_stats_t       stats;
    sluice_ring_slot_stats_t  slot;

    sluice_ring_stats(&ngx_sluice_ring.ring, &stats);

    for (i = 0; i < stats.top; i++) {

        if (sluice_ring_slot_stats(&ngx_sluice_ring.ring, i, &slot)
            != SLUICE_OK
            || slot.state == SLUICE_RING_FREE
            || slot.worker == 0 || slot.worker >= SLUICE_RING_AGENT)
        {
            continue;
        }

        if (kill((pid_t) slot.pid, 0) == 0 || ngx_errno != ESRCH) {
            return 0;
        }
    }

    return 1;
}


static void
ngx_sluice_reader_stop(void)
{
    ngx_sluice_reader_stops = 1;
    sluice_spool_wake(ngx_sluice_spool());
}


/* What stands in the spool now still goes where it can. */

void
ngx_sluice_reader_exit_process(void)
{
    ngx_uint_t  ms;

    if (ngx_sluice_reader_state == NGX_SLUICE_READER_NONE) {
        return;
    }

    ngx_sluice_reader_stop();

    for (ms = 0; ms < NGX_SLUICE_READER_END; ms += NGX_SLUICE_READER_NAP) {

        if (ngx_sluice_reader_state == NGX_SLUICE_READER_OVER
            && ngx_sluice_reader_is_settled())
        {
            break;
        }

        ngx_msleep(NGX_SLUICE_READER_NAP);
    }

    ngx_sluice_handover_exit_process();
    ngx_sluice_reader_lines_exit_process();
}


static ngx_uint_t
ngx_sluice_reader_is_settled(void)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_sluice_plugins[i]; i++) {

        if (ngx_http_sluice_plugins[i]->settled
            && !ngx_http_sluice_plugins[i]->settled())
        {
            return 0;
        }
    }

    return 1;
}
