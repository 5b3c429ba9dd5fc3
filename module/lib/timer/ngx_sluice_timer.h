
/*
 * Timers in a worker: the wheel (wheel*.c) at an event loop, and at a Lua
 * machine.  lib/sluice/timer/ is the library; what it calls often are Lua C
 * functions, which cost a fifth of a call through FFI from code that is
 * interpreted, as a dispatcher of many different callbacks has to be.
 *
 * A core is what timer.new makes.  Its contexts are light threads of timers
 * of nginx; all that have nothing to do wait for one semaphore.  One of them,
 * the owner, takes runs one after the other.  While it does, an event is
 * posted that nginx's loop comes to only if a callback yields: then another
 * context becomes the owner.
 */


#ifndef NGX_SLUICE_TIMER_H_INCLUDED
#define NGX_SLUICE_TIMER_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "wheel_timers.h"

#include <lauxlib.h>
#include <lua.h>


/*
 * Callbacks run for so long, then the loop turns: a share of the time by which
 * the first is late, since what is served meanwhile waits for a slice.
 */
#define NGX_SLUICE_TIMER_SLICE     250000          /* ns */
#define NGX_SLUICE_TIMER_LONGEST   1000000
#define NGX_SLUICE_TIMER_SHARE     128
/* A parked context that was not needed for so long ends. */
#define NGX_SLUICE_TIMER_SHRINK    1000            /* ms */
/* A worker that exits looks so often whether all is done. */
#define NGX_SLUICE_TIMER_LINGER    1               /* ms */
/* and so long takes timers without a delay. */
#define NGX_SLUICE_TIMER_LAST      1000000000      /* ns */
/* nginx starts a context in its next turn, or drops it without a word. */
#define NGX_SLUICE_TIMER_COMING    100000000       /* ns */
/* One that waits for it looks so often. */
#define NGX_SLUICE_TIMER_LATE      20              /* ms */
/* A creation place logs so often. */
#define NGX_SLUICE_TIMER_QUIET     10000000000ULL  /* ns */

#define NGX_SLUICE_TIMER_NOBODY    ((ngx_uint_t) -1)

/* Where a timer's callback and arguments are. */

#define ngx_sluice_timer_slot(t)                                              \
    (((t)->index & (SLUICE_TIMERS_PAGE - 1)) * 2 + 1)

#define ngx_sluice_timer_page(t)                                              \
    (((t)->index >> SLUICE_TIMERS_PAGE_BITS) + 1)

/* What a context shall do. */
#define NGX_SLUICE_TIMER_WAIT      0
#define NGX_SLUICE_TIMER_RUN       1
#define NGX_SLUICE_TIMER_END       2

/* Tables on the stack of a core's Lua thread. */
#define NGX_SLUICE_TIMER_REFS      1   /* pages of callbacks and arguments */
#define NGX_SLUICE_TIMER_NAMES     2   /* name to handle and back */
#define NGX_SLUICE_TIMER_ERRORS    3   /* last error by place */
#define NGX_SLUICE_TIMER_FAILED    4   /* last error by handle */
#define NGX_SLUICE_TIMER_PLACES    5   /* text by account */
#define NGX_SLUICE_TIMER_SOURCES   6   /* keeps chunk names in memory */
#define NGX_SLUICE_TIMER_STACKS    7   /* account by call stack */
#define NGX_SLUICE_TIMER_CTX       8   /* ngx.ctx by reference */
/* and functions: that adds contexts, that calls a callback with arguments */
#define NGX_SLUICE_TIMER_MORE      9
#define NGX_SLUICE_TIMER_APPLY     10


/* FFI */

typedef int (*ngx_sluice_timer_post_pt)(void *semaphore, int n);
typedef int (*ngx_sluice_timer_ctx_pt)(void *request, int *in_ssl_phase,
    int *ssl_ctx_ref);

typedef struct sluice_timer_core_s  sluice_timer_core_t;


/* ngx_sluice_timer.c */

const char *sluice_timer_path(void);
int sluice_timer_start(sluice_timer_core_t *core, void *semaphore,
    ngx_sluice_timer_post_pt post, ngx_sluice_timer_ctx_pt ctx);

/* ngx_sluice_timer_context.c */

int sluice_timer_enter(sluice_timer_core_t *core, void *request, int http);

/* FFI end */


/* Finds its context when nginx ends that one's request. */

typedef struct {
    sluice_timer_core_t  *core;          /* NULL: nobody needs to know */
    ngx_uint_t            context;
} ngx_sluice_timer_end_t;


typedef struct {
    sluice_timers_run_t      run;
    sluice_timer_core_t     *core;
    ngx_uint_t               id;
    void                    *request;
    ngx_sluice_timer_end_t  *end;
    uint32_t                 page;       /* of its last run; 0: none */
    unsigned                 used:1;
    unsigned                 parked:1;
} ngx_sluice_timer_context_t;


/* The light thread of the context that runs callbacks. */

typedef struct {
    lua_State                   *l;
    ngx_sluice_timer_context_t  *context;
} ngx_sluice_timer_runner_t;


/* A creation place: a line of a chunk. */

typedef struct {
    const char  *source;
    int          line;
    uint32_t     account;
} ngx_sluice_timer_place_t;


struct sluice_timer_core_s {
    sluice_timers_t              timers;

    lua_State                   *vm;        /* a thread of its own */
    void                        *semaphore;
    ngx_sluice_timer_post_pt     post;
    ngx_sluice_timer_ctx_pt      ctx;

    ngx_queue_t                  queue;     /* of all cores */
    ngx_connection_t            *connection;
    ngx_event_t                  turn;      /* dispatches */
    ngx_event_t                  yielded;   /* runs if a callback does */
    ngx_event_t                  shrink;
    ngx_event_t                  linger;
    ngx_event_t                  late;      /* contexts that do not come */
    uint64_t                     armed;     /* ms; the timerfd is set to it */
    uint64_t                     slice_end; /* ns */
    uint64_t                     exit_ns;   /* since when */
    uint64_t                     behind_ns; /* the clock: it stood so long */
    uint64_t                     frozen_ns; /* and stands at this */

    ngx_sluice_timer_context_t  *contexts;
    ngx_uint_t                   owner;
    ngx_uint_t                   min;
    ngx_uint_t                   max;
    ngx_uint_t                   total;     /* contexts */
    ngx_uint_t                   coming;    /* those that nginx is to start */
    uint64_t                     coming_ns; /* since when */
    ngx_uint_t                   parked;
    ngx_uint_t                   woken;     /* of those */
    ngx_uint_t                   ending;    /* too many */
    ngx_uint_t                   least;     /* that were parked of late */

    ngx_sluice_timer_place_t    *places;
    ngx_uint_t                   place_count;
    ngx_uint_t                   place_mask;

    unsigned                     started:1;
    unsigned                     frozen:1;
    unsigned                     destroyed:1;
    unsigned                     debug:1;
    unsigned                     dropped:1; /* the last ones to come */
    unsigned                     looping:1; /* posted events are run soon */
};


/* ngx_sluice_timer.c */

void ngx_sluice_timer_add(sluice_timer_core_t *core);
void ngx_sluice_timer_close(sluice_timer_core_t *core);
void ngx_sluice_timer_disconnect(sluice_timer_core_t *core);
void ngx_sluice_timer_exit_process(void);

/* ngx_sluice_timer_schedule.c */

void ngx_sluice_timer_poke(sluice_timer_core_t *core);
void ngx_sluice_timer_arm(sluice_timer_core_t *core);
void ngx_sluice_timer_created(sluice_timer_core_t *core, sluice_timer_t *t);
void ngx_sluice_timer_release(sluice_timer_core_t *core);
ngx_uint_t ngx_sluice_timer_has_work(sluice_timer_core_t *core);

/* ngx_sluice_timer_clock.c */

uint64_t ngx_sluice_timer_now(sluice_timer_core_t *core);
/* A third of its price, and a microsecond beside it at most, as a rule. */
uint64_t ngx_sluice_timer_about(sluice_timer_core_t *core);
void ngx_sluice_timer_freeze(sluice_timer_core_t *core);
void ngx_sluice_timer_thaw(sluice_timer_core_t *core);

/* ngx_sluice_timer_context.c */

ngx_uint_t ngx_sluice_timer_coming(sluice_timer_core_t *core);
void ngx_sluice_timer_call(sluice_timer_core_t *core);
ngx_int_t ngx_sluice_timer_revive(sluice_timer_core_t *core, lua_State *l);
void ngx_sluice_timer_linger(sluice_timer_core_t *core);
void ngx_sluice_timer_end_parked(sluice_timer_core_t *core);
void ngx_sluice_timer_shrink_handler(ngx_event_t *e);
void ngx_sluice_timer_late_handler(ngx_event_t *e);
ngx_uint_t ngx_sluice_timer_claim(sluice_timer_core_t *core, ngx_uint_t id,
    ngx_uint_t *more);
void ngx_sluice_timer_leave(sluice_timer_core_t *core, ngx_uint_t id);

/* ngx_sluice_timer_finish.c */

/* Where runs and failures are counted, one behind the other. */
extern uint64_t  *ngx_sluice_timer_counts;

void ngx_sluice_timer_finish(sluice_timer_core_t *core,
    ngx_sluice_timer_context_t *c, uint64_t now, const char *error);

/* ngx_sluice_timer_run.c */

extern ngx_sluice_timer_runner_t  ngx_sluice_timer_runner;

int ngx_sluice_timer_create(lua_State *l);
int ngx_sluice_timer_step(lua_State *l);
int ngx_sluice_timer_args(lua_State *l);
int ngx_sluice_timer_failed(lua_State *l);

/* ngx_sluice_timer_values.c */

ngx_int_t ngx_sluice_timer_keep(sluice_timer_core_t *core, lua_State *l,
    sluice_timer_t *t);
sluice_timer_t *ngx_sluice_timer_find(sluice_timer_core_t *core, lua_State *l,
    int index);
int ngx_sluice_timer_name(sluice_timer_core_t *core, sluice_timer_t *t,
    double *owner);
void ngx_sluice_timer_forget(void *data, sluice_timer_t *t, int name_only);
void ngx_sluice_timer_drop(void *data, uint32_t page);

/* ngx_sluice_timer_place.c */

uint32_t ngx_sluice_timer_place(sluice_timer_core_t *core, lua_State *l,
    int level);
const char *ngx_sluice_timer_place_text(sluice_timer_core_t *core,
    uint32_t place);

/* ngx_sluice_timer_lua.c */

int luaopen_sluice_timer(lua_State *l);

/* ngx_sluice_timer_stats.c */

int ngx_sluice_timer_totals(lua_State *l);
int ngx_sluice_timer_place_stats(lua_State *l);
int ngx_sluice_timer_stats(lua_State *l);


#endif /* NGX_SLUICE_TIMER_H_INCLUDED */
