
/*
 * Writes the JSON of a log entry into a buffer that grows.
 */


#include "ngx_http_sluice_log.h"
#include "json.h"


static u_char *ngx_http_sluice_log_reserve(ngx_http_sluice_log_t *log,
    size_t size);


void
ngx_http_sluice_log_raw(ngx_http_sluice_log_t *log, const char *text,
    size_t length)
{
    u_char  *p;

    p = ngx_http_sluice_log_reserve(log, length);

    if (p) {
        log->pos = ngx_cpymem(p, text, length);
    }
}


void
ngx_http_sluice_log_string(ngx_http_sluice_log_t *log, u_char *text,
    size_t length)
{
    u_char  *p;

    p = ngx_http_sluice_log_reserve(log, sluice_json_string_bound(length));

    if (p) {
        log->pos = (u_char *) sluice_json_string((char *) p, (char *) text,
                                                 length);
    }
}


void
ngx_http_sluice_log_escape(ngx_http_sluice_log_t *log, u_char *text,
    size_t length)
{
    u_char  *p;

    p = ngx_http_sluice_log_reserve(log, sluice_json_string_bound(length));

    if (p) {
        log->pos = (u_char *) sluice_json_escape((char *) p, (char *) text,
                                                 length);
    }
}


void
ngx_http_sluice_log_number(ngx_http_sluice_log_t *log, int64_t number)
{
    u_char  *p;

    p = ngx_http_sluice_log_reserve(log, NGX_INT64_LEN);

    if (p) {
        log->pos = ngx_sprintf(p, "%L", number);
    }
}


/* NULL: no memory */

static u_char *
ngx_http_sluice_log_reserve(ngx_http_sluice_log_t *log, size_t size)
{
    u_char  *start;
    size_t   used, wanted;

    if (log->failed) {
        return NULL;
    }

    if (size <= (size_t) (log->end - log->pos)) {
        return log->pos;
    }

    used = log->pos - log->start;
    wanted = ngx_max(2 * (used + size), ngx_pagesize);

    start = ngx_alloc(wanted, ngx_cycle->log);
    if (start == NULL) {
        log->failed = 1;
        return NULL;
    }

    if (log->start) {
        ngx_memcpy(start, log->start, used);
        ngx_free(log->start);
    }

    log->start = start;
    log->pos = start + used;
    log->end = start + wanted;

    return log->pos;
}


ngx_uint_t
ngx_http_sluice_log_is_ascii(ngx_http_sluice_log_t *log)
{
    u_char  *p, all;

    all = 0;

    for (p = log->start; p < log->pos; p++) {
        all |= *p;
    }

    return all < 0x80;
}
