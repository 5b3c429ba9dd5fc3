
/*
 * What a client is told of its limits: of each window, and of the one that has
 * the least left.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_rate_limiting.h"
#include "decimal.h"

#include <stdio.h>


/* Lua writes whole numbers below this one digit by digit. */

#define NGX_HTTP_SLUICE_RATE_WHOLE  1e14


/* Of each period two, by its number; then those of the tightest window. */

enum {
    NGX_HTTP_SLUICE_RATE_LIMIT = 2 * SLUICE_CORE_PERIODS,
    NGX_HTTP_SLUICE_RATE_REMAINING,
    NGX_HTTP_SLUICE_RATE_RESET,
    NGX_HTTP_SLUICE_RATE_RETRY_AFTER,
    NGX_HTTP_SLUICE_RATE_HEADERS
};


#define ngx_http_sluice_rate_header(name, lowcase)                            \
    { (u_char *) name, (u_char *) lowcase, sizeof(name) - 1, 0, 1 }

#define ngx_http_sluice_rate_window(period, lowcase)                          \
    ngx_http_sluice_rate_header("X-RateLimit-Limit-" period,                  \
                                "x-ratelimit-limit-" lowcase),                \
    ngx_http_sluice_rate_header("X-RateLimit-Remaining-" period,              \
                                "x-ratelimit-remaining-" lowcase)


static sluice_header_t
    ngx_http_sluice_rate_headers[NGX_HTTP_SLUICE_RATE_HEADERS] =
{
    ngx_http_sluice_rate_window("Second", "second"),
    ngx_http_sluice_rate_window("Minute", "minute"),
    ngx_http_sluice_rate_window("Hour", "hour"),
    ngx_http_sluice_rate_window("Day", "day"),
    ngx_http_sluice_rate_window("Month", "month"),
    ngx_http_sluice_rate_window("Year", "year"),
    ngx_http_sluice_rate_header("RateLimit-Limit", "ratelimit-limit"),
    ngx_http_sluice_rate_header("RateLimit-Remaining", "ratelimit-remaining"),
    ngx_http_sluice_rate_header("RateLimit-Reset", "ratelimit-reset"),
    ngx_http_sluice_rate_header("Retry-After", "retry-after")
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
        return (u_char *) sluice_core_decimal((char *) p, (uint64_t) number);
    }

    return p + snprintf((char *) p, NGX_HTTP_SLUICE_RATE_TEXT, "%.14g",
                        number);
}


ngx_int_t
ngx_http_sluice_rate_headers_set(ngx_http_request_t *r,
    ngx_http_sluice_rate_limiting_t *conf, const sluice_core_taken_t *taken,
    uint64_t now, ngx_uint_t is_refused)
{
    double                          left, least;
    u_char                         *p;
    uint32_t                        i, tightest;
    sluice_header_t                *header;
    const sluice_core_window_t     *window;
    ngx_http_sluice_header_line_t  *line, *tight;
    ngx_http_sluice_header_line_t   lines[NGX_HTTP_SLUICE_RATE_HEADERS];

    p = ngx_pnalloc(r->pool,
                    (2 * conf->rule.count + 1) * NGX_HTTP_SLUICE_RATE_TEXT);
    if (p == NULL) {
        return NGX_ERROR;
    }

    line = lines;
    tightest = 0;
    least = 0;

    for (i = 0; i < conf->rule.count; i++) {
        window = &conf->rule.windows[i];
        header = &ngx_http_sluice_rate_headers[2 * window->period];

        left = conf->rates[i].number - (double) taken->used[i];
        left = ngx_max(left, 0);

        line->header = header;
        line->value.data = p;
        line->value.len = conf->rates[i].text.len;
        line++;

        /* a copy: logs read it when conf may be gone */

        p = ngx_cpymem(p, conf->rates[i].text.data, conf->rates[i].text.len);

        line->header = header + 1;
        line->value.data = p;
        p = ngx_http_sluice_rate_print(p, left);
        line->value.len = p - line->value.data;
        line++;

        /* of several the longest, since that keeps the client waiting */

        if (i == 0 || left <= least) {
            least = left;
            tightest = i;
        }
    }

    tight = &lines[2 * tightest];
    header = ngx_http_sluice_rate_headers;

    line->header = &header[NGX_HTTP_SLUICE_RATE_LIMIT];
    line->value = tight[0].value;
    line++;

    line->header = &header[NGX_HTTP_SLUICE_RATE_REMAINING];
    line->value = tight[1].value;
    line++;

    window = &conf->rule.windows[tightest];

    line->header = &header[NGX_HTTP_SLUICE_RATE_RESET];
    line->value.data = p;
    line->value.len = sluice_core_decimal((char *) p, window->finish > now
                                                      ? window->finish - now
                                                      : 1)
                      - (char *) p;
    line++;

    if (is_refused) {
        line->header = &header[NGX_HTTP_SLUICE_RATE_RETRY_AFTER];
        line->value = line[-1].value;
        line++;
    }

    return ngx_http_sluice_header_set_response(r, lines, line - lines);
}
