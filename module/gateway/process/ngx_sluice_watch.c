
/*
 * The control worker is told when somebody touches the files of images, so
 * that it need not look (gateway/writer/maintenance.lua).
 */


#include "ngx_sluice_loop.h"
#include "ngx_sluice_process.h"

#include <sys/inotify.h>


/* What may keep a new worker from mapping a file of the folder. */

#define NGX_SLUICE_WATCH_MASK                                                 \
    (IN_MODIFY|IN_ATTRIB|IN_MOVED_FROM|IN_MOVED_TO|IN_DELETE                  \
     |IN_DELETE_SELF|IN_MOVE_SELF|IN_ONLYDIR)

#define NGX_SLUICE_WATCH_READS  16             /* of 4k, in a turn */


typedef struct {
    ngx_connection_t  *connection;
    int                watched;                /* inotify's number, or -1 */
    void              *semaphore;
    int              (*post)(void *semaphore, int n);
} ngx_sluice_watch_t;


static ngx_int_t ngx_sluice_watch_begin(void);
static void ngx_sluice_watch_handler(ngx_event_t *rev);


static ngx_sluice_watch_t  ngx_sluice_watch = { .watched = -1 };


/*
 * Posts the semaphore from now on where a file of the folder changes, goes or
 * comes; of the folder that has this name now, so call it again where another
 * may have.  0, or -1: the kernel does not watch it.
 */

int
sluice_watch_control(const char *folder, void *semaphore,
    int (*post)(void *semaphore, int n))
{
    int                  watched;
    ngx_sluice_watch_t  *w;

    w = &ngx_sluice_watch;

    if (w->connection == NULL && ngx_sluice_watch_begin() != NGX_OK) {
        return -1;
    }

    w->semaphore = semaphore;
    w->post = post;

    watched = inotify_add_watch(w->connection->fd, folder,
                                NGX_SLUICE_WATCH_MASK);

    if (watched != w->watched && w->watched != -1) {
        /* fails where the folder has gone */
        (void) inotify_rm_watch(w->connection->fd, w->watched);
    }

    w->watched = watched;

    return watched == -1 ? -1 : 0;
}


static ngx_int_t
ngx_sluice_watch_begin(void)
{
    int                fd;
    ngx_connection_t  *c;

    fd = inotify_init1(IN_NONBLOCK|IN_CLOEXEC);
    if (fd == -1) {
        return NGX_ERROR;
    }

    c = ngx_sluice_loop_listen(fd, ngx_sluice_watch_handler, NULL);
    if (c == NULL) {
        (void) close(fd);
        return NGX_ERROR;
    }

    ngx_sluice_watch.connection = c;

    return NGX_OK;
}


/* What has happened does not matter: who is told looks at the files. */

static void
ngx_sluice_watch_handler(ngx_event_t *rev)
{
    u_char             events[4096];
    ssize_t            n;
    ngx_uint_t         i;
    ngx_connection_t  *c;

    c = rev->data;

    for (i = 0; i < NGX_SLUICE_WATCH_READS; i++) {
        n = read(c->fd, events, sizeof(events));

        if (n <= 0) {
            break;
        }
    }

    if (i == NGX_SLUICE_WATCH_READS) {
        ngx_post_event(rev, &ngx_posted_next_events);

    } else if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, rev->log, 0,
                      "sluice: the files of images are not watched any more");
    }

    (void) ngx_sluice_watch.post(ngx_sluice_watch.semaphore, 1);
}


/* The semaphore goes with its Lua machine. */

void
ngx_sluice_watch_exit_process(void)
{
    ngx_connection_t  *c;

    c = ngx_sluice_watch.connection;

    if (c) {
        ngx_sluice_watch.connection = NULL;
        ngx_close_connection(c);
    }
}
