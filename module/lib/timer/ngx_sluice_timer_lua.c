
/*
 * The functions that lib/sluice/timer/ calls; each takes a core first.  They
 * trust their arguments, which init.lua has checked.
 */


#include "ngx_sluice_timer.h"

#include <dlfcn.h>


typedef void (*ngx_sluice_timer_act_pt)(sluice_timers_t *ts,
    sluice_timer_t *t, uint64_t now_ns);


static int ngx_sluice_timer_open(lua_State *l);
static int ngx_sluice_timer_gc(lua_State *l);
static int ngx_sluice_timer_cancel(lua_State *l);
static int ngx_sluice_timer_pause(lua_State *l);
static int ngx_sluice_timer_act(lua_State *l, ngx_sluice_timer_act_pt act);
static int ngx_sluice_timer_resume(lua_State *l);
static int ngx_sluice_timer_is_managed(lua_State *l);
static int ngx_sluice_timer_restart(lua_State *l);
static int ngx_sluice_timer_set_frozen(lua_State *l);
static int ngx_sluice_timer_destroy(lua_State *l);
static int ngx_sluice_timer_set_debug(lua_State *l);
static int ngx_sluice_timer_next_role(lua_State *l);
static int ngx_sluice_timer_tools(lua_State *l);
static int ngx_sluice_timer_gone(lua_State *l);
static int ngx_sluice_timer_gave_up(lua_State *l);
static int ngx_sluice_timer_makes(lua_State *l);


static const luaL_Reg  ngx_sluice_timer_functions[] = {
    { "open", ngx_sluice_timer_open },
    { "create", ngx_sluice_timer_create },
    { "cancel", ngx_sluice_timer_cancel },
    { "pause", ngx_sluice_timer_pause },
    { "resume", ngx_sluice_timer_resume },
    { "is_managed", ngx_sluice_timer_is_managed },
    { "restart", ngx_sluice_timer_restart },
    { "freeze", ngx_sluice_timer_set_frozen },
    { "destroy", ngx_sluice_timer_destroy },
    { "set_debug", ngx_sluice_timer_set_debug },
    { "claim", ngx_sluice_timer_next_role },
    { "runner", ngx_sluice_timer_tools },
    { "step", ngx_sluice_timer_step },
    { "args", ngx_sluice_timer_args },
    { "failed", ngx_sluice_timer_failed },
    { "leave", ngx_sluice_timer_gone },
    { "gave_up", ngx_sluice_timer_gave_up },
    { "makes", ngx_sluice_timer_makes },
    { "totals", ngx_sluice_timer_totals },
    { "place", ngx_sluice_timer_place_stats },
    { "timer", ngx_sluice_timer_stats },
    { NULL, NULL }
};


/* Of this shared object, for package.loadlib. */

const char *
sluice_timer_path(void)
{
    Dl_info  info;

    return dladdr(ngx_sluice_timer_functions, &info) ? info.dli_fname : "";
}


int
luaopen_sluice_timer(lua_State *l)
{
    const luaL_Reg  *f;

    lua_createtable(l, 0, 24);

    for (f = ngx_sluice_timer_functions; f->name; f++) {
        lua_pushcfunction(l, f->func);
        lua_setfield(l, -2, f->name);
    }

    return 1;
}


/* open(min, max): a core. */

static int
ngx_sluice_timer_open(lua_State *l)
{
    int                   i;
    sluice_timer_core_t  *core;

    core = lua_newuserdata(l, sizeof(sluice_timer_core_t));

    ngx_memzero(core, sizeof(*core));

    if (!sluice_timers_init(&core->timers, ngx_sluice_timer_now(core))) {
        return luaL_error(l, "no memory");
    }

    core->timers.release = ngx_sluice_timer_forget;
    core->timers.drop = ngx_sluice_timer_drop;
    core->timers.data = core;
    core->min = (ngx_uint_t) lua_tointeger(l, 1);
    core->max = (ngx_uint_t) lua_tointeger(l, 2);

    ngx_sluice_timer_add(core);

    lua_createtable(l, 0, 1);
    lua_pushcfunction(l, ngx_sluice_timer_gc);
    lua_setfield(l, -2, "__gc");
    lua_setmetatable(l, -2);

    /* the environment keeps the thread */

    lua_createtable(l, 1, 0);
    core->vm = lua_newthread(l);
    lua_rawseti(l, -2, 1);
    lua_setfenv(l, -2);

    for (i = NGX_SLUICE_TIMER_REFS; i <= NGX_SLUICE_TIMER_STACKS; i++) {
        lua_createtable(core->vm, 0, 0);
    }

    lua_pushliteral(core->vm, "elsewhere");
    lua_rawseti(core->vm, NGX_SLUICE_TIMER_PLACES, 1);

    /* lua-resty-core's; nil without it */

    lua_getfield(core->vm, LUA_REGISTRYINDEX, "ngx_lua_ctx_tables");

    lua_pushnil(core->vm);
    lua_pushnil(core->vm);

    return 1;
}


static int
ngx_sluice_timer_gc(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    ngx_sluice_timer_close(core);
    sluice_timers_close(&core->timers);

    if (core->places) {
        ngx_free(core->places);
        core->places = NULL;
    }

    return 0;
}


static int
ngx_sluice_timer_not_found(lua_State *l)
{
    lua_pushnil(l);
    lua_pushliteral(l, "timer not found");

    return 2;
}


static int
ngx_sluice_timer_cancel(lua_State *l)
{
    sluice_timer_t       *t;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    t = ngx_sluice_timer_find(core, l, 2);

    if (t == NULL) {
        return ngx_sluice_timer_not_found(l);
    }

    sluice_timers_cancel(&core->timers, t);
    lua_pushboolean(l, 1);

    return 1;
}


static int
ngx_sluice_timer_act(lua_State *l, ngx_sluice_timer_act_pt act)
{
    sluice_timer_t       *t;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    t = ngx_sluice_timer_find(core, l, 2);

    if (t == NULL) {
        return ngx_sluice_timer_not_found(l);
    }

    act(&core->timers, t, ngx_sluice_timer_now(core));

    if (t->node.next) {                               /* it is in the wheel */
        ngx_sluice_timer_created(core, t);
    }

    lua_pushboolean(l, 1);

    return 1;
}


static int
ngx_sluice_timer_pause(lua_State *l)
{
    return ngx_sluice_timer_act(l, sluice_timers_pause);
}


static int
ngx_sluice_timer_resume(lua_State *l)
{
    return ngx_sluice_timer_act(l, sluice_timers_resume);
}


static int
ngx_sluice_timer_restart(lua_State *l)
{
    return ngx_sluice_timer_act(l, sluice_timers_restart);
}


static int
ngx_sluice_timer_is_managed(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    lua_pushboolean(l, ngx_sluice_timer_find(core, l, 2) != NULL);

    return 1;
}


/* freeze(core, on) */

static int
ngx_sluice_timer_set_frozen(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    if (!lua_toboolean(l, 2)) {
        ngx_sluice_timer_thaw(core);
        ngx_sluice_timer_poke(core);

    } else if (!core->timers.exiting) {
        ngx_sluice_timer_freeze(core);
    }

    return 0;
}


static int
ngx_sluice_timer_destroy(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    sluice_timers_clear(&core->timers);
    core->destroyed = 1;
    ngx_sluice_timer_disconnect(core);
    ngx_sluice_timer_end_parked(core);

    return 0;
}


static int
ngx_sluice_timer_set_debug(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    core->debug = lua_toboolean(l, 2);

    return 0;
}


/* claim(core, context): what to do, and how many contexts to add. */

static int
ngx_sluice_timer_next_role(lua_State *l)
{
    ngx_uint_t            id, role, more;
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    id = (ngx_uint_t) lua_tointeger(l, 2);

    role = ngx_sluice_timer_claim(core, id, &more);

    if (role == NGX_SLUICE_TIMER_RUN) {
        ngx_sluice_timer_runner.l = l;
        ngx_sluice_timer_runner.context = &core->contexts[id];
    }

    lua_pushinteger(l, (lua_Integer) role);
    lua_pushinteger(l, (lua_Integer) more);

    return 2;
}


/* runner(core, context): what step is given. */

static int
ngx_sluice_timer_tools(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    lua_pushlightuserdata(l, &core->contexts[lua_tointeger(l, 2)]);

    return 1;
}


/* leave(core, context): it ends. */

static int
ngx_sluice_timer_gone(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    ngx_sluice_timer_leave(core, (ngx_uint_t) lua_tointeger(l, 2));

    return 0;
}


/* gave_up(core, n): so many contexts do not come. */

static int
ngx_sluice_timer_gave_up(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);
    core->coming -= ngx_min(core->coming, (ngx_uint_t) lua_tointeger(l, 2));
    core->dropped = 1;

    return 0;
}


/*
 * makes(core, more, apply): what adds contexts, given their number; and what
 * calls the callback of args with its arguments.
 */

static int
ngx_sluice_timer_makes(lua_State *l)
{
    sluice_timer_core_t  *core;

    core = lua_touserdata(l, 1);

    lua_pushvalue(l, 2);
    lua_pushvalue(l, 3);
    lua_xmove(l, core->vm, 2);
    lua_replace(core->vm, NGX_SLUICE_TIMER_APPLY);
    lua_replace(core->vm, NGX_SLUICE_TIMER_MORE);

    return 0;
}
