
/*
 * Where timers are created: a line of Lua, found by the chunk name's address,
 * which stays, as the name is kept.  In debug mode it is a whole call stack.
 */


#include "ngx_sluice_timer.h"


/* Levels of a call stack. */
#define NGX_SLUICE_TIMER_DEPTH  40


static uint32_t ngx_sluice_timer_stack(sluice_timer_core_t *core,
    lua_State *l, int level);
static ngx_sluice_timer_place_t *ngx_sluice_timer_seek(
    ngx_sluice_timer_place_t *places, ngx_uint_t mask, const char *source,
    int line);
static ngx_int_t ngx_sluice_timer_grow(sluice_timer_core_t *core);
static void ngx_sluice_timer_describe(lua_State *l, lua_Debug *ar);


uint32_t
ngx_sluice_timer_place(sluice_timer_core_t *core, lua_State *l, int level)
{
    lua_Debug                  ar;
    lua_State                 *vm;
    ngx_sluice_timer_place_t  *place;

    if (core->debug) {
        return ngx_sluice_timer_stack(core, l, level);
    }

    ar.source = "";
    ar.currentline = 0;

    if (lua_getstack(l, level, &ar)) {
        (void) lua_getinfo(l, "Sl", &ar);
    }

    if (core->place_count * 2 >= core->place_mask
        && ngx_sluice_timer_grow(core) != NGX_OK)
    {
        return 0;
    }

    place = ngx_sluice_timer_seek(core->places, core->place_mask, ar.source,
                                  ar.currentline);

    if (place->source) {
        return place->account;
    }

    place->account = sluice_timers_account(&core->timers);

    if (place->account == 0) {
        return 0;
    }

    place->source = ar.source;
    place->line = ar.currentline;
    core->place_count++;

    vm = core->vm;

    lua_pushstring(vm, ar.source);
    lua_rawseti(vm, NGX_SLUICE_TIMER_SOURCES, (int) place->account + 1);

    if (*ar.source) {
        ngx_sluice_timer_describe(vm, &ar);

    } else {
        lua_pushliteral(vm, "?");
    }

    lua_rawseti(vm, NGX_SLUICE_TIMER_PLACES, (int) place->account + 1);

    return place->account;
}


/* The outermost caller first, as flame graphs have it. */

static uint32_t
ngx_sluice_timer_stack(sluice_timer_core_t *core, lua_State *l, int level)
{
    int         n, i;
    uint32_t    account;
    lua_State  *vm;
    lua_Debug   ar;

    vm = core->vm;
    n = 0;

    while (n < NGX_SLUICE_TIMER_DEPTH && lua_getstack(l, level + n, &ar)) {
        n++;
    }

    lua_pushliteral(vm, "");

    for (i = n - 1; i >= 0; i--) {
        (void) lua_getstack(l, level + i, &ar);
        (void) lua_getinfo(l, "Sl", &ar);

        if (i < n - 1) {
            lua_pushliteral(vm, ";");
            lua_concat(vm, 2);
        }

        ngx_sluice_timer_describe(vm, &ar);
        lua_concat(vm, 2);
    }

    lua_pushvalue(vm, -1);
    lua_rawget(vm, NGX_SLUICE_TIMER_STACKS);
    account = (uint32_t) lua_tointeger(vm, -1);
    lua_pop(vm, 1);

    if (account == 0) {
        account = sluice_timers_account(&core->timers);

        if (account) {
            lua_pushvalue(vm, -1);
            lua_pushinteger(vm, (lua_Integer) account);
            lua_rawset(vm, NGX_SLUICE_TIMER_STACKS);

            lua_pushvalue(vm, -1);
            lua_rawseti(vm, NGX_SLUICE_TIMER_PLACES, (int) account + 1);
        }
    }

    lua_pop(vm, 1);

    return account;
}


/* Pushes "file:line", without what folded stacks use for themselves. */

static void
ngx_sluice_timer_describe(lua_State *l, lua_Debug *ar)
{
    const char   *p;
    luaL_Buffer   b;

    p = *ar->source == '@' ? ar->source + 1 : ar->short_src;

    luaL_buffinit(l, &b);

    for ( /* void */ ; *p; p++) {
        luaL_addchar(&b, *p == ';' || (u_char) *p <= ' ' ? '_' : *p);
    }

    luaL_pushresult(&b);

    if (ar->currentline > 0) {
        lua_pushfstring(l, ":%d", ar->currentline);
        lua_concat(l, 2);
    }
}


/* The entry, or the empty one where it belongs. */

static ngx_sluice_timer_place_t *
ngx_sluice_timer_seek(ngx_sluice_timer_place_t *places, ngx_uint_t mask,
    const char *source, int line)
{
    ngx_uint_t  i;

    i = ((uintptr_t) source ^ (uintptr_t) line * 0x9e3779b97f4a7c15u) >> 4;

    for ( ;; ) {
        i &= mask;

        if (places[i].source == NULL
            || (places[i].source == source && places[i].line == line))
        {
            return &places[i];
        }

        i++;
    }
}


static ngx_int_t
ngx_sluice_timer_grow(sluice_timer_core_t *core)
{
    ngx_uint_t                 i, mask;
    ngx_sluice_timer_place_t  *places, *p;

    mask = core->place_mask ? core->place_mask * 2 + 1 : 255;

    places = ngx_calloc((mask + 1) * sizeof(*places), ngx_cycle->log);
    if (places == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; core->places && i <= core->place_mask; i++) {
        p = &core->places[i];

        if (p->source) {
            *ngx_sluice_timer_seek(places, mask, p->source, p->line) = *p;
        }
    }

    if (core->places) {
        ngx_free(core->places);
    }

    core->places = places;
    core->place_mask = mask;

    return NGX_OK;
}


const char *
ngx_sluice_timer_place_text(sluice_timer_core_t *core, uint32_t place)
{
    const char  *text;

    lua_rawgeti(core->vm, NGX_SLUICE_TIMER_PLACES, (int) place + 1);
    text = lua_tostring(core->vm, -1);
    lua_pop(core->vm, 1);

    return text ? text : "?";
}
