
/*
 * What this nginx tells its supervisor, by the protocol of sd_notify(3):
 * datagrams of text to the socket that NOTIFY_SOCKET names.
 *
 *     READY=1      by the control worker: what the store holds is live, and
 *                  every traffic worker accepts; again after RELOADING=1
 *     RELOADING=1  by the master that has taken another nginx.conf
 *     WATCHDOG=1   by the control worker, four times in WATCHDOG_USEC, unless
 *                  the master is stopped; by workers that drain, where no
 *                  control worker is left
 *     MAINPID=     by the old master of a binary upgrade, when it leaves
 *     STOPPING=1   by a master that leaves, and no other is there
 *
 * They come from several processes: to systemd, NotifyAccess=all.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_env.h"
#include "ngx_sluice_process.h"

#include <sys/mman.h>
#include <sys/un.h>


#define NGX_SLUICE_NOTIFY_SOCKET    "NOTIFY_SOCKET"
#define NGX_SLUICE_NOTIFY_WATCHDOG  "WATCHDOG_USEC"

#define NGX_SLUICE_NOTIFY_FEEDS     4      /* in the watchdog's time */
#define NGX_SLUICE_NOTIFY_POLL      10     /* ms, until all is live */
#define NGX_SLUICE_NOTIFY_RETRY     1000   /* ms, after a failure to say so */
#define NGX_SLUICE_NOTIFY_LAST      5      /* s, for a last word to go */
#define NGX_SLUICE_NOTIFY_TEXT      64


/*
 * Outside any cycle, as the environment is.  What "accepting" points to all
 * workers of a cycle share: a byte each, which it sets.
 */

typedef struct {
    struct sockaddr_un  address;
    socklen_t           length;            /* 0: there is no supervisor */
    ngx_msec_t          feed;              /* 0: it has no watchdog */
    u_char             *accepting;
    size_t              workers;
    ngx_uint_t          failed;            /* the last time */
    u_char              socket[sizeof(NGX_SLUICE_NOTIFY_SOCKET "=")
                               + sizeof(((struct sockaddr_un *) 0)->sun_path)];
    u_char              watchdog[sizeof(NGX_SLUICE_NOTIFY_WATCHDOG "=")
                                 + NGX_INT64_LEN];
} ngx_sluice_notify_t;


static ngx_int_t ngx_sluice_notify_find(ngx_cycle_t *cycle);
static void ngx_sluice_notify_find_watchdog(void);
static ngx_int_t ngx_sluice_notify_share(ngx_cycle_t *cycle);
static void ngx_sluice_notify_ready_handler(ngx_event_t *e);
static ngx_uint_t ngx_sluice_notify_is_live(void);
static void ngx_sluice_notify_feed_handler(ngx_event_t *e);
static ngx_uint_t ngx_sluice_notify_has_control(void);
static ngx_uint_t ngx_sluice_notify_master_runs(void);
static ngx_int_t ngx_sluice_notify_send(const char *text, int flags,
    ngx_log_t *log);


static ngx_sluice_notify_t  ngx_sluice_notify;

/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_notify_none = { .fd = (ngx_socket_t) -1 };
static ngx_event_t       ngx_sluice_notify_ready;
static ngx_event_t       ngx_sluice_notify_feed;


/* Runs in the master, before it forks, at the start and at each reload. */

ngx_int_t
ngx_sluice_notify_init(ngx_cycle_t *cycle)
{
    char  text[NGX_SLUICE_NOTIFY_TEXT];

    if (ngx_sluice_notify.length == 0
        && ngx_sluice_notify_find(cycle) != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_sluice_env_keep(cycle, ngx_sluice_notify.socket);

    if (ngx_sluice_notify.feed) {
        ngx_sluice_env_keep(cycle, ngx_sluice_notify.watchdog);
    }

    if (ngx_sluice_notify_share(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!ngx_is_init_cycle(cycle->old_cycle)) {
        ngx_sprintf((u_char *) text, "RELOADING=1\nMONOTONIC_USEC=%uL%Z",
                    ngx_sluice_clock_ns(CLOCK_MONOTONIC) / 1000);

        (void) ngx_sluice_notify_send(text, MSG_DONTWAIT, cycle->log);
    }

    return NGX_OK;
}


/* NGX_DECLINED: nobody wants to know. */

static ngx_int_t
ngx_sluice_notify_find(ngx_cycle_t *cycle)
{
    char                *name;
    size_t               length;
    struct sockaddr_un  *address;

    name = getenv(NGX_SLUICE_NOTIFY_SOCKET);

    if (name == NULL || *name == '\0') {
        return NGX_DECLINED;
    }

    address = &ngx_sluice_notify.address;
    length = ngx_strlen(name);

    if ((*name != '/' && *name != '@') || length > sizeof(address->sun_path)) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "sluice: " NGX_SLUICE_NOTIFY_SOCKET " \"%s\" is no "
                      "address of a socket: nobody is told what is live",
                      name);
        return NGX_DECLINED;
    }

    address->sun_family = AF_UNIX;
    ngx_memcpy(address->sun_path, name, length);

    if (*name == '@') {
        address->sun_path[0] = '\0';
    }

    ngx_sluice_notify.length = offsetof(struct sockaddr_un, sun_path) + length;

    ngx_sprintf(ngx_sluice_notify.socket, NGX_SLUICE_NOTIFY_SOCKET "=%s%Z",
                name);

    ngx_sluice_notify_find_watchdog();

    return NGX_OK;
}


static void
ngx_sluice_notify_find_watchdog(void)
{
    char       *text;
    ngx_int_t   usec;

    text = getenv(NGX_SLUICE_NOTIFY_WATCHDOG);
    usec = text ? ngx_atoi((u_char *) text, ngx_strlen(text)) : 0;

    if (usec <= 0) {
        return;
    }

    ngx_sluice_notify.feed = ngx_max(usec / 1000 / NGX_SLUICE_NOTIFY_FEEDS, 1);

    ngx_sprintf(ngx_sluice_notify.watchdog,
                NGX_SLUICE_NOTIFY_WATCHDOG "=%i%Z", usec);
}


static ngx_int_t
ngx_sluice_notify_share(ngx_cycle_t *cycle)
{
    void             *p;
    ngx_core_conf_t  *ccf;

    if (ngx_sluice_notify.accepting) {
        (void) munmap(ngx_sluice_notify.accepting, ngx_sluice_notify.workers);
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    ngx_sluice_notify.workers = (size_t) ccf->worker_processes;

    p = mmap(NULL, ngx_sluice_notify.workers, PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    ngx_sluice_notify.accepting = (p == MAP_FAILED) ? NULL : p;

    if (p == MAP_FAILED) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "sluice: mmap() of %uz bytes failed",
                      ngx_sluice_notify.workers);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Of the control worker, and of the others. */

void
ngx_sluice_notify_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t  *e;

    if (ngx_sluice_notify.length == 0) {
        return;
    }

    if (ngx_worker == 0) {
        e = &ngx_sluice_notify_ready;
        e->handler = ngx_sluice_notify_ready_handler;
        e->log = cycle->log;
        e->data = &ngx_sluice_notify_none;
        e->cancelable = 1;

        ngx_add_timer(e, NGX_SLUICE_NOTIFY_POLL);
    }

    if (ngx_sluice_notify.feed) {
        e = &ngx_sluice_notify_feed;
        e->handler = ngx_sluice_notify_feed_handler;
        e->log = cycle->log;
        e->data = &ngx_sluice_notify_none;
        e->cancelable = 1;

        /* the one before may have been silent for long */

        ngx_add_timer(e, ngx_worker == 0 ? 1 : ngx_sluice_notify.feed);
    }
}


/* This traffic worker takes connections from now on. */

void
ngx_sluice_notify_accepts(void)
{
    if (ngx_sluice_notify.length) {
        ngx_sluice_notify.accepting[ngx_worker] = 1;
    }
}


static void
ngx_sluice_notify_ready_handler(ngx_event_t *e)
{
    ngx_uint_t  is_live;

    if (ngx_exiting) {
        return;
    }

    is_live = ngx_sluice_notify_is_live();

    if (!is_live
        || ngx_sluice_notify_send("READY=1", MSG_DONTWAIT, e->log) != NGX_OK)
    {
        ngx_add_timer(e, is_live ? NGX_SLUICE_NOTIFY_RETRY
                                 : NGX_SLUICE_NOTIFY_POLL);
    }
}


static ngx_uint_t
ngx_sluice_notify_is_live(void)
{
    size_t             i;
    sluice_control_t  *block;

    block = sluice_images_control_block();

    if (block->pid != (uint32_t) ngx_pid
        || block->state != SLUICE_CONTROL_LIVE)
    {
        return 0;
    }

    for (i = 1; i < ngx_sluice_notify.workers; i++) {
        if (!ngx_sluice_notify.accepting[i]) {
            return 0;
        }
    }

    return 1;
}


/*
 * A control worker that hangs is silent, and so is each worker while the
 * master is stopped.
 */

static void
ngx_sluice_notify_feed_handler(ngx_event_t *e)
{
    ngx_uint_t  is_mine;

    is_mine = ngx_worker == 0
              || (ngx_exiting && !ngx_sluice_notify_has_control());

    if (is_mine && ngx_sluice_notify_master_runs()) {
        (void) ngx_sluice_notify_send("WATCHDOG=1", MSG_DONTWAIT, e->log);
    }

    ngx_add_timer(e, ngx_sluice_notify.feed);
}


/* Whether one is there: one that has died while all ends is not replaced. */

static ngx_uint_t
ngx_sluice_notify_has_control(void)
{
    ngx_pid_t          pid;
    ngx_uint_t         i;
    sluice_control_t  *block;

    block = sluice_images_control_block();

    for (i = 0; i < NGX_SLUICE_CONTROL_SLOTS; i++) {
        pid = (ngx_pid_t) block->slots[i];

        if (pid && (kill(pid, 0) == 0 || ngx_errno != ESRCH)) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_sluice_notify_master_runs(void)
{
    int       fd;
    char      text[NGX_SLUICE_NOTIFY_TEXT], *state;
    u_char    path[sizeof("/proc//stat") + NGX_INT64_LEN];
    ssize_t   n;

    if (ngx_getppid() != ngx_parent) {
        return 0;
    }

    ngx_sprintf(path, "/proc/%P/stat%Z", ngx_parent);

    fd = open((char *) path, O_RDONLY|O_CLOEXEC);
    n = (fd == -1) ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd != -1) {
        (void) close(fd);
    }

    text[ngx_max(n, 0)] = '\0';

    /* "<pid> (nginx) S ...": T is stopped by a signal, t by a debugger */

    state = strrchr(text, ')');

    return state == NULL || (state[2] != 'T' && state[2] != 't');
}


/* A master that leaves: it has no workers any more. */

void
ngx_sluice_notify_exit_master(ngx_cycle_t *cycle)
{
    char  text[NGX_SLUICE_NOTIFY_TEXT];

    if (ngx_sluice_notify.length == 0) {
        return;
    }

    if (ngx_new_binary > 0) {
        ngx_sprintf((u_char *) text, "MAINPID=%P%Z", ngx_new_binary);
        (void) ngx_sluice_notify_send(text, 0, cycle->log);

    } else if (ngx_getppid() != ngx_parent) {

        /* else the master that executed this one goes on */

        (void) ngx_sluice_notify_send("STOPPING=1", 0, cycle->log);
    }
}


/* With MSG_DONTWAIT at once or not at all. */

static ngx_int_t
ngx_sluice_notify_send(const char *text, int flags, ngx_log_t *log)
{
    int             fd;
    ssize_t         n;
    ngx_uint_t      level;
    struct timeval  last = { .tv_sec = NGX_SLUICE_NOTIFY_LAST };

    n = -1;
    fd = socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC, 0);

    if (fd != -1) {
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &last, sizeof(last));

        n = sendto(fd, text, ngx_strlen(text), flags|MSG_NOSIGNAL,
                   (struct sockaddr *) &ngx_sluice_notify.address,
                   ngx_sluice_notify.length);
    }

    if (n == -1) {
        /* the watchdog goes on trying, and would fill the log */

        level = ngx_sluice_notify.failed ? NGX_LOG_INFO : NGX_LOG_WARN;

        ngx_log_error(level, log, ngx_errno,
                      "sluice: cannot tell the supervisor \"%s\"", text);
    }

    ngx_sluice_notify.failed = (n == -1);

    if (fd != -1) {
        (void) close(fd);
    }

    return n == -1 ? NGX_ERROR : NGX_OK;
}
