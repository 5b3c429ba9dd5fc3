
/*
 * Statistics as Lua tables, in seconds.
 */


#include "ngx_sluice_timer.h"


/* A backlog is counted up to this by walking along it. */
#define NGX_SLUICE_TIMER_WALK  1000000


static void ngx_sluice_timer_set(lua_State *l, const char *name, double value);
static void ngx_sluice_timer_spread(lua_State *l, const char *name,
    const sluice_timers_spread_t *s);
static void ngx_sluice_timer_account(lua_State *l,
    const sluice_timers_account_t *a);
static void ngx_sluice_timer_runs(lua_State *l, const sluice_timer_t *t);
static double ngx_sluice_timer_due(const sluice_timer_t *t, uint64_t now_us);
static void ngx_sluice_timer_record(sluice_timer_core_t *core, lua_State *l,
    sluice_timer_t *t);
static const char *ngx_sluice_timer_state(const sluice_timer_t *t,
    uint64_t now_us);


static void
ngx_sluice_timer_set(lua_State *l, const char *name, double value)
{
    lua_pushnumber(l, value);
    lua_setfield(l, -2, name);
}


static void
ngx_sluice_timer_spread(lua_State *l, const char *name,
    const sluice_timers_spread_t *s)
{
    lua_createtable(l, 0, 5);

    ngx_sluice_timer_set(l, "min", (double) s->min_ns * 1e-9);
    ngx_sluice_timer_set(l, "max", (double) s->max_ns * 1e-9);
    ngx_sluice_timer_set(l, "mean", sluice_timers_mean(s) * 1e-9);
    ngx_sluice_timer_set(l, "variance", sluice_timers_variance(s) * 1e-18);
    ngx_sluice_timer_set(l, "p99", sluice_timers_p99(s) * 1e-9);

    lua_setfield(l, -2, name);
}


static void
ngx_sluice_timer_account(lua_State *l, const sluice_timers_account_t *a)
{
    ngx_sluice_timer_set(l, "runs", (double) a->elapsed.count);
    ngx_sluice_timer_set(l, "successes",
                         (double) (a->elapsed.count - a->failures));
    ngx_sluice_timer_set(l, "failures", (double) a->failures);
    ngx_sluice_timer_set(l, "skipped", (double) a->skipped);
    ngx_sluice_timer_spread(l, "elapsed", &a->elapsed);
    ngx_sluice_timer_spread(l, "lateness", &a->late);
}


/* totals(core) */

int
ngx_sluice_timer_totals(lua_State *l)
{
    uint64_t              age_us;
    uint32_t              backlog, elsewhere;
    sluice_timers_t      *ts;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    ts = &core->timers;

    backlog = sluice_timers_backlog(ts, NGX_SLUICE_TIMER_WALK,
                                    ngx_sluice_timer_now(core), &age_us);
    elsewhere = backlog + ts->paused + ts->running;

    lua_createtable(l, 0, 16);

    ngx_sluice_timer_set(l, "total", ts->count);
    ngx_sluice_timer_set(l, "waiting",
                         ts->count > elsewhere ? ts->count - elsewhere : 0);
    ngx_sluice_timer_set(l, "pending", backlog);
    ngx_sluice_timer_set(l, "running", ts->running);
    ngx_sluice_timer_set(l, "paused", ts->paused);
    ngx_sluice_timer_set(l, "created", (double) ts->created);
    ngx_sluice_timer_set(l, "runs", (double) ts->runs);
    ngx_sluice_timer_set(l, "failures", (double) ts->failures);
    ngx_sluice_timer_set(l, "skipped", (double) ts->skipped);
    ngx_sluice_timer_set(l, "contexts", (double) core->total);
    ngx_sluice_timer_set(l, "contexts_parked", (double) core->parked);
    ngx_sluice_timer_set(l, "contexts_max", (double) core->max);
    ngx_sluice_timer_set(l, "backlog_age", (double) age_us * 1e-6);

    return 1;
}


/* place(core, i): its text and statistics; false: none; nothing: the end. */

int
ngx_sluice_timer_place_stats(lua_State *l)
{
    lua_Integer               i;
    sluice_timer_core_t      *core;
    sluice_timers_account_t  *a;

    core = lua_touserdata(l, 1);
    i = lua_tointeger(l, 2);

    if (i >= (lua_Integer) core->timers.account_count) {
        return 0;
    }

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_PLACES, (int) i + 1);
    a = core->timers.accounts[i];

    if (lua_type(core->vm, -1) == LUA_TNIL || (i == 0 && a->created == 0)) {
        lua_pop(core->vm, 1);
        lua_pushboolean(l, 0);
        return 1;
    }

    lua_xmove(core->vm, l, 1);
    lua_createtable(l, 0, 12);

    ngx_sluice_timer_set(l, "created", (double) a->created);
    ngx_sluice_timer_set(l, "timers", (double) a->live);
    ngx_sluice_timer_set(l, "running", (double) a->running);
    ngx_sluice_timer_account(l, a);

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_ERRORS, (int) i + 1);
    lua_xmove(core->vm, l, 1);
    lua_setfield(l, -2, "last_err");

    return 2;
}


/*
 * timer(core, which): of a handle or name; nothing: not found.
 * timer(core, from, true): the next one from an index on, and the index after
 * it; nothing: the end.
 */

int
ngx_sluice_timer_stats(lua_State *l)
{
    sluice_timer_t       *t;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    if (lua_toboolean(l, 3)) {
        t = sluice_timers_from(&core->timers, (uint32_t) lua_tointeger(l, 2));

    } else if (lua_type(l, 2) == LUA_TNUMBER) {
        t = sluice_timers_at(&core->timers, lua_tonumber(l, 2));

    } else {
        t = ngx_sluice_timer_find(core, l, 2);
    }

    if (t == NULL) {
        return 0;
    }

    ngx_sluice_timer_record(core, l, t);
    lua_pushinteger(l, (lua_Integer) t->index + 1);

    return 2;
}


static const char *
ngx_sluice_timer_state(const sluice_timer_t *t, uint64_t now_us)
{
    if (t->running) {
        return "running";
    }

    if (t->flags & SLUICE_TIMER_PAUSED) {
        return "paused";
    }

    return t->node.expires * 1000 <= now_us ? "pending" : "waiting";
}


/* In microseconds from now; of a paused one, what is left of it. */

static double
ngx_sluice_timer_due(const sluice_timer_t *t, uint64_t now_us)
{
    if (t->flags & SLUICE_TIMER_PAUSED) {
        return (double) t->due_us;
    }

    if (t->running && !t->node.next) {
        return (double) (t->grid_us + t->interval_us) - (double) now_us;
    }

    return (double) t->due_us - (double) now_us;
}


static void
ngx_sluice_timer_record(sluice_timer_core_t *core, lua_State *l,
    sluice_timer_t *t)
{
    double    owner;
    uint64_t  now_us;

    now_us = ngx_sluice_timer_now(core) / 1000;

    lua_createtable(l, 0, 16);

    ngx_sluice_timer_set(l, "handle", sluice_timers_handle(t));

    if (!(t->flags & SLUICE_TIMER_GONE)) {
        ngx_sluice_timer_set(l, "next_due",
                             ngx_sluice_timer_due(t, now_us) * 1e-6);
    }

    if (!(t->flags & SLUICE_TIMER_ONCE)) {
        ngx_sluice_timer_set(l, "interval", (double) t->interval_us * 1e-6);
    }

    lua_pushstring(l, ngx_sluice_timer_state(t, now_us));
    lua_setfield(l, -2, "state");

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_PLACES, (int) t->place + 1);
    lua_xmove(core->vm, l, 1);
    lua_setfield(l, -2, "place");

    if (t->flags & SLUICE_TIMER_DEBUG) {
        lua_pushboolean(l, 1);
        lua_setfield(l, -2, "debug");
    }

    if (ngx_sluice_timer_name(core, t, &owner)) {

        /* another may have the name by now: lists have it once */

        if (owner == 0 || owner == sluice_timers_handle(t)) {
            lua_xmove(core->vm, l, 1);
            lua_setfield(l, -2, "name");

        } else {
            lua_pop(core->vm, 1);
        }
    }

    if (t->flags & SLUICE_TIMER_ERROR) {
        lua_pushnumber(core->vm, sluice_timers_handle(t));
        lua_rawget(core->vm, NGX_SLUICE_TIMER_FAILED);
        lua_xmove(core->vm, l, 1);
        lua_setfield(l, -2, "last_err");
    }

    if (t->account) {
        ngx_sluice_timer_account(l, core->timers.accounts[t->account]);
        return;
    }

    ngx_sluice_timer_runs(l, t);
}


static void
ngx_sluice_timer_runs(lua_State *l, const sluice_timer_t *t)
{
    ngx_sluice_timer_set(l, "runs", t->runs);
    ngx_sluice_timer_set(l, "successes", t->runs - t->failures);
    ngx_sluice_timer_set(l, "failures", t->failures);

    lua_createtable(l, 0, 4);

    ngx_sluice_timer_set(l, "min", t->runs ? (double) t->min_ns * 1e-9 : 0);
    ngx_sluice_timer_set(l, "max", (double) t->max_ns * 1e-9);
    ngx_sluice_timer_set(l, "mean", (double) t->mean_ns * 1e-9);
    ngx_sluice_timer_set(l, "variance", (double) t->variance * 1e-18);

    lua_setfield(l, -2, "elapsed");
}
