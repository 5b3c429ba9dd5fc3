
/*
 * At a reload a traffic worker stays until the new ones accept connections.
 *
 * nginx's master forks the new workers, and asks the old ones to quit 100 ms
 * later, whether the new ones are ready or not.  A plugin may take long in
 * init_worker, or loop there until the watchdog kills its worker: then nobody
 * would accept.  So a worker that is asked to quit keeps that to itself while
 * a newer configuration has begun, its master lives, and some of its traffic
 * workers do not accept yet; for a time in which the watchdog has such a
 * plugin left out (gateway/control/stuck.lua).
 *
 * Without a newer configuration it is a stop, and not delayed.  Nor is a stop
 * behind a reload: a master that stops asks nobody twice, but it removes its
 * UNIX sockets at once, of which the control socket is one.  A worker cannot
 * look into the socket's folder, but it sees when that was changed.
 */


#include "ngx_sluice_process.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/un.h>


#define NGX_SLUICE_STAY_POLL      10           /* ms */
#define NGX_SLUICE_STAY_WATCHES   4            /* times the watchdog's, by as
                                                  many as share a CPU */
#define NGX_SLUICE_STAY_MORE      15000        /* ms, beyond them */
#define NGX_SLUICE_STAY_WATCHDOG  30000        /* ms, where there is none */

#define NGX_SLUICE_STAY_BITS      64
#define NGX_SLUICE_STAY_PATH      sizeof(((struct sockaddr_un *) 0)->sun_path)


static ngx_int_t ngx_sluice_stay_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);
static ngx_uint_t ngx_sluice_stay_is_awaited(void);
static uint64_t ngx_sluice_stay_folders(ngx_cycle_t *cycle);
static void ngx_sluice_stay_handler(ngx_event_t *e);


ngx_sluice_stay_t  *ngx_sluice_stay;

/* which configuration this process is of */

static uint32_t     ngx_sluice_stay_own;

static ngx_uint_t   ngx_sluice_stay_has_accepted;
static ngx_uint_t   ngx_sluice_stay_is_held;
static ngx_msec_t   ngx_sluice_stay_until;
static uint64_t     ngx_sluice_stay_changed;

/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_stay_none = { .fd = (ngx_socket_t) -1 };
static ngx_event_t       ngx_sluice_stay_event;

/* the event module's own */

static ngx_int_t  (*ngx_sluice_stay_process)(ngx_cycle_t *cycle,
                      ngx_msec_t timer, ngx_uint_t flags);


/*
 * Runs in the master, before it forks, at the start and at each reload: when
 * nothing can fail any more that would leave the old configuration.
 */

void
ngx_sluice_stay_init(ngx_uint_t workers)
{
    ngx_sluice_stay->accepting = 0;
    ngx_sluice_stay->master = (uint32_t) ngx_pid;
    ngx_sluice_stay->workers = (uint32_t) workers - 1;
    ngx_sluice_stay_own = ++ngx_sluice_stay->begun;
}


/* In a traffic worker, behind the event module's. */

void
ngx_sluice_stay_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t  *e;

    e = &ngx_sluice_stay_event;
    e->log = cycle->log;
    e->data = &ngx_sluice_stay_none;
    e->handler = ngx_sluice_stay_handler;
    e->cancelable = 1;

    ngx_sluice_stay_changed = ngx_sluice_stay_folders(cycle);

    ngx_sluice_stay_process = ngx_event_actions.process_events;
    ngx_event_actions.process_events = ngx_sluice_stay_process_events;
}


/*
 * This traffic worker accepts: one that does not has nothing to stay for.  Of
 * more than 64, some share a bit.
 */

void
ngx_sluice_stay_accepts(void)
{
    uint64_t  bit;

    ngx_sluice_stay_has_accepted = 1;

    bit = 1ull << ((ngx_worker - 1) % NGX_SLUICE_STAY_BITS);

    if (ngx_sluice_stay->begun == ngx_sluice_stay_own) {
        ngx_sluice_stay->accepting |= bit;
    }
}


/* The master's word comes by its channel, so it is read in here. */

static ngx_int_t
ngx_sluice_stay_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ngx_int_t                   rc;
    ngx_msec_t                  watchdog;
    ngx_sluice_process_conf_t  *conf;

    rc = ngx_sluice_stay_process(cycle, timer, flags);

    if (!ngx_quit || ngx_exiting || ngx_sluice_stay_is_held
        || !ngx_sluice_stay_has_accepted || !ngx_sluice_stay_is_awaited())
    {
        return rc;
    }

    conf = ngx_sluice_process_conf(cycle);
    watchdog = conf->watchdog ? conf->watchdog : NGX_SLUICE_STAY_WATCHDOG;
    watchdog *= 1 + ngx_sluice_stay->workers / ngx_max(ngx_ncpu, 1);

    ngx_quit = 0;

    ngx_sluice_stay_is_held = 1;
    ngx_sluice_stay_until = ngx_current_msec + NGX_SLUICE_STAY_MORE
                            + watchdog * NGX_SLUICE_STAY_WATCHES;

    ngx_add_timer(&ngx_sluice_stay_event, NGX_SLUICE_STAY_POLL);

    return rc;
}


static ngx_uint_t
ngx_sluice_stay_is_awaited(void)
{
    uint32_t  n;
    uint64_t  all;

    n = ngx_sluice_stay->workers;
    all = n < NGX_SLUICE_STAY_BITS ? (1ull << n) - 1 : ~0ull;

    return ngx_sluice_stay->begun != ngx_sluice_stay_own
           && (ngx_sluice_stay->accepting & all) != all
           && (kill((ngx_pid_t) ngx_sluice_stay->master, 0) == 0
               || ngx_errno != ESRCH)
           && ngx_sluice_stay_folders((ngx_cycle_t *) ngx_cycle)
              == ngx_sluice_stay_changed;
}


/* When the folders of UNIX sockets were changed last, as one number. */

static uint64_t
ngx_sluice_stay_folders(ngx_cycle_t *cycle)
{
    char                *end, path[NGX_SLUICE_STAY_PATH];
    uint64_t             sum;
    ngx_uint_t           i;
    struct stat          info;
    ngx_listening_t     *ls;
    struct sockaddr_un  *saun;

    sum = 0;
    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {
        saun = (struct sockaddr_un *) ls[i].sockaddr;

        if (saun->sun_family != AF_UNIX || saun->sun_path[0] != '/') {
            continue;
        }

        (void) ngx_cpystrn((u_char *) path, (u_char *) saun->sun_path,
                           sizeof(path));
        end = strrchr(path, '/');
        *end = '\0';

        if (lstat(path, &info) == 0) {
            sum += (uint64_t) info.st_mtim.tv_sec * 1000000000
                   + (uint64_t) info.st_mtim.tv_nsec;
        }
    }

    return sum;
}


static void
ngx_sluice_stay_handler(ngx_event_t *e)
{
    if (ngx_exiting) {
        return;
    }

    if (ngx_sluice_stay_is_awaited()) {

        if ((ngx_msec_int_t) (ngx_current_msec - ngx_sluice_stay_until) < 0) {
            ngx_add_timer(e, NGX_SLUICE_STAY_POLL);
            return;
        }

        ngx_log_error(NGX_LOG_ERR, e->log, 0,
                      "sluice: this worker has waited for new ones to accept "
                      "connections, and quits although some do not");
    }

    ngx_quit = 1;
}
