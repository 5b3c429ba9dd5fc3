
/*
 * The bounds of a worker's Lua (ngx_sluice_heap.h).  That of memory is a
 * function between LuaJIT and its own allocator, with the same sum that LuaJIT
 * has of its memory.
 *
 * What fails has to be told, and telling takes memory.  So a refusal leaves
 * some room above the bound, until the heap is below it again.
 */


#include "ngx_sluice_heap.h"
#include "ngx_sluice_turn.h"

#include <sys/resource.h>


#define NGX_SLUICE_HEAP_ROOM   (8 * 1024 * 1024)
#define NGX_SLUICE_HEAP_ROOMS  8
#define NGX_SLUICE_HEAP_STACK  (8 * 1024 * 1024)    /* where none is said */


static void *ngx_sluice_heap_alloc(void *data, void *p, size_t before,
    size_t size);


static lua_Alloc   ngx_sluice_heap_next;
static void       *ngx_sluice_heap_data;
static uint64_t    ngx_sluice_heap_held;
static uint64_t    ngx_sluice_heap_bound;
static ngx_uint_t  ngx_sluice_heap_rooms;
static uintptr_t   ngx_sluice_heap_base;
static size_t      ngx_sluice_heap_stack;


int
sluice_heap_limit(uint64_t bytes)
{
    lua_State      *l;
    struct rlimit   limit;

    l = ngx_sluice_turn_lua;

    if (l == NULL) {
        return NGX_DECLINED;
    }

    ngx_sluice_heap_base = (uintptr_t) &limit;
    ngx_sluice_heap_stack = NGX_SLUICE_HEAP_STACK;

    if (getrlimit(RLIMIT_STACK, &limit) == 0
        && limit.rlim_cur < NGX_SLUICE_HEAP_STACK)
    {
        ngx_sluice_heap_stack = (size_t) limit.rlim_cur;
    }

    if (ngx_sluice_heap_next == NULL) {
        ngx_sluice_heap_held = (uint64_t) lua_gc(l, LUA_GCCOUNT, 0) * 1024
                               + (uint64_t) lua_gc(l, LUA_GCCOUNTB, 0);
        ngx_sluice_heap_next = lua_getallocf(l, &ngx_sluice_heap_data);
        lua_setallocf(l, ngx_sluice_heap_alloc, NULL);
    }

    ngx_sluice_heap_bound = ngx_sluice_heap_held + bytes;

    return NGX_OK;
}


/* It grows downwards, from somewhere near to the base. */

int
sluice_heap_has_stack(void)
{
    uintptr_t  here;

    here = (uintptr_t) &here;

    return ngx_sluice_heap_base < here
           || ngx_sluice_heap_base - here < ngx_sluice_heap_stack / 2;
}


static void *
ngx_sluice_heap_alloc(void *data, void *p, size_t before, size_t size)
{
    void      *found;
    uint64_t   held, bound;

    (void) data;

    held = ngx_sluice_heap_held - before + size;

    if (size > before) {
        bound = ngx_sluice_heap_bound
                + ngx_sluice_heap_rooms * NGX_SLUICE_HEAP_ROOM;

        if (held > bound) {

            if (ngx_sluice_heap_rooms < NGX_SLUICE_HEAP_ROOMS) {
                ngx_sluice_heap_rooms++;
            }

            return NULL;
        }

    } else if (held < ngx_sluice_heap_bound) {
        ngx_sluice_heap_rooms = 0;
    }

    found = ngx_sluice_heap_next(ngx_sluice_heap_data, p, before, size);

    if (found || size == 0) {
        ngx_sluice_heap_held = held;
    }

    return found;
}
