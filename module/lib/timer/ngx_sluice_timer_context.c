
/*
 * The contexts of timers: who has to do what, how many there are.
 */


#include "ngx_sluice_timer.h"

#include <ngx_http.h>


/* An nginx without http may lack it. */
#pragma weak ngx_http_cleanup_add


static void ngx_sluice_timer_wake(sluice_timer_core_t *core);
static ngx_uint_t ngx_sluice_timer_alone(sluice_timer_core_t *core,
    uint64_t now, ngx_uint_t *more);
static void ngx_sluice_timer_end_handler(void *data);


static void
ngx_sluice_timer_wake(sluice_timer_core_t *core)
{
    if (core->parked > core->woken) {
        core->woken++;
        (void) core->post(core->semaphore, 1);
    }
}


/* Contexts that are yet to ask; nginx drops those that it has no room for. */

ngx_uint_t
ngx_sluice_timer_coming(sluice_timer_core_t *core)
{
    if (core->coming
        && ngx_sluice_timer_now(core) - core->coming_ns
           > NGX_SLUICE_TIMER_COMING)
    {
        core->coming = 0;
        core->dropped = 1;
    }

    return core->coming;
}


/*
 * There is work.  If all contexts are busy, the first that is not looks for
 * it.  Callbacks that end their requests (ngx.exit) could end all contexts,
 * and only a context can make others: so the last one keeps its hands free.
 */

void
ngx_sluice_timer_call(sluice_timer_core_t *core)
{
    if (core->total < core->max || core->parked > 1) {
        ngx_sluice_timer_wake(core);
    }
}


/*
 * Whether a context may run callbacks though no other is parked, which would
 * make others if they end it (ngx.exit).  It makes them first, and they are
 * waited for; but not for ever where nginx has no room for any.
 */

static ngx_uint_t
ngx_sluice_timer_alone(sluice_timer_core_t *core, uint64_t now,
    ngx_uint_t *more)
{
    if (core->total == core->max) {
        return 0;
    }

    if (!ngx_sluice_timer_coming(core)) {
        *more = ngx_min(core->max - core->total, core->total / 2 + 1);
        core->coming = *more;
        core->coming_ns = now;

        ngx_add_timer(&core->late, NGX_SLUICE_TIMER_LATE);
    }

    return core->dropped;
}


/* Those that were to come have done so by now, or never will. */

void
ngx_sluice_timer_late_handler(ngx_event_t *e)
{
    sluice_timer_core_t *core = e->data;

    if (ngx_sluice_timer_coming(core)) {
        ngx_add_timer(e, NGX_SLUICE_TIMER_LATE);
        return;
    }

    ngx_sluice_timer_poke(core);
}


/* A context asks what to do.  more: contexts to be made before. */

ngx_uint_t
ngx_sluice_timer_claim(sluice_timer_core_t *core, ngx_uint_t id,
    ngx_uint_t *more)
{
    uint64_t                     now;
    ngx_sluice_timer_context_t  *c;

    c = &core->contexts[id];
    *more = 0;

    if (c->parked) {
        c->parked = 0;
        core->parked--;

        if (core->woken) {
            core->woken--;
        }

        if (core->parked < core->least) {
            core->least = core->parked;
        }
    }

    if (core->destroyed) {
        return NGX_SLUICE_TIMER_END;
    }

    if (core->owner == NGX_SLUICE_TIMER_NOBODY
        && !sluice_timers_empty(&core->timers) && !core->frozen)
    {
        now = ngx_sluice_timer_now(core);

        if (now >= core->slice_end) {
            ngx_post_event(&core->turn, &ngx_posted_next_events);

        } else if (core->parked || ngx_sluice_timer_alone(core, now, more)) {
            core->owner = id;
            c->page = 0;
            ngx_post_event(&core->yielded, &ngx_posted_events);

            return NGX_SLUICE_TIMER_RUN;
        }
    }

    if (core->timers.exiting && !ngx_sluice_timer_has_work(core)) {
        return NGX_SLUICE_TIMER_END;
    }

    if (core->ending) {
        core->ending--;
        return NGX_SLUICE_TIMER_END;
    }

    c->parked = 1;
    core->parked++;

    if (core->timers.exiting) {
        ngx_sluice_timer_linger(core);
    }

    if (core->parked > core->min && !core->shrink.timer_set) {
        core->least = core->parked;
        ngx_add_timer(&core->shrink, NGX_SLUICE_TIMER_SHRINK);
    }

    return NGX_SLUICE_TIMER_WAIT;
}


/* Half of the contexts that were never needed since the last look end. */

void
ngx_sluice_timer_shrink_handler(ngx_event_t *e)
{
    ngx_uint_t            n;
    sluice_timer_core_t  *core = e->data;

    if (core->destroyed || core->parked <= core->min) {
        return;
    }

    n = ngx_min(core->parked - core->min, (core->least + 1) / 2);

    core->least = core->parked;
    core->ending = n;

    while (n-- && core->parked > core->woken) {
        ngx_sluice_timer_wake(core);
    }

    if (core->parked > core->min + core->ending) {
        ngx_add_timer(e, NGX_SLUICE_TIMER_SHRINK);
    }
}


/*
 * In a process that exits: looks again until no context is parked.  Whoever
 * parks one calls this, for the look that ends the last may be over.
 */

void
ngx_sluice_timer_linger(sluice_timer_core_t *core)
{
    if (!core->linger.timer_set) {
        ngx_add_timer(&core->linger, NGX_SLUICE_TIMER_LINGER);
    }
}


void
ngx_sluice_timer_end_parked(sluice_timer_core_t *core)
{
    while (core->parked > core->woken) {
        ngx_sluice_timer_wake(core);
    }
}


/*
 * A timer has been created and there is no context: all have ended, with the
 * process or by their callbacks.  The caller's Lua machine makes one.
 */

ngx_int_t
ngx_sluice_timer_revive(sluice_timer_core_t *core, lua_State *l)
{
    int  made;

    if (!lua_checkstack(l, 3)) {
        return NGX_ERROR;
    }

    core->coming = 1;
    core->coming_ns = ngx_sluice_timer_now(core);

    lua_pushvalue(core->vm, NGX_SLUICE_TIMER_MORE);
    lua_xmove(core->vm, l, 1);
    lua_pushinteger(l, 1);

    made = lua_pcall(l, 1, 1, 0) == 0 && lua_toboolean(l, -1);

    lua_pop(l, 1);

    if (!made) {
        core->coming = 0;
        return NGX_ERROR;
    }

    if (core->timers.exiting) {
        ngx_sluice_timer_linger(core);
    }

    return NGX_OK;
}


/*
 * A new context; its number, or -1 if it is not needed any more.  The end of
 * its request is a cleanup's business: ngx.exit ends it without a word.
 */

int
sluice_timer_enter(sluice_timer_core_t *core, void *request, int http)
{
    ngx_uint_t                   i;
    ngx_http_cleanup_t          *cln;
    ngx_sluice_timer_context_t  *c;

    if (core->coming) {
        core->coming--;
    }

    if (core->destroyed || core->total == core->max) {
        return -1;
    }

    for (i = 0; core->contexts[i].used; i++) { /* void */ }

    c = &core->contexts[i];

    ngx_memzero(c, sizeof(*c));

    c->core = core;
    c->id = i;
    c->request = request;

    if (http && ngx_http_cleanup_add) {
        cln = ngx_http_cleanup_add(request, sizeof(ngx_sluice_timer_end_t));
        if (cln == NULL) {
            return -1;
        }

        c->end = cln->data;
        c->end->core = core;
        c->end->context = i;
        cln->handler = ngx_sluice_timer_end_handler;
    }

    c->used = 1;
    core->total++;
    core->dropped = 0;

    return (int) i;
}


static void
ngx_sluice_timer_end_handler(void *data)
{
    ngx_sluice_timer_end_t *end = data;

    if (end->core) {
        ngx_sluice_timer_leave(end->core, end->context);
    }
}


void
ngx_sluice_timer_leave(sluice_timer_core_t *core, ngx_uint_t id)
{
    ngx_sluice_timer_context_t  *c;

    c = &core->contexts[id];

    if (c->end) {
        c->end->core = NULL;
        c->end = NULL;
    }

    c->request = NULL;

    if (c->run.timer) {
        ngx_sluice_timer_finish(core, c, ngx_sluice_timer_now(core), NULL);
    }

    if (c->parked) {
        c->parked = 0;
        core->parked--;
    }

    c->used = 0;
    core->total--;

    if (core->owner == id) {
        ngx_sluice_timer_release(core);
    }
}
