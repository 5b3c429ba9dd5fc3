
/*
 * Counts requests, in the log phase of servers with "sluice_metrics on".
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_metrics.h"
#include "ngx_http_sluice_times.h"
#include "ngx_http_sluice_tries.h"
#include "ngx_sluice_metrics.h"


#define NGX_HTTP_SLUICE_METRICS_BITS  16       /* of times that have buckets */


/* Of one request. */

typedef struct {
    ngx_uint_t               class;            /* of its status; 0: none */
    uint64_t                 received;
    uint64_t                 sent;
    ngx_uint_t               total_bucket;
    ngx_uint_t               upstream_bucket;
    ngx_uint_t               gateway_bucket;
    ngx_http_sluice_times_t  times;
} ngx_http_sluice_metrics_sample_t;


static void ngx_http_sluice_metrics_read(ngx_http_request_t *r,
    ngx_http_sluice_metrics_sample_t *sample);
static void ngx_http_sluice_metrics_targets(ngx_http_request_t *r);
static void ngx_http_sluice_metrics_entities(const ngx_http_sluice_ctx_t *ctx,
    const ngx_http_sluice_metrics_sample_t *sample);
static void ngx_http_sluice_metrics_add(sluice_metrics_line_t *line,
    const ngx_http_sluice_metrics_sample_t *sample);

/* Upper bounds in ms; docs/metrics.md has them in seconds. */

static const uint32_t  ngx_http_sluice_metrics_bounds[SLUICE_METRICS_BUCKETS] =
{
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000,
    NGX_MAX_UINT32_VALUE
};


/* By the bits of a time: the bucket of the least that has so many. */

static const uint8_t
    ngx_http_sluice_metrics_first[NGX_HTTP_SLUICE_METRICS_BITS + 1] =
{
    0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14
};


ngx_int_t
ngx_http_sluice_metrics_handler(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t             *ctx;
    ngx_http_sluice_metrics_conf_t    *mcf;
    ngx_http_sluice_metrics_sample_t   sample;

    mcf = ngx_http_sluice_srv_conf(r, metrics);

    if (!mcf->enabled) {
        return NGX_OK;
    }

    ngx_http_sluice_metrics_read(r, &sample);
    ngx_http_sluice_metrics_add(&ngx_sluice_metrics_shard->node, &sample);

    if (sample.times.tries > 1) {
        ngx_sluice_metrics_add(SLUICE_METRICS_RETRIES, sample.times.tries - 1);
    }

    ctx = ngx_http_sluice_ctx(r);

    if (ctx && ctx->tries) {
        ngx_http_sluice_metrics_targets(r);
    }

    if (ctx && ctx->routed && sluice_metrics_limit()) {
        ngx_http_sluice_metrics_entities(ctx, &sample);
    }

    return NGX_OK;
}


static ngx_inline ngx_uint_t
ngx_http_sluice_metrics_bucket(uint32_t ms)
{
    uint32_t    seen;
    ngx_uint_t  i;

    seen = ngx_min(ms, (1u << NGX_HTTP_SLUICE_METRICS_BITS) - 1) | 1;
    i = ngx_http_sluice_metrics_first[32 - __builtin_clz(seen)];

    return i + (ms > ngx_http_sluice_metrics_bounds[i]);
}


static void
ngx_http_sluice_metrics_read(ngx_http_request_t *r,
    ngx_http_sluice_metrics_sample_t *sample)
{
    ngx_uint_t                status;
    ngx_http_sluice_times_t  *times;

    status = r->err_status ? r->err_status : r->headers_out.status;

    sample->class = status / 100;
    sample->received = (uint64_t) r->request_length;
    sample->sent = (uint64_t) r->connection->sent;

    times = &sample->times;
    ngx_http_sluice_times(r, times);

    sample->total_bucket = ngx_http_sluice_metrics_bucket(times->total);
    sample->upstream_bucket = ngx_http_sluice_metrics_bucket(times->upstream);
    sample->gateway_bucket = ngx_http_sluice_metrics_bucket(times->gateway);
}


_Static_assert((int) NGX_HTTP_SLUICE_TRY_ERRORS <= SLUICE_METRICS_REASONS,
               "each reason has a place");

/* Of a request with tries that have failed. */

static void
ngx_http_sluice_metrics_targets(ngx_http_request_t *r)
{
    ngx_uint_t                  i, error;
    ngx_http_upstream_state_t  *state;

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        error = ngx_http_sluice_tries_error(r, i);

        if (error != NGX_HTTP_SLUICE_TRY_OK && state[i].peer) {
            ngx_sluice_metrics_fail(state[i].peer, error, 1);
        }
    }
}


/* In words; NULL: there is none of this number. */

const char *
sluice_metrics_reason(int reason)
{
    return reason < NGX_HTTP_SLUICE_TRY_ERRORS
           ? ngx_http_sluice_tries_word((ngx_uint_t) reason) : NULL;
}


/* The lines of the request's route and service, where those have some. */

static void
ngx_http_sluice_metrics_entities(const ngx_http_sluice_ctx_t *ctx,
    const ngx_http_sluice_metrics_sample_t *sample)
{
    ngx_uint_t              kind, missing;
    sluice_metrics_line_t  *line;

    const struct {
        uint32_t  slot;
        uint32_t  generation;
    } of[SLUICE_METRICS_KINDS] = {
        [SLUICE_METRICS_ROUTE] = { ctx->route, ctx->route_generation },
        [SLUICE_METRICS_SERVICE] = { ctx->service_slot,
                                     ctx->service_generation }
    };

    missing = 0;

    for (kind = 0; kind < SLUICE_METRICS_KINDS; kind++) {

        if (of[kind].slot == SLUICE_CORE_NOBODY) {
            continue;
        }

        line = ngx_sluice_metrics_line(kind, of[kind].slot,
                                       of[kind].generation);

        if (line == NULL) {
            missing = 1;
            continue;
        }

        ngx_http_sluice_metrics_add(line, sample);
    }

    if (missing) {
        ngx_sluice_metrics_add(SLUICE_METRICS_UNNAMED, 1);
    }
}


static void
ngx_http_sluice_metrics_add(sluice_metrics_line_t *line,
    const ngx_http_sluice_metrics_sample_t *sample)
{
    if (sample->class - 1 < SLUICE_METRICS_CLASSES) {
        line->answered[sample->class - 1]++;

    } else {
        line->unanswered++;
    }

    line->received += sample->received;
    line->sent += sample->sent;

    line->total.buckets[sample->total_bucket]++;
    line->total.sum += sample->times.total;
    line->gateway.buckets[sample->gateway_bucket]++;
    line->gateway.sum += sample->times.gateway;

    if (sample->times.tries) {
        line->upstream.buckets[sample->upstream_bucket]++;
        line->upstream.sum += sample->times.upstream;
    }
}
