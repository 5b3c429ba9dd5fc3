
/*
 * Writes the JSON of a log entry into a buffer that grows.
 */


#include "ngx_http_sluice_log.h"
#include "decimal.h"


void
ngx_http_sluice_log_begin(ngx_http_sluice_log_t *log)
{
    log->pos = log->start;
    log->failed = 0;
}


ngx_str_t
ngx_http_sluice_log_copy(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    ngx_str_t  text;

    ngx_str_null(&text);

    if (log->failed) {
        return text;
    }

    text.data = ngx_pnalloc(r->pool, log->pos - log->start);

    if (text.data) {
        text.len = log->pos - log->start;
        ngx_memcpy(text.data, log->start, text.len);
    }

    return text;
}


void
ngx_http_sluice_log_number(ngx_http_sluice_log_t *log, int64_t number)
{
    uint64_t  size;

    if (!ngx_http_sluice_log_has_room(log, 1 + SLUICE_CORE_DECIMAL)) {
        return;
    }

    size = (uint64_t) number;

    if (size < 10) {
        *log->pos++ = (u_char) ('0' + size);
        return;
    }

    if (number < 0) {
        *log->pos++ = '-';
        size = -size;
    }

    log->pos = (u_char *) sluice_core_decimal((char *) log->pos, size);
}


ngx_uint_t
ngx_http_sluice_log_grow(ngx_http_sluice_log_t *log, size_t size)
{
    u_char  *start;
    size_t   used, wanted;

    if (log->failed) {
        return 0;
    }

    used = log->pos - log->start;
    wanted = ngx_max(2 * (used + size), ngx_pagesize);

    start = ngx_alloc(wanted, ngx_cycle->log);
    if (start == NULL) {
        log->failed = 1;
        return 0;
    }

    if (log->start) {
        ngx_memcpy(start, log->start, used);
        ngx_free(log->start);
    }

    log->start = start;
    log->pos = start + used;
    log->end = start + wanted;

    return 1;
}


ngx_uint_t
ngx_http_sluice_log_is_ascii(ngx_http_sluice_log_t *log)
{
    u_char    *p;
    uint64_t   all, words[4];

    all = 0;

    for (p = log->start; log->pos - p >= (ssize_t) sizeof(words);
         p += sizeof(words))
    {
        ngx_memcpy(words, p, sizeof(words));
        all |= words[0] | words[1] | words[2] | words[3];
    }

    for ( /* void */ ; p < log->pos; p++) {
        all |= *p;
    }

    return (all & 0x8080808080808080) == 0;
}
