
/*
 * Creates the log, in the three ways in which a master can come to it, asked
 * for in this order:
 *
 *     reload    this process has it already;
 *     upgrade   the master before us (USR2) has it: its memfd, eventfds and
 *               timerfd are open here, and their numbers in the environment;
 *     fresh     nobody has one.
 *
 * The environment is also how a master finds its own log again after the
 * module's file was replaced (ngx_sluice_env.c).
 *
 *
 * SLOTS
 *
 * Each process that reads has a slot and its eventfd, which all others must
 * have inherited: so their number is said when the log is made, and a reload
 * that would need more is refused (ngx_sluice_ring_check()).  There are enough
 * for the workers of that time and three reloads whose old workers all stay.
 */


#include "ngx_sluice_env.h"
#include "ngx_sluice_ring.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>


#define NGX_SLUICE_ENV       "SLUICE_EVENTS"

/* As many workers at a time as there were when the log was made. */
#define NGX_SLUICE_RING_LIVES    4
#define NGX_SLUICE_RING_LEAST    256
#define NGX_SLUICE_RING_ROUND    64

/* Descriptors of a master beside eventfds: two channels a process, others. */
#define NGX_SLUICE_RING_FILES(slots)  (3 * (slots) + 512)

/* The memfd, an eventfd a slot, the timerfd. */
#define NGX_SLUICE_RING_FDS      (SLUICE_RING_SLOTS + 2)

/* "NAME=inode:fd,fd ... ," and a zero */
#define NGX_SLUICE_ENV_SIZE                                                   \
    (sizeof(NGX_SLUICE_ENV "=") + NGX_INT64_LEN + 1                           \
     + NGX_SLUICE_RING_FDS * (NGX_INT32_LEN + 1))


static uint32_t ngx_sluice_ring_workers(ngx_cycle_t *cycle);
static uint32_t ngx_sluice_ring_slots(ngx_cycle_t *cycle,
    ngx_sluice_ring_conf_t *conf);
static uint32_t ngx_sluice_ring_taken(void);
static ngx_int_t ngx_sluice_ring_adopt(ngx_cycle_t *cycle);
static ngx_uint_t ngx_sluice_ring_parse(u_char *text, uint64_t *inode,
    int *fds);
static int ngx_sluice_ring_open(ngx_cycle_t *cycle, const int *fds,
    ngx_uint_t n);
static void ngx_sluice_ring_allow_files(ngx_cycle_t *cycle, uint32_t slots);
static ngx_int_t ngx_sluice_ring_is(int fd, const char *what);
static ngx_int_t ngx_sluice_ring_create(ngx_cycle_t *cycle,
    ngx_sluice_ring_conf_t *conf);
static ngx_int_t ngx_sluice_ring_name(ngx_cycle_t *cycle);


ngx_sluice_ring_t  ngx_sluice_ring;

static u_char  ngx_sluice_ring_env[NGX_SLUICE_ENV_SIZE];


/*
 * Runs when the configuration is read, where it can still be refused.  Only a
 * master that reloads has a log.
 */

ngx_int_t
ngx_sluice_ring_check(ngx_cycle_t *cycle, ngx_sluice_ring_conf_t *conf)
{
    uint32_t  slots, taken, workers;

    workers = ngx_sluice_ring_workers(cycle);

    if (!ngx_sluice_ring.ready || ngx_test_config) {
        /* the last id of all is an agent's */
        slots = ngx_min(ngx_sluice_ring_slots(cycle, conf), SLUICE_RING_AGENT);

        if (workers > slots) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "sluice: \"worker_processes\" must be at most %uD, "
                          "as many as the events' log has slots", slots);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    slots = ngx_sluice_ring.ring.count;

    if (workers > ngx_min(slots, SLUICE_RING_AGENT)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "sluice: the events' log has slots for %uD processes, "
                      "since nginx was started with fewer: restart it to have "
                      "%uD \"worker_processes\"", slots, workers);
        return NGX_ERROR;
    }

    taken = ngx_sluice_ring_taken();

    if (workers > slots - ngx_min(taken, slots)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "sluice: %uD processes read the events' log, which has "
                      "slots for %uD: there are none for %uD new ones until "
                      "old workers have left", taken, slots, workers);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static uint32_t
ngx_sluice_ring_workers(ngx_cycle_t *cycle)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    return ccf->master ? (uint32_t) ccf->worker_processes : 1;
}


/* Of a log that is made now; by default with one for a privileged agent. */

static uint32_t
ngx_sluice_ring_slots(ngx_cycle_t *cycle, ngx_sluice_ring_conf_t *conf)
{
    uint32_t  n;

    if (conf->slots) {
        return (uint32_t) conf->slots;
    }

    n = NGX_SLUICE_RING_LIVES * (ngx_sluice_ring_workers(cycle) + 1);
    n = ngx_align(n, NGX_SLUICE_RING_ROUND);

    return ngx_min(ngx_max(n, NGX_SLUICE_RING_LEAST), SLUICE_RING_SLOTS);
}


/*
 * By processes of this master.  What stands in the log may have been written
 * by a worker that somebody has taken over: more than there are children is
 * not believed.
 */

static uint32_t
ngx_sluice_ring_taken(void)
{
    ngx_int_t            i;
    uint32_t             children;
    sluice_ring_stats_t  stats;

    children = 0;

    for (i = 0; i < ngx_last_process; i++) {
        if (ngx_processes[i].pid != -1 && !ngx_processes[i].detached) {
            children++;
        }
    }

    sluice_ring_stats(&ngx_sluice_ring.ring, &stats);

    return ngx_min(children, stats.attached + stats.detached);
}


ngx_int_t
ngx_sluice_ring_init(ngx_cycle_t *cycle, ngx_sluice_ring_conf_t *conf)
{
    int               rc;
    ngx_core_conf_t  *ccf;

    /* workers that a reload starts find the log that they would have found */
    ngx_sluice_ring.renewed = 0;

    if (!ngx_sluice_ring.ready && ngx_sluice_ring_adopt(cycle) != NGX_OK) {

        if (ngx_sluice_ring_create(cycle, conf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (!ngx_sluice_ring.ready) {
        if (ngx_sluice_ring_name(cycle) != NGX_OK) {
            return NGX_ERROR;
        }

        sluice_ring_set_wake(&ngx_sluice_ring.ring, sluice_ring_wake_fds,
                             ngx_sluice_ring.fds);
        ngx_sluice_ring.ready = 1;
    }

    if (ngx_sluice_ring.ring.size < conf->size
        || ngx_sluice_ring.ring.size / 2 >= conf->size)
    {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "sluice_events_size: the log keeps its %uLk until "
                      "nginx is restarted",
                      (uint64_t) ngx_sluice_ring.ring.size / 1024);
    }

    sluice_ring_set_stall(&ngx_sluice_ring.ring, conf->stall);

    ngx_sluice_ring.workers = ngx_sluice_ring_workers(cycle);

    rc = sluice_ring_generation(&ngx_sluice_ring.ring, ngx_sluice_ring.workers,
                                &ngx_sluice_ring.generation);

    if (rc != SLUICE_OK) {
        /* they start at the tail then, as respawned ones do */
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "sluice: new workers may miss events of their first "
                      "moments: %s", sluice_ring_word(rc));
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (!ccf->master) {
        /* a reload starts no process that could do so */
        (void) sluice_ring_pass(&ngx_sluice_ring.ring,
                                ngx_sluice_ring.generation, 0);
    }

    return NGX_OK;
}


void
ngx_sluice_ring_keep(ngx_cycle_t *cycle)
{
    ngx_sluice_env_keep(cycle, ngx_sluice_ring_env);
}


static ngx_int_t
ngx_sluice_ring_adopt(ngx_cycle_t *cycle)
{
    int          rc, fds[NGX_SLUICE_RING_FDS];
    char        *text;
    uint64_t     inode;
    ngx_uint_t   i, n;
    struct stat  st;

    text = getenv(NGX_SLUICE_ENV);

    if (text == NULL) {
        return NGX_DECLINED;
    }

    n = ngx_sluice_ring_parse((u_char *) text, &inode, fds);

    if (n < 3 || fstat(fds[0], &st) == -1 || (uint64_t) st.st_ino != inode) {
        /* not a successor, but started by somebody who lives below nginx */
        return NGX_DECLINED;
    }

    for (i = 1; i < n - 1; i++) {
        if (ngx_sluice_ring_is(fds[i], "anon_inode:[eventfd]") != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    rc = ngx_sluice_ring_open(cycle, fds, n);

    if (rc == SLUICE_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log,
                  rc == SLUICE_SYSTEM ? ngx_errno : 0,
                  "sluice: the log of the old nginx cannot be used (%s): "
                  "events do not pass between old and new workers",
                  sluice_ring_word(rc));

    for (i = 0; i < n; i++) {
        (void) close(fds[i]);
    }

    ngx_sluice_ring.renewed = 1;

    return NGX_DECLINED;
}


/* SLUICE_NOSLOT: it has fewer slots than this nginx has workers. */

static int
ngx_sluice_ring_open(ngx_cycle_t *cycle, const int *fds, ngx_uint_t n)
{
    int             rc;
    sluice_ring_t  *ring;

    ring = &ngx_sluice_ring.ring;

    rc = sluice_ring_open(ring, fds[0]);

    if (rc != SLUICE_OK) {
        return rc;
    }

    if (ring->count != n - 2
        || ngx_sluice_ring_is(fds[n - 1], "anon_inode:[timerfd]") != NGX_OK)
    {
        rc = SLUICE_BAD;

    } else if (ring->count < ngx_sluice_ring_workers(cycle)) {
        rc = SLUICE_NOSLOT;
    }

    if (rc != SLUICE_OK) {
        sluice_ring_close(ring);
        return rc;
    }

    ngx_memcpy(ngx_sluice_ring.fds, &fds[1], ring->count * sizeof(int));
    ngx_sluice_ring.alarm = fds[n - 1];

    return SLUICE_OK;
}


/* How many descriptors there are; 0: this is no list of them. */

static ngx_uint_t
ngx_sluice_ring_parse(u_char *text, uint64_t *inode, int *fds)
{
    u_char      *p;
    ngx_int_t    n;
    ngx_uint_t   i;

    p = (u_char *) ngx_strchr(text, ':');
    if (p == NULL) {
        return 0;
    }

    n = ngx_atoi(text, p - text);
    if (n == NGX_ERROR) {
        return 0;
    }

    *inode = n;

    for (i = 0; p[1]; i++) {
        text = p + 1;

        p = (u_char *) ngx_strchr(text, ',');
        if (p == NULL || i == NGX_SLUICE_RING_FDS) {
            return 0;
        }

        n = ngx_atoi(text, p - text);
        if (n == NGX_ERROR || n > NGX_MAX_INT32_VALUE) {
            return 0;
        }

        fds[i] = (int) n;
    }

    return i;
}


static ngx_int_t
ngx_sluice_ring_is(int fd, const char *what)
{
    u_char   path[sizeof("/proc/self/fd/") + NGX_INT32_LEN];
    char     target[sizeof("anon_inode:[eventfd]") + 1];
    ssize_t  n;

    ngx_sprintf(path, "/proc/self/fd/%d%Z", fd);

    n = readlink((char *) path, target, sizeof(target));

    if (n != (ssize_t) ngx_strlen(what) || ngx_memcmp(target, what, n) != 0) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* A master whose module cannot do its work must not start: emerg, exit. */

static ngx_int_t
ngx_sluice_ring_create(ngx_cycle_t *cycle, ngx_sluice_ring_conf_t *conf)
{
    int         fd;
    uint32_t    slots;
    ngx_uint_t  i;

    slots = ngx_sluice_ring_slots(cycle, conf);

    ngx_sluice_ring_allow_files(cycle, slots);

    if (sluice_ring_create(&ngx_sluice_ring.ring, conf->size, slots,
                           (uint32_t) conf->stall)
        != SLUICE_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: cannot make the events' log of %uz bytes",
                      conf->size);
        return NGX_ERROR;
    }

    for (i = 0; i < slots; i++) {

        fd = eventfd(0, EFD_NONBLOCK);

        if (fd == -1) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                          "sluice: eventfd() failed; %uD are needed", slots);
            return NGX_ERROR;
        }

        ngx_sluice_ring.fds[i] = fd;
    }

    ngx_sluice_ring.alarm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

    if (ngx_sluice_ring.alarm == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: timerfd_create() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * A master's own limit of open files is that of its user, often 1,024, while
 * "worker_rlimit_nofile" is for workers alone: so up to the hard limit.
 */

static void
ngx_sluice_ring_allow_files(ngx_cycle_t *cycle, uint32_t slots)
{
    rlim_t         files;
    struct rlimit  limit;

    files = NGX_SLUICE_RING_FILES(slots);

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur >= files) {
        return;
    }

    limit.rlim_cur = ngx_min(files, limit.rlim_max);

    if (setrlimit(RLIMIT_NOFILE, &limit) == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "sluice: setrlimit(RLIMIT_NOFILE) failed");
    }
}


static ngx_int_t
ngx_sluice_ring_name(ngx_cycle_t *cycle)
{
    u_char      *p;
    ngx_uint_t   i;
    struct stat  st;

    if (fstat(ngx_sluice_ring.ring.fd, &st) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: fstat() of the events' log failed");
        return NGX_ERROR;
    }

    p = ngx_sprintf(ngx_sluice_ring_env, NGX_SLUICE_ENV "=%uL:%d,",
                    (uint64_t) st.st_ino, ngx_sluice_ring.ring.fd);

    for (i = 0; i < ngx_sluice_ring.ring.count; i++) {
        p = ngx_sprintf(p, "%d,", ngx_sluice_ring.fds[i]);
    }

    ngx_sprintf(p, "%d,%Z", ngx_sluice_ring.alarm);

    return ngx_sluice_env_set(cycle, ngx_sluice_ring_env);
}
