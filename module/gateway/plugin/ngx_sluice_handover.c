
/*
 * From the spool's thread to Lua (ngx_sluice_handover.h).
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_handover.h"
#include "ngx_sluice_loop.h"
#include "ngx_sluice_reader.h"
#include "ngx_sluice_spool.h"

#include <pthread.h>
#include <sys/eventfd.h>


#define NGX_SLUICE_HANDOVER_REPORT  10000      /* ms, between two lines */


static void ngx_sluice_handover_drop(ngx_sluice_lines_t *lines);
static void ngx_sluice_handover_handler(ngx_event_t *rev);


static pthread_mutex_t                ngx_sluice_handover_lock =
                                                    PTHREAD_MUTEX_INITIALIZER;
static ngx_sluice_lines_t   *ngx_sluice_handover_first;
static ngx_sluice_lines_t  **ngx_sluice_handover_last =
                                                    &ngx_sluice_handover_first;

/* of all that are not freed yet */

static _Atomic size_t                 ngx_sluice_handover_bytes;

static _Atomic uint32_t               ngx_sluice_handover_is_over;

static int                            ngx_sluice_handover_fd = -1;

/* the event loop's: what it has taken, the first of which Lua has in hand */

static ngx_sluice_lines_t   *ngx_sluice_handover_taken;
static ngx_connection_t              *ngx_sluice_handover_connection;
static void                          *ngx_sluice_handover_semaphore;
static int                          (*ngx_sluice_handover_post)(void *, int);


ngx_int_t
ngx_sluice_handover_init(void)
{
    int                fd;
    ngx_connection_t  *c;

    fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    c = NULL;

    if (fd != -1) {
        c = ngx_sluice_loop_listen(fd, ngx_sluice_handover_handler, NULL);
    }

    if (c == NULL) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "sluice: no eventfd for the entries of log plugins");
        return NGX_ERROR;
    }

    ngx_sluice_handover_fd = fd;
    ngx_sluice_handover_connection = c;

    return NGX_OK;
}


/* The thread may still write to the file, which so stays open. */

void
ngx_sluice_handover_exit_process(void)
{
    if (ngx_sluice_handover_connection) {
        ngx_sluice_loop_unlisten(ngx_sluice_handover_connection);
        ngx_sluice_handover_connection = NULL;
        ngx_sluice_handover_post = NULL;
    }
}


void
ngx_sluice_handover_put(ngx_sluice_lines_t *lines)
{
    uint64_t    one;
    ngx_uint_t  is_first;

    /* the spool is not believed */

    if (lines->target != sizeof(ngx_sluice_handover_target_t)
        || ngx_sluice_handover_bytes + lines->size
           > ngx_sluice_spool()->size)
    {
        ngx_sluice_handover_drop(lines);
        return;
    }

    ngx_sluice_handover_bytes += lines->size;
    lines->next = NULL;

    (void) pthread_mutex_lock(&ngx_sluice_handover_lock);

    is_first = (ngx_sluice_handover_first == NULL);
    *ngx_sluice_handover_last = lines;
    ngx_sluice_handover_last = &lines->next;

    (void) pthread_mutex_unlock(&ngx_sluice_handover_lock);

    one = 1;

    if (is_first && write(ngx_sluice_handover_fd, &one, sizeof(one)) == -1) {
        /* its sum is full: then the event loop is told already */
        return;
    }
}


void
ngx_sluice_handover_end(void)
{
    ngx_sluice_handover_is_over = 1;
}


static void
ngx_sluice_handover_drop(ngx_sluice_lines_t *lines)
{
    uint64_t           now;
    static uint64_t    reported;
    static ngx_uint_t  dropped;

    sluice_spool_lose(ngx_sluice_spool(), lines->count);
    dropped += lines->count;
    free(lines);

    now = ngx_sluice_clock_ms(CLOCK_MONOTONIC_COARSE);

    if (reported == 0 || now - reported >= NGX_SLUICE_HANDOVER_REPORT) {
        ngx_sluice_reader_say(NGX_LOG_ERR, "log plugins: %ui entr%s dropped: "
                              "the control worker did not take them in time",
                              dropped,
                              dropped == 1 ? "y was" : "ies were");
        reported = now;
        dropped = 0;
    }
}


static void
ngx_sluice_handover_handler(ngx_event_t *rev)
{
    ngx_sluice_loop_take(rev, "the reader of log entries", "log entries");

    ngx_sluice_handover_wake();
}


void
ngx_sluice_handover_wake(void)
{
    if (ngx_sluice_handover_post) {
        (void) ngx_sluice_handover_post(ngx_sluice_handover_semaphore, 1);
    }
}


/* From now on the semaphore is posted when there is something to take. */

void
sluice_handover_start(void *semaphore, int (*post)(void *, int))
{
    ngx_sluice_handover_semaphore = semaphore;
    ngx_sluice_handover_post = post;
}


/*
 * The next lines; those before are gone.  NGX_DECLINED: there are none now;
 * NGX_DONE: there will be none any more.
 */

int
sluice_handover_next(sluice_handover_t *found)
{
    ngx_uint_t                     is_over;
    ngx_sluice_lines_t            *lines;
    ngx_sluice_handover_target_t   target;

    lines = ngx_sluice_handover_taken;

    if (lines) {
        ngx_sluice_handover_taken = lines->next;
        ngx_sluice_handover_bytes -= lines->size;
        free(lines);
    }

    if (ngx_sluice_handover_taken == NULL) {
        /* before the look: what comes last comes before its end */
        is_over = ngx_sluice_handover_is_over;

        (void) pthread_mutex_lock(&ngx_sluice_handover_lock);

        ngx_sluice_handover_taken = ngx_sluice_handover_first;
        ngx_sluice_handover_first = NULL;
        ngx_sluice_handover_last = &ngx_sluice_handover_first;

        (void) pthread_mutex_unlock(&ngx_sluice_handover_lock);

        if (ngx_sluice_handover_taken == NULL) {
            return is_over ? NGX_DONE : NGX_DECLINED;
        }
    }

    lines = ngx_sluice_handover_taken;

    ngx_memcpy(&target, lines->data, sizeof(target));

    found->plugin.data = (const char *) lines->plugin->name.data;
    found->plugin.length = (uint32_t) lines->plugin->name.len;
    found->lines.data = (const char *) ngx_sluice_lines_text(lines);
    found->lines.length = (uint32_t) lines->length;
    found->revision = target.revision;
    found->slot = target.slot;
    found->generation = target.generation;
    found->count = (uint32_t) lines->count;

    return NGX_OK;
}
