
/*
 * Birth of the log, in the three ways in which a master can come to it, asked
 * for in this order:
 *
 *     reload    this process has it already;
 *     upgrade   the master before us (USR2) has it: its memfd and eventfds are
 *               open here, and their numbers in the environment;
 *     fresh     nobody has one.
 *
 * The environment is also how a master finds its own log again after the
 * module's file was replaced (ngx_sluice_env.c).
 */


#include "ngx_sluice.h"

#include <sys/eventfd.h>


#define NGX_SLUICE_ENV       "SLUICE_EVENTS"

/* "NAME=inode:memfd:fd,fd ... ," and a zero */
#define NGX_SLUICE_ENV_SIZE                                                   \
    (sizeof(NGX_SLUICE_ENV "=") + 2 * (NGX_INT64_LEN + 1)                     \
     + SLUICE_RING_SLOTS * (NGX_INT32_LEN + 1))


static ngx_int_t ngx_sluice_ring_adopt(ngx_cycle_t *cycle);
static ngx_int_t ngx_sluice_ring_parse(u_char *text, uint64_t *inode,
    int *fds);
static ngx_int_t ngx_sluice_ring_is_eventfd(int fd);
static ngx_int_t ngx_sluice_ring_create(ngx_cycle_t *cycle,
    ngx_sluice_conf_t *conf);
static ngx_int_t ngx_sluice_ring_name(ngx_cycle_t *cycle);


ngx_sluice_ring_t  ngx_sluice_ring;

static u_char  ngx_sluice_ring_env[NGX_SLUICE_ENV_SIZE];


ngx_int_t
ngx_sluice_ring_init(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf)
{
    int               rc;
    uint32_t          workers;
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

    if (ngx_sluice_ring.ring.size < conf->events_size
        || ngx_sluice_ring.ring.size / 2 >= conf->events_size)
    {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "sluice_events_size: the log keeps its %uLk until "
                      "nginx is restarted",
                      (uint64_t) ngx_sluice_ring.ring.size / 1024);
    }

    sluice_ring_set_stall(&ngx_sluice_ring.ring, conf->events_stall);

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    workers = ccf->master ? (uint32_t) ccf->worker_processes : 1;

    rc = sluice_ring_generation(&ngx_sluice_ring.ring, workers,
                                &ngx_sluice_ring.generation);

    if (rc != SLUICE_OK) {
        /* they start at the tail then, as respawned ones do */
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "sluice: new workers may miss events of their first "
                      "moments: %s", sluice_ring_word(rc));
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
    int          rc, fds[SLUICE_RING_SLOTS + 1];
    char        *text;
    uint64_t     inode;
    ngx_uint_t   i;
    struct stat  st;

    text = getenv(NGX_SLUICE_ENV);

    if (text == NULL
        || ngx_sluice_ring_parse((u_char *) text, &inode, fds) != NGX_OK
        || fstat(fds[0], &st) == -1
        || (uint64_t) st.st_ino != inode)
    {
        /* not a successor, but started by somebody who lives below nginx */
        return NGX_DECLINED;
    }

    for (i = 1; i <= SLUICE_RING_SLOTS; i++) {
        if (ngx_sluice_ring_is_eventfd(fds[i]) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    rc = sluice_ring_open(&ngx_sluice_ring.ring, fds[0]);

    if (rc == SLUICE_OK) {
        ngx_sluice_ring.ring.fd = fds[0];
        ngx_memcpy(ngx_sluice_ring.fds, &fds[1], sizeof(ngx_sluice_ring.fds));

        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log,
                  rc == SLUICE_SYSTEM ? ngx_errno : 0,
                  "sluice: the log of the old nginx cannot be used (%s): "
                  "events do not pass between old and new workers",
                  sluice_ring_word(rc));

    for (i = 0; i <= SLUICE_RING_SLOTS; i++) {
        (void) close(fds[i]);
    }

    ngx_sluice_ring.renewed = 1;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_sluice_ring_parse(u_char *text, uint64_t *inode, int *fds)
{
    u_char      *p;
    ngx_int_t    n;
    ngx_uint_t   i;

    p = (u_char *) ngx_strchr(text, ':');
    if (p == NULL) {
        return NGX_ERROR;
    }

    n = ngx_atoi(text, p - text);
    if (n == NGX_ERROR) {
        return NGX_ERROR;
    }

    *inode = n;

    for (i = 0; i <= SLUICE_RING_SLOTS; i++) {
        text = p + 1;

        p = (u_char *) ngx_strchr(text, ',');
        if (p == NULL) {
            return NGX_ERROR;
        }

        n = ngx_atoi(text, p - text);
        if (n == NGX_ERROR || n > NGX_MAX_INT32_VALUE) {
            return NGX_ERROR;
        }

        fds[i] = (int) n;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_ring_is_eventfd(int fd)
{
    u_char   path[sizeof("/proc/self/fd/") + NGX_INT32_LEN];
    char     target[sizeof("anon_inode:[eventfd]")];
    ssize_t  n;

    ngx_sprintf(path, "/proc/self/fd/%d%Z", fd);

    n = readlink((char *) path, target, sizeof(target));

    if (n != sizeof("anon_inode:[eventfd]") - 1
        || ngx_memcmp(target, "anon_inode:[eventfd]", n) != 0)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* A master whose module cannot do its work must not start: emerg, exit. */

static ngx_int_t
ngx_sluice_ring_create(ngx_cycle_t *cycle, ngx_sluice_conf_t *conf)
{
    int         fd;
    ngx_uint_t  i;

    if (sluice_ring_create(&ngx_sluice_ring.ring, conf->events_size,
                           (uint32_t) conf->events_stall)
        != SLUICE_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: cannot make the events' log of %uz bytes",
                      conf->events_size);
        return NGX_ERROR;
    }

    for (i = 0; i < SLUICE_RING_SLOTS; i++) {

        fd = eventfd(0, EFD_NONBLOCK);

        if (fd == -1) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                          "sluice: eventfd() failed; %d are needed",
                          SLUICE_RING_SLOTS);
            return NGX_ERROR;
        }

        ngx_sluice_ring.fds[i] = fd;
    }

    return NGX_OK;
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

    for (i = 0; i < SLUICE_RING_SLOTS; i++) {
        p = ngx_sprintf(p, "%d,", ngx_sluice_ring.fds[i]);
    }

    *p = '\0';

    return ngx_sluice_env_set(cycle, ngx_sluice_ring_env);
}
