
/*
 * Timers as Lua makes and runs them.
 */


#include "ngx_sluice_timer.h"


static int ngx_sluice_timer_is_named(sluice_timer_core_t *core, lua_State *l);
static void ngx_sluice_timer_spec(sluice_timer_core_t *core, lua_State *l,
    sluice_timers_spec_t *spec);
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

    if (ngx_sluice_timer_is_named(core, l)) {
        why = "already exists timer";
        goto refused;
    }

    ngx_sluice_timer_spec(core, l, &spec);

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


/* Whether another timer has the name that create() was given. */

static int
ngx_sluice_timer_is_named(sluice_timer_core_t *core, lua_State *l)
{
    int  is_named;

    if (lua_type(l, 9) != LUA_TSTRING) {
        return 0;
    }

    lua_pushvalue(l, 9);
    lua_xmove(l, core->vm, 1);
    lua_rawget(core->vm, NGX_SLUICE_TIMER_NAMES);
    is_named = lua_type(core->vm, -1) != LUA_TNIL;
    lua_pop(core->vm, 1);

    return is_named;
}


/* Of the arguments of create(). */

static void
ngx_sluice_timer_spec(sluice_timer_core_t *core, lua_State *l,
    sluice_timers_spec_t *spec)
{
    spec->delay_us = ngx_sluice_timer_up(lua_tonumber(l, 3) * 1e6);
    spec->interval_us = ngx_sluice_timer_up(lua_tonumber(l, 4) * 1e6);
    spec->jitter_ms = (uint32_t) ngx_sluice_timer_up(lua_tonumber(l, 5) * 1e3);
    spec->tolerance_ms = (uint32_t) (lua_tonumber(l, 6) * 1e3);
    spec->warn_ms = (uint32_t) ngx_sluice_timer_up(lua_tonumber(l, 7) * 1e3);
    spec->flags = (uint16_t) (lua_tointeger(l, 2)
                              | (core->debug ? SLUICE_TIMER_DEBUG : 0));
    spec->place = ngx_sluice_timer_place(core, l,
                                         2 + (int) lua_tointeger(l, 8));
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
 * step(context, callbacks): ends the context's run and begins the next.
 * Returns the callbacks of its page, which Lua's for hands back to the next
 * step, and the function to be called with false.  Nothing: the context has
 * been taken over from, or is done for now.
 *
 * In one piece with what it calls as a rule (flatten), which saves a seventh
 * of a fire's instructions.
 */

__attribute__((flatten)) int
ngx_sluice_timer_step(lua_State *l)
{
    uint64_t                     now;
    sluice_timer_t              *t;
    sluice_timer_core_t         *core;
    ngx_sluice_timer_context_t  *c;

    if (l != ngx_sluice_timer_runner.l) {
        ngx_sluice_timer_runner.l = l;
        ngx_sluice_timer_runner.context = lua_touserdata(l, 1);
    }

    c = ngx_sluice_timer_runner.context;
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

    /* what is taken was there at the claim, and so was its page */

    if (c->page != ngx_sluice_timer_page(t)) {
        c->page = ngx_sluice_timer_page(t);
        lua_rawgeti(core->vm, NGX_SLUICE_TIMER_REFS, (int) c->page);
        lua_xmove(core->vm, l, 1);
        lua_replace(l, 2);
    }

    if (c->run.premature || t->flags & SLUICE_TIMER_ARGUMENTS) {
        lua_pushvalue(core->vm, NGX_SLUICE_TIMER_APPLY);
        lua_xmove(core->vm, l, 1);

    } else {
        lua_rawgeti(l, 2, (int) ngx_sluice_timer_slot(t));
    }

    return 2;
}


/* args(): the callback of the run that has just begun, and its arguments. */

int
ngx_sluice_timer_args(lua_State *l)
{
    int                          i, n;
    lua_State                   *vm;
    sluice_timer_t              *t;
    ngx_sluice_timer_context_t  *c;

    c = ngx_sluice_timer_runner.context;
    vm = c->core->vm;
    t = c->run.timer;

    lua_rawgeti(vm, NGX_SLUICE_TIMER_REFS, (int) ngx_sluice_timer_page(t));
    lua_rawgeti(vm, -1, (int) ngx_sluice_timer_slot(t));
    lua_xmove(vm, l, 1);

    lua_pushboolean(l, c->run.premature);

    if (!(t->flags & SLUICE_TIMER_ARGUMENTS)) {
        lua_pop(vm, 1);
        return 2;
    }

    lua_rawgeti(vm, -1, (int) ngx_sluice_timer_slot(t) + 1);
    lua_rawgeti(vm, -1, 1);
    n = (int) lua_tointeger(vm, -1);
    lua_pop(vm, 1);

    if (!lua_checkstack(l, n)) {
        lua_pop(vm, 2);
        return luaL_error(l, "stack overflow (arguments of a timer)");
    }

    for (i = 1; i <= n; i++) {
        lua_rawgeti(vm, -1, i + 1);
        lua_xmove(vm, l, 1);
    }

    lua_pop(vm, 2);

    return n + 2;
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
