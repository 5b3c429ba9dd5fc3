
/*
 * One timer from its creation to its end, as Lua sees it.
 */


#include "ngx_sluice_timer.h"


static uint64_t ngx_sluice_timer_up(double value);
static void ngx_sluice_timer_clean(sluice_timer_core_t *core,
    ngx_sluice_timer_context_t *c);
static void ngx_sluice_timer_fail(sluice_timer_core_t *core,
    sluice_timer_t *t, uint64_t now, const char *error);
static void ngx_sluice_timer_warn(sluice_timer_core_t *core,
    sluice_timer_t *t, uint64_t elapsed, uint64_t now);
static u_char *ngx_sluice_timer_left_out(sluice_timers_account_t *a,
    u_char *buf);


#define NGX_SLUICE_TIMER_LEFT_OUT                                             \
    sizeof(" (and  more since the last such line)") + NGX_INT64_LEN


/*
 * create(core, flags, delay, interval, jitter, tolerance, warn_after, level,
 *        name, callback, ...): all checked by init.lua, in seconds.
 */

int
ngx_sluice_timer_create(lua_State *l)
{
    double                delay;
    uint64_t              now;
    sluice_timer_t       *t;
    const char           *why;
    sluice_timer_core_t  *core;
    sluice_timers_spec_t  spec;

    core = lua_touserdata(l, 1);
    delay = lua_tonumber(l, 3);
    now = ngx_sluice_timer_now(core);

    if (core->destroyed) {
        why = "destroyed";
        goto refused;
    }

    if (core->timers.exiting
        && (delay > 0 || now - core->exit_ns > NGX_SLUICE_TIMER_LAST))
    {
        why = "process exiting";
        goto refused;
    }

    if (lua_type(l, 9) == LUA_TSTRING) {
        lua_pushvalue(l, 9);
        lua_xmove(l, core->vm, 1);
        lua_rawget(core->vm, NGX_SLUICE_TIMER_NAMES);

        if (lua_type(core->vm, -1) != LUA_TNIL) {
            lua_pop(core->vm, 1);
            why = "already exists timer";
            goto refused;
        }

        lua_pop(core->vm, 1);
    }

    spec.delay_us = ngx_sluice_timer_up(delay * 1e6);
    spec.interval_us = ngx_sluice_timer_up(lua_tonumber(l, 4) * 1e6);
    spec.jitter_ms = (uint32_t) ngx_sluice_timer_up(lua_tonumber(l, 5) * 1e3);
    spec.tolerance_ms = (uint32_t) (lua_tonumber(l, 6) * 1e3);
    spec.warn_ms = (uint32_t) ngx_sluice_timer_up(lua_tonumber(l, 7) * 1e3);
    spec.flags = (uint16_t) (lua_tointeger(l, 2)
                             | (core->debug ? SLUICE_TIMER_DEBUG : 0));
    spec.place = ngx_sluice_timer_place(core, l,
                                        2 + (int) lua_tointeger(l, 8));

    t = sluice_timers_create(&core->timers, &spec, now);

    if (t == NULL) {
        why = core->timers.count == SLUICE_TIMERS_MAX ? "too many timers"
                                                      : "no memory";
        goto refused;
    }

    if (ngx_sluice_timer_keep(core, l, t) != NGX_OK) {
        sluice_timers_cancel(&core->timers, t);
        why = "no memory";
        goto refused;
    }

    ngx_sluice_timer_created(core, t);

    if (core->total == 0 && core->started && !ngx_sluice_timer_coming(core)
        && ngx_sluice_timer_revive(core, l) != NGX_OK && core->timers.exiting)
    {
        sluice_timers_cancel(&core->timers, t);
        why = "process exiting";
        goto refused;
    }

    lua_pushnumber(l, sluice_timers_handle(t));

    return 1;

refused:

    lua_pushnil(l);
    lua_pushstring(l, why);

    return 2;
}


/*
 * Up, since a timer never fires early; but what is over the whole number by
 * the error of a multiplication is no reason to drift.
 */

static uint64_t
ngx_sluice_timer_up(double value)
{
    return (uint64_t) (value + 0.999);
}


/*
 * step(context): ends the context's run and begins the next; returns where
 * its callback is, the page and the slot in that.  If either is so, then
 * whether it is premature and whether it has arguments, too.  Nothing: the
 * context has been taken over from, or is done for now.
 *
 * Numbers, since Lua finds a callback by them in a third of the time that it
 * takes to hand it over from another stack.
 */

int
ngx_sluice_timer_step(lua_State *l)
{
    uint64_t                     now;
    sluice_timer_t              *t;
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    c = lua_touserdata(l, 1);
    core = c->core;

    /* a run begins when the one before it ends: the clock is dear */
    now = ngx_sluice_timer_now(core);

    if (c->run.timer) {
        ngx_sluice_timer_finish(core, c, now, NULL);
    }

    if (core->owner != c->id) {
        return 0;
    }

    if (now >= core->slice_end || core->frozen || core->destroyed
        || !sluice_timers_take(&core->timers, &c->run, now))
    {
        ngx_sluice_timer_release(core);
        return 0;
    }

    t = c->run.timer;

    lua_pushinteger(l, (lua_Integer) ngx_sluice_timer_page(t));
    lua_pushinteger(l, (lua_Integer) ngx_sluice_timer_slot(t));

    if (!c->run.premature && !(t->flags & SLUICE_TIMER_ARGUMENTS)) {
        return 2;
    }

    lua_pushboolean(l, c->run.premature);
    lua_pushboolean(l, t->flags & SLUICE_TIMER_ARGUMENTS);

    return 4;
}


/* args(core, context): the arguments of the run that has begun. */

int
ngx_sluice_timer_args(lua_State *l)
{
    int                   i, n;
    sluice_timer_t       *t;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    t = core->contexts[lua_tointeger(l, 2)].run.timer;

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_REFS,
                (int) ngx_sluice_timer_page(t));
    lua_rawgeti(core->vm, -1, (int) ngx_sluice_timer_slot(t) + 1);
    lua_rawgeti(core->vm, -1, 1);
    n = (int) lua_tointeger(core->vm, -1);
    lua_pop(core->vm, 1);

    luaL_checkstack(l, n, "arguments of a timer");

    for (i = 1; i <= n; i++) {
        lua_rawgeti(core->vm, -1, i + 1);
        lua_xmove(core->vm, l, 1);
    }

    lua_pop(core->vm, 2);

    return n;
}


/* failed(core, context, error): the run has ended so. */

int
ngx_sluice_timer_failed(lua_State *l)
{
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    core = lua_touserdata(l, 1);
    c = &core->contexts[lua_tointeger(l, 2)];

    if (c->run.timer) {
        ngx_sluice_timer_finish(core, c, ngx_sluice_timer_now(core),
                                lua_tostring(l, 3));
    }

    return 0;
}


void
ngx_sluice_timer_finish(sluice_timer_core_t *core,
    ngx_sluice_timer_context_t *c, uint64_t now, const char *error)
{
    sluice_timer_t  *t;

    t = c->run.timer;

    if (core->ctx && c->request) {
        ngx_sluice_timer_clean(core, c);
    }

    if (error) {
        ngx_sluice_timer_fail(core, t, now, error);
    }

    if (t->warn_ms && now - c->run.start_ns > t->warn_ms * 1000000ULL) {
        ngx_sluice_timer_warn(core, t, now - c->run.start_ns, now);
    }

    sluice_timers_finish(&core->timers, &c->run, now, error != NULL);

    /* what a taken over context arms, nobody else does */

    if (core->owner == NGX_SLUICE_TIMER_NOBODY && !core->destroyed) {
        ngx_sluice_timer_poke(core);
    }
}


/* Keeps an error for the statistics, and logs it. */

static void
ngx_sluice_timer_fail(sluice_timer_core_t *core, sluice_timer_t *t,
    uint64_t now, const char *error)
{
    u_char                    more[NGX_SLUICE_TIMER_LEFT_OUT];
    sluice_timers_account_t  *a;

    a = core->timers.accounts[t->place];

    lua_pushstring(core->vm, error);

    if (!(t->flags & SLUICE_TIMER_GONE)) {
        t->flags |= SLUICE_TIMER_ERROR;
        lua_pushnumber(core->vm, sluice_timers_handle(t));
        lua_pushvalue(core->vm, -2);
        lua_rawset(core->vm, NGX_SLUICE_TIMER_FAILED);
    }

    lua_rawseti(core->vm, NGX_SLUICE_TIMER_ERRORS, (int) t->place + 1);

    if (a->logged_ns == 0 || now - a->logged_ns > NGX_SLUICE_TIMER_QUIET) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sluice: a timer made at %s failed%s: %s",
                      ngx_sluice_timer_place_text(core, t->place),
                      ngx_sluice_timer_left_out(a, more), error);
        a->logged_ns = now;
        a->unlogged = 0;

    } else {
        a->unlogged++;
    }
}


static void
ngx_sluice_timer_warn(sluice_timer_core_t *core, sluice_timer_t *t,
    uint64_t elapsed, uint64_t now)
{
    u_char                    more[NGX_SLUICE_TIMER_LEFT_OUT];
    sluice_timers_account_t  *a;

    a = core->timers.accounts[t->place];

    if (a->logged_ns && now - a->logged_ns < NGX_SLUICE_TIMER_QUIET) {
        a->unlogged++;
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "sluice: a timer made at %s ran for %uL ms%s",
                  ngx_sluice_timer_place_text(core, t->place),
                  elapsed / 1000000, ngx_sluice_timer_left_out(a, more));

    a->logged_ns = now;
    a->unlogged = 0;
}


/* what to add to a line of the log: nothing, if none was left out before it */

static u_char *
ngx_sluice_timer_left_out(sluice_timers_account_t *a, u_char *buf)
{
    u_char  *last;

    last = buf;

    if (a->unlogged) {
        last = ngx_sprintf(buf, " (and %uL more since the last such line)",
                           a->unlogged);
    }

    *last = '\0';

    return buf;
}


/*
 * The next run gets an ngx.ctx of its own if this one has used it: a new
 * table in the old one's place, which whoever holds may go on to use.
 */

static void
ngx_sluice_timer_clean(sluice_timer_core_t *core,
    ngx_sluice_timer_context_t *c)
{
    int  ref;

    ref = core->ctx(c->request, NULL, NULL);

    if (ref < 0 || lua_type(core->vm, NGX_SLUICE_TIMER_CTX) != LUA_TTABLE) {
        return;
    }

    lua_createtable(core->vm, 0, 4);
    lua_rawseti(core->vm, NGX_SLUICE_TIMER_CTX, ref);
}
