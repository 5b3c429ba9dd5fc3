
/*
 * Lines of threads for the error log (ngx_sluice_reader.h): nginx's log, and
 * what is done to its lines here, are the event loop's alone.
 */


#include "ngx_sluice_loop.h"
#include "ngx_sluice_reader.h"

#include <pthread.h>
#include <sys/eventfd.h>


#define NGX_SLUICE_READER_LINES  16            /* that wait */
#define NGX_SLUICE_READER_LINE   1536


typedef struct {
    ngx_uint_t   level;
    size_t       length;
    u_char       text[NGX_SLUICE_READER_LINE];
} ngx_sluice_reader_line_t;


static void ngx_sluice_reader_lines_handler(ngx_event_t *rev);
static void ngx_sluice_reader_lines_write(void);


static pthread_mutex_t    ngx_sluice_reader_lines_lock =
                                                    PTHREAD_MUTEX_INITIALIZER;
static ngx_sluice_reader_line_t
                          ngx_sluice_reader_lines[NGX_SLUICE_READER_LINES];
static ngx_uint_t         ngx_sluice_reader_nlines;

static int                ngx_sluice_reader_lines_fd = -1;
static ngx_connection_t  *ngx_sluice_reader_lines_connection;


ngx_int_t
ngx_sluice_reader_lines_init(void)
{
    int                fd;
    ngx_connection_t  *c;

    fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
    c = NULL;

    if (fd != -1) {
        c = ngx_sluice_loop_listen(fd, ngx_sluice_reader_lines_handler, NULL);
    }

    if (c == NULL) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "sluice: no eventfd for the threads of log plugins");
        return NGX_ERROR;
    }

    ngx_sluice_reader_lines_fd = fd;
    ngx_sluice_reader_lines_connection = c;

    return NGX_OK;
}


/* Threads may still write to the file, which so stays open. */

void
ngx_sluice_reader_lines_exit_process(void)
{
    if (ngx_sluice_reader_lines_connection) {
        ngx_sluice_loop_unlisten(ngx_sluice_reader_lines_connection);
        ngx_sluice_reader_lines_connection = NULL;
        ngx_sluice_reader_lines_write();
    }
}


void
ngx_sluice_reader_say(ngx_uint_t level, const char *format, ...)
{
    u_char                    *end;
    va_list                    args;
    uint64_t                   one;
    ngx_sluice_reader_line_t  *line;

    (void) pthread_mutex_lock(&ngx_sluice_reader_lines_lock);

    if (ngx_sluice_reader_nlines < NGX_SLUICE_READER_LINES) {
        line = &ngx_sluice_reader_lines[ngx_sluice_reader_nlines++];
        line->level = level;

        va_start(args, format);
        end = ngx_vslprintf(line->text, line->text + sizeof(line->text),
                            format, args);
        va_end(args);

        line->length = end - line->text;
    }

    (void) pthread_mutex_unlock(&ngx_sluice_reader_lines_lock);

    one = 1;

    if (write(ngx_sluice_reader_lines_fd, &one, sizeof(one)) == -1) {
        /* its sum is full: then the event loop is told already */
        return;
    }
}


static void
ngx_sluice_reader_lines_handler(ngx_event_t *rev)
{
    ngx_sluice_loop_take(rev, "the threads of log plugins", "lines of theirs");

    ngx_sluice_reader_lines_write();
}


/* Not under the lock, for a slow disk's sake. */

static void
ngx_sluice_reader_lines_write(void)
{
    ngx_str_t                        text;
    ngx_uint_t                       i, n;
    static ngx_sluice_reader_line_t  lines[NGX_SLUICE_READER_LINES];

    (void) pthread_mutex_lock(&ngx_sluice_reader_lines_lock);

    n = ngx_sluice_reader_nlines;
    ngx_sluice_reader_nlines = 0;
    ngx_memcpy(lines, ngx_sluice_reader_lines,
               n * sizeof(ngx_sluice_reader_line_t));

    (void) pthread_mutex_unlock(&ngx_sluice_reader_lines_lock);

    for (i = 0; i < n; i++) {
        text.data = lines[i].text;
        text.len = lines[i].length;
        ngx_log_error(lines[i].level, ngx_cycle->log, 0, "%V", &text);
    }
}
