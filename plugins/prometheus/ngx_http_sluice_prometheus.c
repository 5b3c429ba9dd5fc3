
/*
 * The prometheus plugin in nginx: counts requests in series of Kong's labels
 * (ngx_sluice_series.h), when they have ended.  plugins/prometheus/metrics.lua
 * says what a scrape shows of them.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_plugin.h"
#include "ngx_http_sluice_times.h"
#include "ngx_sluice_series.h"
#include "sluice_prometheus.h"
#include "uuid.h"


/* Of one request: what it is counted by, and its labels. */

typedef struct {
    ngx_http_request_t    *request;
    sluice_series_t       *series;
    ngx_uint_t             is_proxied;       /* the client got a service's */
    ngx_uint_t             lacks;            /* a line of its own somewhere */
    char                   id[SLUICE_UUID_TEXT];
    char                   status[NGX_INT_T_LEN];

    sluice_core_text_t     service;
    sluice_core_text_t     route;
    sluice_core_text_t     consumer;
} ngx_http_sluice_prometheus_t;


static void ngx_http_sluice_prometheus_finish(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static void ngx_http_sluice_prometheus_name(ngx_http_sluice_prometheus_t *p,
    const ngx_http_sluice_names_t *names);
static void ngx_http_sluice_prometheus_status(
    ngx_http_sluice_prometheus_t *p);
static void ngx_http_sluice_prometheus_bandwidth(
    ngx_http_sluice_prometheus_t *p);
static void ngx_http_sluice_prometheus_latency(
    ngx_http_sluice_prometheus_t *p);
static uint64_t *ngx_http_sluice_prometheus_line(
    ngx_http_sluice_prometheus_t *p, int kind,
    const sluice_core_text_t *values, uint32_t count);
static void ngx_http_sluice_prometheus_observe(uint64_t *numbers,
    const uint32_t *bounds, ngx_uint_t count, uint64_t ms);


static const uint32_t
    ngx_http_sluice_prometheus_kong[SLUICE_PROMETHEUS_KONG_BOUNDS] =
{
    1, 2, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 750, 1000, 3000, 6000
};

static const uint32_t
    ngx_http_sluice_prometheus_upstream[SLUICE_PROMETHEUS_UPSTREAM_BOUNDS] =
{
    25, 50, 80, 100, 250, 400, 700, 1000, 2000, 5000, 10000, 30000, 60000
};


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_prometheus = {
    .name = ngx_string("prometheus"),
    .decision = &sluice_prometheus,
    .finish = ngx_http_sluice_prometheus_finish,
    .finish_size = sizeof(sluice_prometheus_t)
};


static void
ngx_http_sluice_prometheus_finish(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    uint32_t                       flags;
    ngx_http_sluice_prometheus_t   p;

    flags = ((sluice_prometheus_t *) data)->flags;
    p.series = ngx_sluice_series();

    if (p.series == NULL || ctx->names == NULL) {
        return;
    }

    p.request = r;
    p.lacks = 0;

    /* also where that is a response of an error */

    p.is_proxied = (r->upstream && r->upstream->header_sent);

    ngx_http_sluice_prometheus_name(&p, ctx->names);

    p.consumer.data = NULL;
    p.consumer.length = 0;

    if ((flags & SLUICE_PROMETHEUS_CONSUMER) && ctx->consumer.len) {
        p.consumer.data = (const char *) ctx->username.data;
        p.consumer.length = (uint32_t) ctx->username.len;
    }

    if (flags & SLUICE_PROMETHEUS_BANDWIDTH) {
        ngx_http_sluice_prometheus_bandwidth(&p);
    }

    if (flags & SLUICE_PROMETHEUS_STATUS) {
        ngx_http_sluice_prometheus_status(&p);
    }

    if (flags & SLUICE_PROMETHEUS_LATENCY) {
        ngx_http_sluice_prometheus_latency(&p);
    }

    if (p.lacks) {
        sluice_series_lack(p.series);
    }
}


/* As Kong: the service's name or host, the route's name or id. */

static void
ngx_http_sluice_prometheus_name(ngx_http_sluice_prometheus_t *p,
    const ngx_http_sluice_names_t *names)
{
    const ngx_str_t  *service;

    service = names->service.name.len ? &names->service.name
                                      : &names->service.host;

    p->service.data = (const char *) service->data;
    p->service.length = (uint32_t) service->len;

    p->route.data = (const char *) names->route.name.data;
    p->route.length = (uint32_t) names->route.name.len;

    if (p->route.length == 0) {
        sluice_uuid_write(p->id, names->route.id);

        p->route.data = p->id;
        p->route.length = SLUICE_UUID_TEXT;
    }
}


static void
ngx_http_sluice_prometheus_status(ngx_http_sluice_prometheus_t *p)
{
    uint64_t            *numbers;
    sluice_core_text_t   values[5];

    values[0] = p->service;
    values[1] = p->route;
    values[2].data = p->status;
    values[2].length = (uint32_t)
                       (ngx_sprintf((u_char *) p->status, "%ui",
                                    ngx_http_sluice_log_status(p->request))
                        - (u_char *) p->status);
    values[3].data = p->is_proxied ? "service" : "kong";
    values[3].length = p->is_proxied ? sizeof("service") - 1
                                     : sizeof("kong") - 1;
    values[4] = p->consumer;

    numbers = ngx_http_sluice_prometheus_line(p, SLUICE_SERIES_REQUESTS,
                                              values, 5);
    sluice_series_add(numbers, 1);
}


static void
ngx_http_sluice_prometheus_bandwidth(ngx_http_sluice_prometheus_t *p)
{
    uint64_t            *numbers;
    sluice_core_text_t   values[3];

    values[0] = p->service;
    values[1] = p->route;
    values[2] = p->consumer;

    numbers = ngx_http_sluice_prometheus_line(p, SLUICE_SERIES_BYTES, values,
                                              3);
    sluice_series_add(&numbers[0], (uint64_t) p->request->request_length);
    sluice_series_add(&numbers[1], (uint64_t) p->request->connection->sent);
}


static void
ngx_http_sluice_prometheus_latency(ngx_http_sluice_prometheus_t *p)
{
    uint64_t                   *numbers;
    ngx_http_request_t         *r;
    sluice_core_text_t          values[2];
    ngx_http_sluice_times_t     times;
    ngx_http_upstream_state_t  *state;

    values[0] = p->service;
    values[1] = p->route;

    numbers = ngx_http_sluice_prometheus_line(p, SLUICE_SERIES_TIMES, values,
                                              2);
    r = p->request;
    ngx_http_sluice_times(r, &times);

    ngx_http_sluice_prometheus_observe(&numbers[SLUICE_PROMETHEUS_KONG],
                                       ngx_http_sluice_prometheus_kong,
                                       SLUICE_PROMETHEUS_KONG_BOUNDS,
                                       times.gateway);
    ngx_http_sluice_prometheus_observe(&numbers[SLUICE_PROMETHEUS_REQUEST],
                                       ngx_http_sluice_prometheus_upstream,
                                       SLUICE_PROMETHEUS_UPSTREAM_BOUNDS,
                                       times.total);

    if (!p->is_proxied || times.tries == 0) {
        return;
    }

    /* of the last try, until its head came */

    state = r->upstream_states->elts;
    state += times.tries - 1;

    if (state->header_time != (ngx_msec_t) -1) {
        ngx_http_sluice_prometheus_observe(
                                          &numbers[SLUICE_PROMETHEUS_UPSTREAM],
                                          ngx_http_sluice_prometheus_upstream,
                                          SLUICE_PROMETHEUS_UPSTREAM_BOUNDS,
                                          state->header_time);
    }
}


static uint64_t *
ngx_http_sluice_prometheus_line(ngx_http_sluice_prometheus_t *p, int kind,
    const sluice_core_text_t *values, uint32_t count)
{
    uint32_t  line;

    line = sluice_series_find(p->series, kind, values, count);
    p->lacks |= (line == 0);

    return sluice_series_numbers(p->series, kind, line);
}


static void
ngx_http_sluice_prometheus_observe(uint64_t *numbers, const uint32_t *bounds,
    ngx_uint_t count, uint64_t ms)
{
    ngx_uint_t  i;

    for (i = 0; i < count && ms > bounds[i]; i++) { /* void */ }

    sluice_series_add(&numbers[i], 1);

    if (ms) {
        sluice_series_add(&numbers[count + 1], ms);
    }
}
