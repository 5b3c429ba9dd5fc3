
/*
 * What each worker is in, in memory that all of them share: the turn of its
 * event loop, and the step of Lua that it has begun last.  A step is begun in
 * a turn; while that turn goes on and the step takes CPU time, the worker does
 * nothing else.  Who looks at others (gateway/control/stuck.lua) can so tell a
 * loop that never ends from a worker that waits, and whose loop it is.
 *
 * Steps of a worker have numbers, so that who is asked to end one ends that
 * one, or nothing if it has ended meanwhile.  A step within another has the
 * number of that as its root: what takes long is counted by it.
 *
 * A process is the one that has taken its place, or gone: its pid may be
 * another's by now, its start is not.
 *
 * A turn costs one store, a step some.
 */


#ifndef NGX_SLUICE_TURN_H_INCLUDED
#define NGX_SLUICE_TURN_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include <lua.h>


/* FFI */

#define SLUICE_TURN_OWNERS  256         /* of steps, that are counted */
#define SLUICE_TURN_COUNTS  16
#define SLUICE_TURN_NAME    64          /* bytes of an owner's, with its end */


/* turns and steps are compared for equality alone, and may begin anew */

typedef struct {
    uint64_t  started;                  /* when, since the machine's start */
    uint32_t  turn;                     /* of the event loop, from 1 */
    uint32_t  step;                     /* the turn of the step */
    uint32_t  serial;                   /* of the step; 0: it has ended */
    uint32_t  root;                     /* of the step around it, or its own */
    uint32_t  kind;                     /* of the step; 0: none yet */
    uint32_t  owner;                    /* of the step */
    uint32_t  pid;                      /* 0: there is none */
    uint32_t  stop_turn;                /* 0: none; the step that is asked */
    uint32_t  stop_serial;              /*   to end */
    uint32_t  stopped;                  /* the turn in which one was ended */
    uint64_t  zero[2];
} sluice_turn_t;


sluice_turn_t *sluice_turn(void);
int sluice_turn_take(sluice_turn_t *before);
sluice_turn_t *sluice_turn_of(uint32_t worker);
int64_t sluice_turn_cpu_ms(const sluice_turn_t *of);
int sluice_turn_end(sluice_turn_t *of, uint32_t turn, uint32_t serial);
int sluice_turn_kill(const sluice_turn_t *of, uint32_t turn, uint32_t root);
uint32_t sluice_turn_count(uint32_t owner, uint32_t number, uint32_t add);
void sluice_turn_name(uint32_t owner, const char *name);
const char *sluice_turn_name_of(uint32_t worker, uint32_t owner);

/* FFI end */


/* This worker's; in a process without a place one that nobody looks at. */
extern sluice_turn_t  *ngx_sluice_turn;

/* This worker's Lua; NULL where luaopen_sluice_turn() was not called. */
extern lua_State      *ngx_sluice_turn_lua;


/* In the master, before it forks: the new workers' places. */
ngx_int_t ngx_sluice_turn_init(ngx_cycle_t *cycle, ngx_uint_t workers);

/* In a worker, behind the event module's. */
void ngx_sluice_turn_init_process(void);

void ngx_sluice_turn_exit_process(void);

/* Called from init_worker, with Lua's own state: the one to interrupt. */
int luaopen_sluice_turn(lua_State *l);


#endif /* NGX_SLUICE_TURN_H_INCLUDED */
