
/*
 * What each worker is in (ngx_sluice_turn.h).
 *
 * Who is asked to end its step gets SIGXCPU: the handler sets a hook of Lua,
 * as the interpreter's own program does for SIGINT, and the hook throws at the
 * line that runs, if that is of this step still.  Code that LuaJIT has
 * compiled looks at no hook: then only force helps.
 */


#include "ngx_sluice_turn.h"

#include <ngx_event.h>

#include <lauxlib.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>


#define NGX_SLUICE_TURN_STAT  1024          /* bytes of /proc/<pid>/stat */


/* of a configuration's workers; the list is each process's own */

typedef struct ngx_sluice_turn_map_s  ngx_sluice_turn_map_t;

typedef struct {
    uint32_t       counts[SLUICE_TURN_OWNERS][SLUICE_TURN_COUNTS];
    char           names[SLUICE_TURN_OWNERS][SLUICE_TURN_NAME];
    sluice_turn_t  workers[];
} ngx_sluice_turn_shared_t;

struct ngx_sluice_turn_map_s {
    ngx_sluice_turn_map_t     *before;
    ngx_sluice_turn_shared_t  *shared;
    uint32_t                   workers;
};


static size_t ngx_sluice_turn_size(uint32_t workers);
static void ngx_sluice_turn_drop_left(void);
static ngx_uint_t ngx_sluice_turn_has_left(ngx_sluice_turn_map_t *map);
static ngx_sluice_turn_map_t *ngx_sluice_turn_find(uint32_t *worker);
static ngx_int_t ngx_sluice_turn_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
static ngx_int_t ngx_sluice_turn_read(const char *path, uint64_t *started,
    uint64_t *ticks);
static int ngx_sluice_turn_signal(const sluice_turn_t *of, int signo);
static ngx_uint_t ngx_sluice_turn_is_stopped(void);
static void ngx_sluice_turn_signal_handler(int signo);
static void ngx_sluice_turn_hook(lua_State *l, lua_Debug *ar);


static sluice_turn_t           ngx_sluice_turn_none;
static ngx_sluice_turn_map_t  *ngx_sluice_turn_maps;      /* newest first */

lua_State      *ngx_sluice_turn_lua;
sluice_turn_t  *ngx_sluice_turn = &ngx_sluice_turn_none;

/* the event module's own */

static ngx_int_t  (*ngx_sluice_turn_process)(ngx_cycle_t *cycle,
                      ngx_msec_t timer, ngx_uint_t flags);


/*
 * Workers of a configuration before keep their map, and so does the master
 * while one of them lives: the new ones may look at it.
 */

ngx_int_t
ngx_sluice_turn_init(ngx_cycle_t *cycle, ngx_uint_t workers)
{
    void                   *base;
    ngx_sluice_turn_map_t  *map;

    ngx_sluice_turn_drop_left();

    base = mmap(NULL, ngx_sluice_turn_size((uint32_t) workers),
                PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1, 0);

    if (base == MAP_FAILED) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: mmap() of the workers' turns failed");
        return NGX_ERROR;
    }

    map = ngx_alloc(sizeof(ngx_sluice_turn_map_t), cycle->log);

    if (map == NULL) {
        (void) munmap(base, ngx_sluice_turn_size((uint32_t) workers));
        return NGX_ERROR;
    }

    map->before = ngx_sluice_turn_maps;
    map->shared = base;
    map->workers = (uint32_t) workers;

    ngx_sluice_turn_maps = map;

    return NGX_OK;
}


static size_t
ngx_sluice_turn_size(uint32_t workers)
{
    return sizeof(ngx_sluice_turn_shared_t) + workers * sizeof(sluice_turn_t);
}


static void
ngx_sluice_turn_drop_left(void)
{
    ngx_sluice_turn_map_t  *map, **link;

    link = &ngx_sluice_turn_maps;

    while (*link) {
        map = *link;

        if (!ngx_sluice_turn_has_left(map)) {
            link = &map->before;
            continue;
        }

        *link = map->before;

        (void) munmap(map->shared, ngx_sluice_turn_size(map->workers));
        ngx_free(map);
    }
}


static ngx_uint_t
ngx_sluice_turn_has_left(ngx_sluice_turn_map_t *map)
{
    uint32_t  i;

    for (i = 0; i < map->workers; i++) {
        if (sluice_turn_cpu_ms(&map->shared->workers[i]) != NGX_ERROR) {
            return 0;
        }
    }

    return 1;
}


void
ngx_sluice_turn_init_process(void)
{
    ngx_sluice_turn_process = ngx_event_actions.process_events;
    ngx_event_actions.process_events = ngx_sluice_turn_process_events;
}


void
ngx_sluice_turn_exit_process(void)
{
    ngx_sluice_turn->pid = 0;
}


static ngx_int_t
ngx_sluice_turn_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_sluice_turn->turn++;

    return ngx_sluice_turn_process(cycle, timer, flags);
}


/* This worker's. */

sluice_turn_t *
sluice_turn(void)
{
    return ngx_sluice_turn;
}


/*
 * Takes this worker's place, first of all in init_worker.  In before is what
 * was there; pid 0: nobody, or one that has left in order.  NGX_DECLINED: this
 * process has no place.
 */

int
sluice_turn_take(sluice_turn_t *before)
{
    uint64_t        ticks;
    sluice_turn_t  *own;

    ngx_memzero(before, sizeof(sluice_turn_t));

    own = sluice_turn_of((uint32_t) ngx_worker);

    if (ngx_process != NGX_PROCESS_WORKER || own == NULL) {
        return NGX_DECLINED;
    }

    *before = *own;

    ngx_memzero(own, sizeof(sluice_turn_t));

    if (ngx_sluice_turn_read("/proc/self/stat", &own->started, &ticks)
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, ngx_errno,
                      "sluice: /proc/self/stat cannot be read: "
                      "nobody ends this worker's loops of Lua");
    }

    own->turn = 1;
    own->pid = (uint32_t) ngx_pid;
    ngx_sluice_turn = own;

    return NGX_OK;
}


/*
 * Another worker's, by its number.  Behind those of this configuration stand
 * those of the ones before, as they were when it was loaded.  NULL: no more.
 */

sluice_turn_t *
sluice_turn_of(uint32_t worker)
{
    ngx_sluice_turn_map_t  *map;

    map = ngx_sluice_turn_find(&worker);

    return map ? &map->shared->workers[worker] : NULL;
}


/* The map of a worker by its number, which becomes that within the map. */

static ngx_sluice_turn_map_t *
ngx_sluice_turn_find(uint32_t *worker)
{
    ngx_sluice_turn_map_t  *map;

    for (map = ngx_sluice_turn_maps; map; map = map->before) {
        if (*worker < map->workers) {
            return map;
        }

        *worker -= map->workers;
    }

    return NULL;
}


/* How an owner is called; workers of another configuration number others. */

void
sluice_turn_name(uint32_t owner, const char *name)
{
    char  *to;

    if (ngx_sluice_turn_maps == NULL || owner >= SLUICE_TURN_OWNERS) {
        return;
    }

    to = ngx_sluice_turn_maps->shared->names[owner];

    (void) ngx_cpystrn((u_char *) to, (u_char *) name, SLUICE_TURN_NAME);
}


/* The name of an owner of a worker's step; empty: it has none. */

const char *
sluice_turn_name_of(uint32_t worker, uint32_t owner)
{
    ngx_sluice_turn_map_t  *map;

    map = ngx_sluice_turn_find(&worker);

    return map && owner < SLUICE_TURN_OWNERS ? map->shared->names[owner] : "";
}


/* The CPU time of a worker, in ms; NGX_ERROR: it is gone. */

int64_t
sluice_turn_cpu_ms(const sluice_turn_t *of)
{
    char      path[sizeof("/proc//stat") + NGX_INT64_LEN];
    uint64_t  started, ticks;

    (void) snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned) of->pid);

    if (of->pid == 0 || of->started == 0
        || ngx_sluice_turn_read(path, &started, &ticks) != NGX_OK
        || started != of->started)
    {
        return NGX_ERROR;
    }

    return (int64_t) (ticks * 1000 / (uint64_t) sysconf(_SC_CLK_TCK));
}


/*
 * When a process was started, and what CPU time it has taken, in ticks.  The
 * name stands in brackets, and may hold anything.
 */

static ngx_int_t
ngx_sluice_turn_read(const char *path, uint64_t *started, uint64_t *ticks)
{
    int                 fd;
    char               *p, text[NGX_SLUICE_TURN_STAT];
    ssize_t             n;
    unsigned long long  user, system, start;

    fd = open(path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return NGX_ERROR;
    }

    n = read(fd, text, sizeof(text) - 1);

    (void) close(fd);

    if (n <= 0) {
        return NGX_ERROR;
    }

    text[n] = '\0';
    p = strrchr(text, ')');

    /* fields 14, 15 and 22 of proc(5); the first one behind ")" is the 3rd */

    if (p == NULL
        || sscanf(p + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                         " %llu %llu %*s %*s %*s %*s %*s %*s %llu",
                  &user, &system, &start) != 3)
    {
        return NGX_ERROR;
    }

    *ticks = user + system;
    *started = start;

    return NGX_OK;
}


/*
 * Asks a worker to end a step with an error of Lua.  NGX_OK; NGX_DECLINED: it
 * is in another one; NGX_ERROR: it is gone.
 */

int
sluice_turn_end(sluice_turn_t *of, uint32_t turn, uint32_t serial)
{
    if (of->turn != turn || of->serial != serial) {
        return NGX_DECLINED;
    }

    of->stop_serial = serial;
    of->stop_turn = turn;

    return ngx_sluice_turn_signal(of, SIGXCPU);
}


/* Kills it, if it is in a step still, or in one within that.  As above. */

int
sluice_turn_kill(const sluice_turn_t *of, uint32_t turn, uint32_t root)
{
    if (of->turn != turn || of->root != root) {
        return NGX_DECLINED;
    }

    return ngx_sluice_turn_signal(of, SIGKILL);
}


/*
 * The descriptor is of whoever has the pid now, so if that is the worker
 * afterwards, nobody else gets the signal.  A kernel may have none to give.
 */

static int
ngx_sluice_turn_signal(const sluice_turn_t *of, int signo)
{
    int  fd, rc;

    fd = (int) syscall(SYS_pidfd_open, (pid_t) of->pid, 0);

    if (sluice_turn_cpu_ms(of) == NGX_ERROR) {
        rc = -1;

    } else if (fd != -1) {
        rc = (int) syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);

    } else {
        rc = kill((pid_t) of->pid, signo);
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return rc == -1 ? NGX_ERROR : NGX_OK;
}


/* Adds to a count of all workers, and returns it. */

uint32_t
sluice_turn_count(uint32_t owner, uint32_t number, uint32_t add)
{
    if (ngx_sluice_turn_maps == NULL || owner >= SLUICE_TURN_OWNERS
        || number >= SLUICE_TURN_COUNTS)
    {
        return 0;
    }

    return __sync_add_and_fetch(
               &ngx_sluice_turn_maps->shared->counts[owner][number], add);
}


int
luaopen_sluice_turn(lua_State *l)
{
    struct sigaction  action;

    ngx_sluice_turn_lua = l;

    ngx_memzero(&action, sizeof(struct sigaction));
    action.sa_handler = ngx_sluice_turn_signal_handler;
    sigemptyset(&action.sa_mask);

    (void) sigaction(SIGXCPU, &action, NULL);

    return 0;
}


static void
ngx_sluice_turn_signal_handler(int signo)
{
    (void) signo;

    /* it may have come too late */

    if (ngx_sluice_turn_is_stopped()) {
        lua_sethook(ngx_sluice_turn_lua, ngx_sluice_turn_hook,
                    LUA_MASKCOUNT, 1);
    }
}


/* Whether what runs is what was asked to end. */

static ngx_uint_t
ngx_sluice_turn_is_stopped(void)
{
    return ngx_sluice_turn->stop_turn == ngx_sluice_turn->turn
           && ngx_sluice_turn->stop_serial == ngx_sluice_turn->serial;
}


static void
ngx_sluice_turn_hook(lua_State *l, lua_Debug *ar)
{
    (void) ar;

    lua_sethook(l, NULL, 0, 0);

    if (ngx_sluice_turn_is_stopped()) {
        ngx_sluice_turn->stop_turn = 0;
        ngx_sluice_turn->stopped = ngx_sluice_turn->turn;
        luaL_where(l, 0);
        lua_pushfstring(l, "%sended by the watchdog: it has run for too long",
                        lua_tostring(l, -1));
        (void) lua_error(l);
    }
}
