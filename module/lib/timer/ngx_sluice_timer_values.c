
/*
 * What a timer has in Lua: its callback, arguments and name.
 *
 * Callbacks and arguments are kept in tables of a page each: a collector
 * looks at a page in a few microseconds, and again only if it has changed.
 */


#include "ngx_sluice_timer.h"


/* The arguments with their number in front, since any may be nil. */

ngx_int_t
ngx_sluice_timer_keep(sluice_timer_core_t *core, lua_State *l,
    sluice_timer_t *t)
{
    int         i, n, slot, page;
    lua_State  *vm;

    vm = core->vm;
    n = lua_gettop(l) - 10;
    slot = (int) ngx_sluice_timer_slot(t);
    page = (int) ngx_sluice_timer_page(t);

    lua_rawgeti(vm, NGX_SLUICE_TIMER_REFS, page);

    if (lua_type(vm, -1) == LUA_TNIL) {
        lua_pop(vm, 1);
        lua_createtable(vm, 2 * SLUICE_TIMERS_PAGE, 0);
        lua_pushvalue(vm, -1);
        lua_rawseti(vm, NGX_SLUICE_TIMER_REFS, page);
    }

    t->callback = lua_topointer(l, 10);

    lua_pushvalue(l, 10);
    lua_xmove(l, vm, 1);
    lua_rawseti(vm, -2, slot);

    if (n > 0) {
        if (!lua_checkstack(vm, n + 4)) {
            lua_pop(vm, 1);
            return NGX_ERROR;
        }

        lua_createtable(vm, n + 1, 0);
        lua_pushinteger(vm, n);
        lua_rawseti(vm, -2, 1);

        for (i = 1; i <= n; i++) {
            lua_pushvalue(l, 10 + i);
            lua_xmove(l, vm, 1);
            lua_rawseti(vm, -2, i + 1);
        }

        lua_rawseti(vm, -2, slot + 1);

        t->flags |= SLUICE_TIMER_ARGUMENTS;
    }

    lua_pop(vm, 1);

    if (lua_type(l, 9) == LUA_TSTRING) {
        t->flags |= SLUICE_TIMER_NAMED;

        lua_pushvalue(l, 9);
        lua_xmove(l, vm, 1);
        lua_pushvalue(vm, -1);
        lua_pushnumber(vm, sluice_timers_handle(t));
        lua_rawset(vm, NGX_SLUICE_TIMER_NAMES);

        lua_pushnumber(vm, sluice_timers_handle(t));
        lua_insert(vm, -2);
        lua_rawset(vm, NGX_SLUICE_TIMER_NAMES);
    }

    return NGX_OK;
}


/*
 * Pushes the name of a timer to the core's stack and returns 1; owner is the
 * handle that the name leads to, or 0.  Without a name it returns 0.
 */

int
ngx_sluice_timer_name(sluice_timer_core_t *core, sluice_timer_t *t,
    double *owner)
{
    lua_State  *vm;

    vm = core->vm;

    if (!(t->flags & SLUICE_TIMER_NAMED)) {
        return 0;
    }

    lua_pushnumber(vm, sluice_timers_handle(t));
    lua_rawget(vm, NGX_SLUICE_TIMER_NAMES);
    lua_pushvalue(vm, -1);
    lua_rawget(vm, NGX_SLUICE_TIMER_NAMES);
    *owner = lua_tonumber(vm, -1);
    lua_pop(vm, 1);

    return 1;
}


/*
 * A release function of the timers.  In its last run a timer's name is free,
 * but statistics have it until the end.
 */

void
ngx_sluice_timer_forget(void *data, sluice_timer_t *t, int name_only)
{
    int                   slot;
    double                owner;
    lua_State            *vm;
    sluice_timer_core_t  *core = data;

    vm = core->vm;

    if (ngx_sluice_timer_name(core, t, &owner)) {

        if (owner == sluice_timers_handle(t)) {
            lua_pushnil(vm);
            lua_rawset(vm, NGX_SLUICE_TIMER_NAMES);

        } else {
            lua_pop(vm, 1);
        }
    }

    if (name_only) {
        return;
    }

    if (t->flags & SLUICE_TIMER_NAMED) {
        lua_pushnumber(vm, sluice_timers_handle(t));
        lua_pushnil(vm);
        lua_rawset(vm, NGX_SLUICE_TIMER_NAMES);
    }

    if (t->flags & SLUICE_TIMER_ERROR) {
        lua_pushnumber(vm, sluice_timers_handle(t));
        lua_pushnil(vm);
        lua_rawset(vm, NGX_SLUICE_TIMER_FAILED);
    }

    slot = (int) ngx_sluice_timer_slot(t);

    lua_rawgeti(vm, NGX_SLUICE_TIMER_REFS, (int) ngx_sluice_timer_page(t));
    lua_pushnil(vm);
    lua_rawseti(vm, -2, slot);
    lua_pushnil(vm);
    lua_rawseti(vm, -2, slot + 1);
    lua_pop(vm, 1);
}


/* A drop function of the timers. */

void
ngx_sluice_timer_drop(void *data, uint32_t page)
{
    sluice_timer_core_t *core = data;

    lua_pushnil(core->vm);
    lua_rawseti(core->vm, NGX_SLUICE_TIMER_REFS, (int) page + 1);
}


/* By handle, or by name. */

sluice_timer_t *
ngx_sluice_timer_find(sluice_timer_core_t *core, lua_State *l, int index)
{
    double  handle;

    if (lua_type(l, index) == LUA_TNUMBER) {
        return sluice_timers_find(&core->timers, lua_tonumber(l, index));
    }

    lua_pushvalue(l, index);
    lua_xmove(l, core->vm, 1);
    lua_rawget(core->vm, NGX_SLUICE_TIMER_NAMES);
    handle = lua_tonumber(core->vm, -1);
    lua_pop(core->vm, 1);

    return sluice_timers_find(&core->timers, handle);
}
