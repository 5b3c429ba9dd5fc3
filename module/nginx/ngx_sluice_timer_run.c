
/*
 * Timers as Lua makes and runs them.
 */


#include "ngx_sluice_timer.h"


static uint64_t ngx_sluice_timer_up(double value);


ngx_sluice_timer_runner_t  ngx_sluice_timer_runner;


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
 * step(context): ends the context's run and begins the next; returns the slot
 * of its callback; and the page in which that is, if it is not the one of the
 * last run, or below 0 if the callback is given more than false.  Nothing: the
 * context has been taken over from, or is done for now.
 *
 * Numbers, since Lua finds a callback by them in a third of the time that it
 * takes to hand it over from another stack.  In one piece with what it calls
 * (flatten), which saves a seventh of a fire's instructions.
 */

__attribute__((flatten)) int
ngx_sluice_timer_step(lua_State *l)
{
    uint32_t                     page;
    uint64_t                     now;
    sluice_timer_t              *t;
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    /* mostly it is the one that was last told to run */

    c = l == ngx_sluice_timer_runner.l ? ngx_sluice_timer_runner.context
                                       : lua_touserdata(l, 1);
    core = c->core;

    /* a run begins when the one before it ends: the clock is dear */
    now = ngx_sluice_timer_about(core);

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

    lua_pushinteger(l, (lua_Integer) ngx_sluice_timer_slot(t));

    /* what is taken was there at the claim, and so was its page */

    page = ngx_sluice_timer_page(t);

    if (c->run.premature || t->flags & SLUICE_TIMER_ARGUMENTS) {
        c->page = page;
        lua_pushinteger(l, -(lua_Integer) page);
        return 2;
    }

    if (c->page != page) {
        c->page = page;
        lua_pushinteger(l, (lua_Integer) page);
        return 2;
    }

    return 1;
}


/* args(core, context): what the callback of the run is given. */

int
ngx_sluice_timer_args(lua_State *l)
{
    int                          i, n;
    sluice_timer_t              *t;
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    core = lua_touserdata(l, 1);
    c = &core->contexts[lua_tointeger(l, 2)];
    t = c->run.timer;

    if (!(t->flags & SLUICE_TIMER_ARGUMENTS)) {
        lua_pushboolean(l, c->run.premature);
        return 1;
    }

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_REFS,
                (int) ngx_sluice_timer_page(t));
    lua_rawgeti(core->vm, -1, (int) ngx_sluice_timer_slot(t) + 1);
    lua_rawgeti(core->vm, -1, 1);
    n = (int) lua_tointeger(core->vm, -1);
    lua_pop(core->vm, 1);

    luaL_checkstack(l, n + 1, "arguments of a timer");

    lua_pushboolean(l, c->run.premature);

    for (i = 1; i <= n; i++) {
        lua_rawgeti(core->vm, -1, i + 1);
        lua_xmove(core->vm, l, 1);
    }

    lua_pop(core->vm, 2);

    return n + 1;
}


/* failed(core, context, error): the run has ended so. */

int
ngx_sluice_timer_failed(lua_State *l)
{
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    core = lua_touserdata(l, 1);
    c = &core->contexts[lua_tointeger(l, 2)];
    c->page = 0;

    if (c->run.timer) {
        ngx_sluice_timer_finish(core, c, ngx_sluice_timer_now(core),
                                lua_tostring(l, 3));
    }

    return 0;
}
