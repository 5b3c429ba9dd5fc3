
/*
 * Bounds of what this worker's Lua may take, for those who run code that they
 * do not know.
 *
 * Of memory: a text that doubles in a loop would else take all of the machine
 * before anybody can end the loop.  Who asks for more than the bound gets
 * Lua's own error, "not enough memory", at the line that runs.  Without a
 * bound nothing is counted; with one, each piece of memory that Lua takes or
 * gives back costs an addition.
 *
 * Of the stack of C: each coroutine that is resumed in another one has its own
 * stack of Lua, which LuaJIT bounds, and all of them share this one, which it
 * does not.
 */


#ifndef NGX_SLUICE_HEAP_H_INCLUDED
#define NGX_SLUICE_HEAP_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include <lua.h>


/* FFI */

/*
 * Sets the bound, to so many bytes above what is held now; 0 (NGX_OK), or -5
 * (NGX_DECLINED): this process has no place (sluice_turn_take()), and none.
 */
int sluice_heap_limit(uint64_t bytes);

/* Whether half of the stack of C is left; after sluice_heap_limit(). */
int sluice_heap_has_stack(void);

/* FFI end */


#endif /* NGX_SLUICE_HEAP_H_INCLUDED */
