
/*
 * Long on purpose: files, their threads and what these write share one struct.
 *
 * Writes files (ngx_sluice_file_log.h).  Entries are handed to a file's thread
 * in the order in which they came out of the spool.  What a file cannot take
 * in time is dropped, the newest, and counted.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_file_log.h"
#include "ngx_sluice_reader.h"
#include "ngx_sluice_spool.h"

#include <poll.h>
#include <pthread.h>
#include <sys/uio.h>
#include <time.h>


#define NGX_SLUICE_FILE_LOG_FILES    128
#define NGX_SLUICE_FILE_LOG_BYTES    (4 * 1024 * 1024)  /* that wait for one */
#define NGX_SLUICE_FILE_LOG_STACK    (128 * 1024)
#define NGX_SLUICE_FILE_LOG_IDLE     60            /* s, until it is closed */
#define NGX_SLUICE_FILE_LOG_REPORT   10            /* s, between two lines */
#define NGX_SLUICE_FILE_LOG_VECTOR   64


typedef struct ngx_sluice_file_log_file_s  ngx_sluice_file_log_file_t;


struct ngx_sluice_file_log_file_s {
    ngx_sluice_file_log_file_t    *next;           /* the reader's */
    time_t                         used;

    pthread_mutex_t                lock;           /* of what follows */
    pthread_cond_t                 more;
    ngx_sluice_lines_t            *first;
    ngx_sluice_lines_t           **last;
    size_t                         bytes;          /* also of what is being
                                                      written */
    ngx_uint_t                     dropped;        /* not reported yet */
    unsigned                       reopen:1;
    unsigned                       ends:1;

    int                            fd;             /* its thread's */
    ngx_uint_t                     torn;           /* a line has no end */
    time_t                         reported;

    u_char                         path[];
};


static ngx_sluice_file_log_file_t *ngx_sluice_file_log_find(
    const ngx_str_t *path);
static ngx_sluice_file_log_file_t *ngx_sluice_file_log_create(
    const ngx_str_t *path);
static ngx_uint_t ngx_sluice_file_log_retire(void);
static ngx_int_t ngx_sluice_file_log_start(ngx_sluice_file_log_file_t *file);
static void ngx_sluice_file_log_put(ngx_sluice_file_log_file_t *file,
    ngx_uint_t reopen, ngx_sluice_lines_t *lines);
static void *ngx_sluice_file_log_main(void *data);
static ngx_uint_t ngx_sluice_file_log_wait(ngx_sluice_file_log_file_t *file);
static void ngx_sluice_file_log_close(ngx_sluice_file_log_file_t *file);
static void ngx_sluice_file_log_write(ngx_sluice_file_log_file_t *file,
    ngx_sluice_lines_t *next);
static ngx_int_t ngx_sluice_file_log_write_some(
    ngx_sluice_file_log_file_t *file, ngx_sluice_lines_t **next,
    size_t *done);
static ngx_uint_t ngx_sluice_file_log_free(ngx_sluice_lines_t *lines,
    size_t done);
static void ngx_sluice_file_log_report(ngx_sluice_file_log_file_t *file,
    ngx_uint_t lost, const u_char *why);
static time_t ngx_sluice_file_log_now(void);


/* The reader's alone, and the event loop's once that has ended. */

static ngx_sluice_file_log_file_t  *ngx_sluice_file_log_files;
static ngx_uint_t                   ngx_sluice_file_log_count;


void
ngx_sluice_file_log_deliver(ngx_sluice_lines_t *lines)
{
    ngx_str_t                    path;
    ngx_sluice_file_log_file_t  *file;

    /* the spool is not believed */

    file = NULL;

    if (lines->target > 1) {
        path.data = lines->data + 1;
        path.len = lines->target - 1;
        file = ngx_sluice_file_log_find(&path);
    }

    if (file == NULL) {
        sluice_spool_lose(ngx_sluice_spool(), lines->count);
        free(lines);
        return;
    }

    file->used = ngx_sluice_file_log_now();

    ngx_sluice_file_log_put(file, lines->data[0] & NGX_SLUICE_FILE_LOG_REOPEN,
                            lines);
}


static ngx_sluice_file_log_file_t *
ngx_sluice_file_log_find(const ngx_str_t *path)
{
    ngx_sluice_file_log_file_t  *file;

    for (file = ngx_sluice_file_log_files; file; file = file->next) {

        if (ngx_strncmp(file->path, path->data, path->len) == 0
            && file->path[path->len] == '\0')
        {
            return file;
        }
    }

    return ngx_sluice_file_log_create(path);
}


static ngx_sluice_file_log_file_t *
ngx_sluice_file_log_create(const ngx_str_t *path)
{
    static time_t                said;
    ngx_sluice_file_log_file_t  *file;

    if (ngx_sluice_file_log_count == NGX_SLUICE_FILE_LOG_FILES
        && !ngx_sluice_file_log_retire())
    {
        if (ngx_sluice_file_log_now() - said >= NGX_SLUICE_FILE_LOG_REPORT) {
            said = ngx_sluice_file_log_now();
            ngx_sluice_reader_say(NGX_LOG_ERR,
                                  "file-log %V: entries are dropped: %d "
                                  "other files are being written",
                                  path, NGX_SLUICE_FILE_LOG_FILES);
        }

        return NULL;
    }

    file = calloc(1, sizeof(ngx_sluice_file_log_file_t) + path->len + 1);
    if (file == NULL) {
        return NULL;
    }

    file->last = &file->first;
    file->fd = -1;
    file->reported = ngx_sluice_file_log_now() - NGX_SLUICE_FILE_LOG_REPORT;
    ngx_memcpy(file->path, path->data, path->len);
    (void) pthread_mutex_init(&file->lock, NULL);
    (void) pthread_cond_init(&file->more, NULL);

    if (ngx_sluice_file_log_start(file) != NGX_OK) {
        free(file);
        return NULL;
    }

    file->next = ngx_sluice_file_log_files;
    ngx_sluice_file_log_files = file;
    ngx_sluice_file_log_count++;

    return file;
}


/* That which nothing was written to for the longest time; 0: all have work. */

static ngx_uint_t
ngx_sluice_file_log_retire(void)
{
    ngx_uint_t                    idle;
    ngx_sluice_file_log_file_t   *file, **at, **oldest;

    oldest = NULL;

    for (at = &ngx_sluice_file_log_files; *at; at = &(*at)->next) {
        (void) pthread_mutex_lock(&(*at)->lock);
        idle = (*at)->bytes == 0;
        (void) pthread_mutex_unlock(&(*at)->lock);

        if (idle && (oldest == NULL || (*at)->used < (*oldest)->used)) {
            oldest = at;
        }
    }

    if (oldest == NULL) {
        return 0;
    }

    file = *oldest;
    *oldest = file->next;
    ngx_sluice_file_log_count--;

    (void) pthread_mutex_lock(&file->lock);
    file->ends = 1;
    (void) pthread_cond_signal(&file->more);
    (void) pthread_mutex_unlock(&file->lock);

    return 1;
}


static ngx_int_t
ngx_sluice_file_log_start(ngx_sluice_file_log_file_t *file)
{
    int             err;
    pthread_t       thread;
    pthread_attr_t  attr;

    err = pthread_attr_init(&attr);
    if (err) {
        return NGX_ERROR;
    }

    (void) pthread_attr_setstacksize(&attr, NGX_SLUICE_FILE_LOG_STACK);
    (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);

    err = pthread_create(&thread, &attr, ngx_sluice_file_log_main, file);

    (void) pthread_attr_destroy(&attr);

    return err ? NGX_ERROR : NGX_OK;
}


static void
ngx_sluice_file_log_put(ngx_sluice_file_log_file_t *file, ngx_uint_t reopen,
    ngx_sluice_lines_t *lines)
{
    ngx_uint_t  is_full;

    lines->next = NULL;

    (void) pthread_mutex_lock(&file->lock);

    is_full = file->bytes + lines->size > NGX_SLUICE_FILE_LOG_BYTES;

    if (is_full) {
        file->dropped += lines->count;

    } else {
        *file->last = lines;
        file->last = &lines->next;
        file->bytes += lines->size;
        file->reopen |= reopen != 0;
        (void) pthread_cond_signal(&file->more);
    }

    (void) pthread_mutex_unlock(&file->lock);

    if (is_full) {
        sluice_spool_lose(ngx_sluice_spool(), lines->count);
        free(lines);
        ngx_sluice_file_log_report(file, 0, (u_char *) "stalled");
    }
}


static void *
ngx_sluice_file_log_main(void *data)
{
    ngx_sluice_file_log_file_t  *file = data;

    size_t               bytes;
    ngx_uint_t           reopen;
    ngx_sluice_lines_t  *lines;

    for ( ;; ) {
        (void) pthread_mutex_lock(&file->lock);

        if (!ngx_sluice_file_log_wait(file)) {
            (void) pthread_mutex_unlock(&file->lock);
            break;
        }

        lines = file->first;
        file->first = NULL;
        file->last = &file->first;
        bytes = file->bytes;
        reopen = file->reopen;
        file->reopen = 0;

        (void) pthread_mutex_unlock(&file->lock);

        if (reopen) {
            ngx_sluice_file_log_close(file);
        }

        ngx_sluice_file_log_write(file, lines);

        (void) pthread_mutex_lock(&file->lock);
        file->bytes -= bytes;
        (void) pthread_mutex_unlock(&file->lock);
    }

    ngx_sluice_file_log_close(file);
    (void) pthread_mutex_destroy(&file->lock);
    (void) pthread_cond_destroy(&file->more);
    free(file);

    return NULL;
}


/* With the lock, until there are entries; 0: it ends. */

static ngx_uint_t
ngx_sluice_file_log_wait(ngx_sluice_file_log_file_t *file)
{
    struct timespec  until;

    while (file->first == NULL) {

        if (file->ends) {
            return 0;
        }

        if (file->fd == -1) {
            (void) pthread_cond_wait(&file->more, &file->lock);
            continue;
        }

        (void) clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += NGX_SLUICE_FILE_LOG_IDLE;

        if (pthread_cond_timedwait(&file->more, &file->lock, &until)
            == ETIMEDOUT)
        {
            ngx_sluice_file_log_close(file);
        }
    }

    return 1;
}


static void
ngx_sluice_file_log_close(ngx_sluice_file_log_file_t *file)
{
    if (file->fd > STDERR_FILENO) {
        (void) close(file->fd);
    }

    file->fd = -1;
}


static void
ngx_sluice_file_log_write(ngx_sluice_file_log_file_t *file,
    ngx_sluice_lines_t *next)
{
    size_t       done;
    u_char       why[NGX_SLUICE_FILE_LOG_WHY];
    struct stat  st;

    if (file->fd == -1) {
        file->fd = ngx_sluice_file_log_open((char *) file->path, why);

        if (file->fd == -1) {
            ngx_sluice_file_log_report(file, ngx_sluice_file_log_free(next, 0),
                                       why);
            return;
        }

        /* a new one, or a pipe, has no half line */

        if (fstat(file->fd, &st) == -1 || st.st_size == 0) {
            file->torn = 0;
        }
    }

    done = 0;

    while (next) {

        if (ngx_sluice_file_log_write_some(file, &next, &done) == NGX_OK) {
            continue;
        }

        ngx_sluice_file_log_error(why, "write()", ngx_errno);
        file->torn |= done > 0 && ngx_sluice_lines_text(next)[done - 1] != LF;

        if (ngx_errno == EPIPE || ngx_errno == EIO) {
            ngx_sluice_file_log_close(file);
        }

        ngx_sluice_file_log_report(file, ngx_sluice_file_log_free(next, done),
                                   why);
        return;
    }
}


/*
 * Writes once and frees what is written; done: bytes of next that are.
 * NGX_ERROR: errno says why not.
 */

static ngx_int_t
ngx_sluice_file_log_write_some(ngx_sluice_file_log_file_t *file,
    ngx_sluice_lines_t **next, size_t *done)
{
    int                  n;
    ssize_t              written;
    struct iovec         iov[NGX_SLUICE_FILE_LOG_VECTOR];
    struct pollfd        pfd;
    ngx_sluice_lines_t  *lines;

    n = 0;

    if (file->torn) {
        iov[n].iov_base = (void *) "\n";
        iov[n++].iov_len = 1;
    }

    for (lines = *next; lines && n < NGX_SLUICE_FILE_LOG_VECTOR;
         lines = lines->next)
    {
        iov[n].iov_base = ngx_sluice_lines_text(lines)
                          + (lines == *next ? *done : 0);
        iov[n++].iov_len = lines->length - (lines == *next ? *done : 0);
    }

    written = writev(file->fd, iov, n);

    if (written == -1) {

        if (ngx_errno == NGX_EAGAIN) {
            /* somebody else's stdout may be set so */
            pfd.fd = file->fd;
            pfd.events = POLLOUT;
            return poll(&pfd, 1, -1) == -1 ? NGX_ERROR : NGX_OK;
        }

        return ngx_errno == NGX_EINTR ? NGX_OK : NGX_ERROR;
    }

    if (file->torn && written > 0) {
        file->torn = 0;
        written--;
    }

    while (written > 0) {
        lines = *next;

        if ((size_t) written < lines->length - *done) {
            *done += written;
            break;
        }

        written -= lines->length - *done;
        *done = 0;
        *next = lines->next;
        free(lines);
    }

    return NGX_OK;
}


/* How many lines there were, but for the first done bytes. */

static ngx_uint_t
ngx_sluice_file_log_free(ngx_sluice_lines_t *lines, size_t done)
{
    u_char              *p, *last;
    ngx_uint_t           n;
    ngx_sluice_lines_t  *next;

    for (n = 0; lines; lines = next, done = 0) {
        next = lines->next;
        last = ngx_sluice_lines_text(lines) + lines->length;

        for (p = ngx_sluice_lines_text(lines) + done; p < last; p++) {
            n += (*p == LF);
        }

        free(lines);
    }

    sluice_spool_lose(ngx_sluice_spool(), n);

    return n;
}


static void
ngx_sluice_file_log_report(ngx_sluice_file_log_file_t *file, ngx_uint_t lost,
    const u_char *why)
{
    time_t      now;
    ngx_uint_t  dropped;

    dropped = 0;

    (void) pthread_mutex_lock(&file->lock);

    file->dropped += lost;

    now = ngx_sluice_file_log_now();

    if (now - file->reported >= NGX_SLUICE_FILE_LOG_REPORT) {
        file->reported = now;
        dropped = file->dropped;
        file->dropped = 0;
    }

    (void) pthread_mutex_unlock(&file->lock);

    if (dropped) {
        ngx_sluice_reader_say(NGX_LOG_ERR,
                              "file-log %s: %ui entr%s dropped: %s",
                              file->path, dropped,
                              dropped == 1 ? "y was" : "ies were", why);
    }
}


/* nginx's own clock stands where its event loop has nothing to do */

static time_t
ngx_sluice_file_log_now(void)
{
    return (time_t) (ngx_sluice_clock_ms(CLOCK_MONOTONIC_COARSE) / 1000);
}


ngx_uint_t
ngx_sluice_file_log_settled(void)
{
    ngx_uint_t                   settled;
    ngx_sluice_file_log_file_t  *file;

    settled = 1;

    for (file = ngx_sluice_file_log_files; file; file = file->next) {
        (void) pthread_mutex_lock(&file->lock);
        settled &= file->bytes == 0;
        (void) pthread_mutex_unlock(&file->lock);
    }

    return settled;
}
