
/*
 * Writes the lines of the error log (ngx_sluice_error_log.h).
 */


#include "ngx_sluice_error_log.h"
#include "ngx_sluice_redact.h"


static void ngx_sluice_error_log_writer(ngx_log_t *log, ngx_uint_t level,
    u_char *line, size_t length);
static ngx_uint_t ngx_sluice_error_log_is_repeated(ngx_log_t *log,
    u_char *line, size_t length);
static ngx_uint_t ngx_sluice_error_log_is_syslog(u_char *line, size_t length);


static ngx_sluice_error_log_suffix_pt  ngx_sluice_error_log_suffix;


void
ngx_sluice_error_log_init(ngx_cycle_t *cycle,
    ngx_sluice_error_log_suffix_pt suffix)
{
    ngx_log_t  *log;

    ngx_sluice_error_log_suffix = suffix;

    /* servers and connections copy the writer from here, request by request */

    for (log = cycle->log; log; log = log->next) {
        if (log->writer == NULL && log->file) {
            log->writer = ngx_sluice_error_log_writer;
        }
    }
}


/* as ngx_log_error_core() writes, which leaves this to a log's writer */

static void
ngx_sluice_error_log_writer(ngx_log_t *log, ngx_uint_t level, u_char *line,
    size_t length)
{
    u_char   *p;
    ssize_t   n;
    u_char    text[NGX_SLUICE_REDACT_GROWTH * NGX_MAX_ERROR_STR
                   + NGX_SLUICE_ERROR_LOG_SUFFIX + NGX_LINEFEED_SIZE];

    if (ngx_time() == log->disk_full_time
        || ngx_sluice_error_log_is_repeated(log, line, length))
    {
        return;
    }

    length -= NGX_LINEFEED_SIZE;

    p = text + ngx_sluice_redact(text, line, length, NGX_SLUICE_REDACT_LINE);

    if (level != NGX_LOG_DEBUG) {
        p = ngx_sluice_error_log_suffix(log, text, p);
    }

    ngx_linefeed(p);

    n = ngx_write_fd(log->file->fd, text, p - text);

    if (n == -1 && ngx_errno == NGX_ENOSPC) {
        log->disk_full_time = ngx_time();
    }
}


static ngx_uint_t
ngx_sluice_error_log_is_repeated(ngx_log_t *log, u_char *line, size_t length)
{
    static size_t  last_length;
    static time_t  last_syslog;
    static u_char  last[NGX_MAX_ERROR_STR];

    if (log->connection) {

        if (!ngx_sluice_error_log_is_syslog(line, length)) {
            return 0;
        }

        if (last_syslog == ngx_time()) {
            return 1;
        }

        last_syslog = ngx_time();

        return 0;
    }

    if (length == last_length && ngx_memcmp(line, last, length) == 0) {
        return 1;
    }

    ngx_memcpy(last, line, length);
    last_length = length;

    return 0;
}


/*
 * Whether a line of a connection, "<time> [warn] <pid>#<tid>: *<number> ...",
 * is what nginx's log module says when it could not send: no code tells it.
 * Nothing that a client sends stands before the message.
 */

static ngx_uint_t
ngx_sluice_error_log_is_syslog(u_char *line, size_t length)
{
    u_char       *p, *last;
    static char   message[] = " send() to syslog failed";

    last = line + length;

    p = memchr(line, '*', length);
    if (p == NULL) {
        return 0;
    }

    p = memchr(p, ' ', last - p);

    return p
           && (size_t) (last - p) >= sizeof(message) - 1
           && ngx_memcmp(p, message, sizeof(message) - 1) == 0;
}
