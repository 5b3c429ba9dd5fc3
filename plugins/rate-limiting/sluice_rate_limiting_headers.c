
/*
 * What a client is told of its limits: of each window, and of the one that has
 * the least left.
 */


#include "sluice_rate_limiting.h"
#include "decimal.h"

#include <stdio.h>


/* Lua writes whole numbers below this one digit by digit. */

#define SLUICE_RATE_LIMITING_WHOLE  1e14


/* Of each period two, by its number; then those of the tightest window. */

enum {
    SLUICE_RATE_LIMITING_LIMIT = 2 * SLUICE_CORE_PERIODS,
    SLUICE_RATE_LIMITING_REMAINING,
    SLUICE_RATE_LIMITING_RESET,
    SLUICE_RATE_LIMITING_RETRY_AFTER,
    SLUICE_RATE_LIMITING_HEADERS
};


#define sluice_rate_limiting_window(period, lowcase)                          \
    sluice_header_name("X-RateLimit-Limit-" period,                           \
                       "x-ratelimit-limit-" lowcase, 1),                      \
    sluice_header_name("X-RateLimit-Remaining-" period,                       \
                       "x-ratelimit-remaining-" lowcase, 1)


static sluice_header_line_t *sluice_rate_limiting_report_tightest(
    const sluice_header_line_t *tight, sluice_header_line_t *line, char *p,
    const sluice_core_window_t *window, uint64_t now);


static sluice_header_t
    sluice_rate_limiting_headers[SLUICE_RATE_LIMITING_HEADERS] =
{
    sluice_rate_limiting_window("Second", "second"),
    sluice_rate_limiting_window("Minute", "minute"),
    sluice_rate_limiting_window("Hour", "hour"),
    sluice_rate_limiting_window("Day", "day"),
    sluice_rate_limiting_window("Month", "month"),
    sluice_rate_limiting_window("Year", "year"),
    sluice_header_name("RateLimit-Limit", "ratelimit-limit", 1),
    sluice_header_name("RateLimit-Remaining", "ratelimit-remaining", 1),
    sluice_header_name("RateLimit-Reset", "ratelimit-reset", 1),
    sluice_header_name("Retry-After", "retry-after", 1)
};


_Static_assert(SLUICE_RATE_LIMITING_HEADERS <= SLUICE_DECISION_LINES,
               "all fit without asking for memory");


char *
sluice_rate_limiting_print(char *p, double number)
{
    if (number < SLUICE_RATE_LIMITING_WHOLE && number == (int64_t) number) {
        return sluice_core_decimal(p, (uint64_t) number);
    }

    return p + snprintf(p, SLUICE_RATE_LIMITING_TEXT, "%.14g", number);
}


void
sluice_rate_limiting_hash(void)
{
    uint32_t  i;

    for (i = 0; i < SLUICE_RATE_LIMITING_HEADERS; i++) {
        sluice_header_name_hash(&sluice_rate_limiting_headers[i]);
    }
}


int
sluice_rate_limiting_report(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, const sluice_core_taken_t *taken,
    int is_refused, sluice_decision_result_t *result)
{
    char                        *p;
    double                       left, least;
    uint32_t                     i, tightest;
    sluice_header_t             *header;
    sluice_header_line_t        *line;
    const sluice_core_window_t  *window;

    p = sluice_decision_allocate(request, (2 * conf->rule.count + 1)
                                          * SLUICE_RATE_LIMITING_TEXT);
    if (p == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    line = result->lines;
    tightest = 0;
    least = 0;

    for (i = 0; i < conf->rule.count; i++) {
        window = &conf->rule.windows[i];
        header = &sluice_rate_limiting_headers[2 * window->period];

        left = conf->rates[i].number - (double) taken->used[i];
        left = left > 0 ? left : 0;

        line->header = header;
        line->value.data = (unsigned char *) p;
        line->value.length = conf->rates[i].length;
        line++;

        /* a copy, of all there may be: logs read it when conf may be gone */

        memcpy(p, conf->rates[i].text, SLUICE_RATE_LIMITING_TEXT);
        p += conf->rates[i].length;

        line->header = header + 1;
        line->value.data = (unsigned char *) p;
        p = sluice_rate_limiting_print(p, left);
        line->value.length = (size_t) (p - (char *) line->value.data);
        line++;

        /* of several the longest, since that keeps the client waiting */

        if (i == 0 || left <= least) {
            least = left;
            tightest = i;
        }
    }

    line = sluice_rate_limiting_report_tightest(&result->lines[2 * tightest],
                                                line, p,
                                                &conf->rule.windows[tightest],
                                                (uint64_t) request->now);

    if (is_refused) {
        line->header =
             &sluice_rate_limiting_headers[SLUICE_RATE_LIMITING_RETRY_AFTER];
        line->value = line[-1].value;
        line++;
    }

    result->lines_count = (uint32_t) (line - result->lines);

    return SLUICE_FACT_OK;
}


/* Without a period in their names; the reset is written to p, in seconds. */

static sluice_header_line_t *
sluice_rate_limiting_report_tightest(const sluice_header_line_t *tight,
    sluice_header_line_t *line, char *p, const sluice_core_window_t *window,
    uint64_t now)
{
    uint64_t          reset;
    sluice_header_t  *header;

    header = sluice_rate_limiting_headers;

    line->header = &header[SLUICE_RATE_LIMITING_LIMIT];
    line->value = tight[0].value;
    line++;

    line->header = &header[SLUICE_RATE_LIMITING_REMAINING];
    line->value = tight[1].value;
    line++;

    reset = window->finish > now ? window->finish - now : 1;

    line->header = &header[SLUICE_RATE_LIMITING_RESET];
    line->value.data = (unsigned char *) p;
    line->value.length = (size_t) (sluice_core_decimal(p, reset) - p);
    line++;

    return line;
}
