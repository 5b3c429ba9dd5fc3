
/*
 * The contexts of the events' dispatcher: ngx.exit in a callback ends one
 * without a word to Lua, so a cleanup of its request notes that.  Of the http
 * subsystem alone: the Lua module has no such cleanups for others in stream.
 */


#include "ngx_sluice_events.h"

#include <ngx_http.h>


/* An nginx without http may lack it. */
#pragma weak ngx_http_cleanup_add


typedef struct {
    ngx_queue_t         queue;
    double              serial;
    void               *semaphore;
    ngx_sluice_post_pt  post;
} ngx_sluice_events_context_t;


static void ngx_sluice_events_end_handler(void *data);
static ngx_sluice_events_context_t *ngx_sluice_events_context(double serial);


static ngx_queue_t  ngx_sluice_events_contexts;
static double       ngx_sluice_events_serial;


/*
 * A new context: its number, or 0 if nobody will know of its end.  When that
 * comes without leave, the semaphore is posted.
 */

double
sluice_events_enter(void *request, void *semaphore, ngx_sluice_post_pt post)
{
    ngx_http_cleanup_t           *cln;
    ngx_sluice_events_context_t  *c;

    if (!ngx_http_cleanup_add) {
        return 0;
    }

    cln = ngx_http_cleanup_add(request, sizeof(ngx_sluice_events_context_t));
    if (cln == NULL) {
        return 0;
    }

    if (ngx_sluice_events_contexts.next == NULL) {
        ngx_queue_init(&ngx_sluice_events_contexts);
    }

    c = cln->data;
    c->serial = ++ngx_sluice_events_serial;
    c->semaphore = semaphore;
    c->post = post;

    cln->handler = ngx_sluice_events_end_handler;

    ngx_queue_insert_tail(&ngx_sluice_events_contexts, &c->queue);

    return c->serial;
}


static void
ngx_sluice_events_end_handler(void *data)
{
    ngx_sluice_events_context_t *c = data;

    ngx_queue_remove(&c->queue);

    if (c->post) {
        (void) c->post(c->semaphore, 1);
    }
}


/* There are few. */

static ngx_sluice_events_context_t *
ngx_sluice_events_context(double serial)
{
    ngx_queue_t                  *q;
    ngx_sluice_events_context_t  *c;

    for (q = ngx_queue_head(&ngx_sluice_events_contexts);
         q != ngx_queue_sentinel(&ngx_sluice_events_contexts);
         q = ngx_queue_next(q))
    {
        c = ngx_queue_data(q, ngx_sluice_events_context_t, queue);

        if (c->serial == serial) {
            return c;
        }
    }

    return NULL;
}


/* The context is about to end, and nobody needs to be woken for that. */

void
sluice_events_leave(double serial)
{
    ngx_sluice_events_context_t  *c;

    c = ngx_sluice_events_context(serial);

    if (c) {
        c->post = NULL;
    }
}


int
sluice_events_has_ended(double serial)
{
    return ngx_sluice_events_context(serial) == NULL;
}


/* The Lua machine closes, and its semaphores with it. */

void
sluice_events_leave_all(void)
{
    ngx_queue_t                  *q;
    ngx_sluice_events_context_t  *c;

    if (ngx_sluice_events_contexts.next == NULL) {
        return;
    }

    for (q = ngx_queue_head(&ngx_sluice_events_contexts);
         q != ngx_queue_sentinel(&ngx_sluice_events_contexts);
         q = ngx_queue_next(q))
    {
        c = ngx_queue_data(q, ngx_sluice_events_context_t, queue);
        c->post = NULL;
    }
}
