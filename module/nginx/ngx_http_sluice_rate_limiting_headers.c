
/*
 * What a client is told of its limits: of each window, and of the one that has
 * the least left.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_rate_limiting.h"

#include <stdio.h>


/* Lua writes whole numbers below this one digit by digit. */

#define NGX_HTTP_SLUICE_RATE_WHOLE  1e14


typedef enum {
    NGX_HTTP_SLUICE_RATE_WINDOWS = 0,        /* two a period */
    NGX_HTTP_SLUICE_RATE_LIMIT = 2 * SLUICE_CORE_PERIODS,
    NGX_HTTP_SLUICE_RATE_REMAINING,
    NGX_HTTP_SLUICE_RATE_RESET,
    NGX_HTTP_SLUICE_RATE_RETRY_AFTER,
    NGX_HTTP_SLUICE_RATE_HEADERS
} ngx_http_sluice_rate_header_e;


#define ngx_http_sluice_rate_header(name, lowcase, own)                       \
    { (u_char *) name, (u_char *) lowcase, sizeof(name) - 1, 0, own }

#define ngx_http_sluice_rate_window(period, lowcase)                          \
    ngx_http_sluice_rate_header("X-RateLimit-Limit-" period,                  \
                                "x-ratelimit-limit-" lowcase, 1),             \
    ngx_http_sluice_rate_header("X-RateLimit-Remaining-" period,              \
                                "x-ratelimit-remaining-" lowcase, 1)


/* They replace an upstream's, which nobody asks where a request is refused. */

static sluice_header_t
    ngx_http_sluice_rate_headers[NGX_HTTP_SLUICE_RATE_HEADERS] =
{
    ngx_http_sluice_rate_window("Second", "second"),
    ngx_http_sluice_rate_window("Minute", "minute"),
    ngx_http_sluice_rate_window("Hour", "hour"),
    ngx_http_sluice_rate_window("Day", "day"),
    ngx_http_sluice_rate_window("Month", "month"),
    ngx_http_sluice_rate_window("Year", "year"),
    ngx_http_sluice_rate_header("RateLimit-Limit", "ratelimit-limit", 1),
    ngx_http_sluice_rate_header("RateLimit-Remaining", "ratelimit-remaining",
                                1),
    ngx_http_sluice_rate_header("RateLimit-Reset", "ratelimit-reset", 1),
    ngx_http_sluice_rate_header("Retry-After", "retry-after", 0)
};


void
ngx_http_sluice_rate_headers_init(void)
{
    ngx_uint_t        i;
    sluice_header_t  *header;

    for (i = 0; i < NGX_HTTP_SLUICE_RATE_HEADERS; i++) {
        header = &ngx_http_sluice_rate_headers[i];
        header->hash = ngx_hash_key(header->lowcase, header->length);
    }
}


u_char *
ngx_http_sluice_rate_print(u_char *p, double number)
{
    if (number < NGX_HTTP_SLUICE_RATE_WHOLE && number == (int64_t) number) {
        return ngx_sprintf(p, "%L", (int64_t) number);
    }

    return p + snprintf((char *) p, NGX_HTTP_SLUICE_RATE_TEXT, "%.14g",
                        number);
}


ngx_int_t
ngx_http_sluice_rate_headers_set(ngx_http_request_t *r,
    ngx_http_sluice_rate_limiting_t *conf, const sluice_core_taken_t *taken,
    uint64_t now, ngx_uint_t is_refused)
{
    double                       left, least;
    u_char                      *p;
    uint32_t                     i, tightest;
    ngx_str_t                    values[NGX_HTTP_SLUICE_RATE_HEADERS];
    ngx_str_t                   *value;
    const sluice_core_window_t  *window;

    p = ngx_pnalloc(r->pool,
                    (conf->rule.count + 1) * NGX_HTTP_SLUICE_RATE_TEXT);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(values, sizeof(values));

    least = 0;
    tightest = 0;

    for (i = 0; i < conf->rule.count; i++) {
        value = &values[2 * conf->rule.windows[i].period];

        left = conf->rates[i].number - (double) taken->used[i];
        left = ngx_max(left, 0);

        value[0] = conf->rates[i].text;
        value[1].data = p;
        p = ngx_http_sluice_rate_print(p, left);
        value[1].len = p - value[1].data;

        /* of several the longest, since that keeps the client waiting */

        if (i == 0 || left <= least) {
            least = left;
            tightest = i;
        }
    }

    window = &conf->rule.windows[tightest];

    values[NGX_HTTP_SLUICE_RATE_LIMIT] = conf->rates[tightest].text;
    values[NGX_HTTP_SLUICE_RATE_REMAINING] = values[2 * window->period + 1];

    value = &values[NGX_HTTP_SLUICE_RATE_RESET];
    value->data = p;
    value->len = ngx_sprintf(p, "%uL", window->finish > now
                                       ? window->finish - now : 1) - p;

    if (is_refused) {
        values[NGX_HTTP_SLUICE_RATE_RETRY_AFTER] = *value;
    }

    for (i = 0; i < NGX_HTTP_SLUICE_RATE_HEADERS; i++) {

        if (values[i].len
            && ngx_http_sluice_header_set_response(r,
                   &ngx_http_sluice_rate_headers[i], &values[i])
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
