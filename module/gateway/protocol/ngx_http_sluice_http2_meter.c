
/*
 * The frames of clients on their way to nginx (ngx_http_sluice_http2.h).
 */


#include "ngx_http_sluice_http2.h"
#include "ngx_sluice_metrics.h"


#define NGX_HTTP_SLUICE_HTTP2_PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NGX_HTTP_SLUICE_HTTP2_WINDOW   60      /* seconds */
#define NGX_HTTP_SLUICE_HTTP2_FLOOD    1048576     /* bytes, as in nginx */


/* Of a connection, in its pool. */

typedef struct {
    ngx_connection_t          *connection;
    ngx_recv_pt                recv;           /* nginx's */
    ngx_http_v2_connection_t  *h2c;

    time_t                     since;          /* of what is counted */
    ngx_uint_t                 counts[NGX_HTTP_SLUICE_HTTP2_KINDS];
    ngx_uint_t                 streams;        /* that were asked for */
    ngx_uint_t                 refused;        /* of these */
    ngx_uint_t                 closing;
    ngx_event_t                goaway;         /* to be said */

    size_t                     preface;        /* bytes of it that came */
    size_t                     seen;           /* bytes of the head */
    size_t                     left;           /* bytes of the payload */
    u_char                     head[NGX_HTTP_V2_FRAME_HEADER_SIZE];
} ngx_http_sluice_http2_meter_t;


static void ngx_http_sluice_http2_end(void *data);
static ssize_t ngx_http_sluice_http2_recv(ngx_connection_t *c, u_char *buf,
    size_t size);
static ngx_http_sluice_http2_meter_t *ngx_http_sluice_http2_meter(
    ngx_connection_t *c);
static void ngx_http_sluice_http2_begin(ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_refused(
    ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_read(ngx_http_sluice_http2_meter_t *meter,
    u_char *p, u_char *last);
static void ngx_http_sluice_http2_frame(ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_add(ngx_http_sluice_http2_meter_t *meter,
    ngx_uint_t kind, ngx_uint_t n);
static void ngx_http_sluice_http2_close(ngx_http_sluice_http2_meter_t *meter);
static void ngx_http_sluice_http2_goaway(ngx_event_t *event);


ngx_int_t
ngx_http_sluice_http2_watch(ngx_connection_t *c)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_sluice_http2_meter_t  *meter;

    cln = ngx_pool_cleanup_add(c->pool, sizeof(ngx_http_sluice_http2_meter_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    meter = cln->data;
    ngx_memzero(meter, sizeof(ngx_http_sluice_http2_meter_t));

    meter->connection = c;
    meter->recv = c->recv;
    meter->since = ngx_time();

    cln->handler = ngx_http_sluice_http2_end;
    c->recv = ngx_http_sluice_http2_recv;

    return NGX_OK;
}


void
ngx_http_sluice_http2_reset(ngx_connection_t *c)
{
    ngx_http_sluice_http2_meter_t  *meter;

    meter = ngx_http_sluice_http2_meter(c);

    if (meter) {
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_RESETS, 1);
        ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_RESETS, 1);
    }
}


static void
ngx_http_sluice_http2_end(void *data)
{
    ngx_http_sluice_http2_meter_t  *meter = data;

    ngx_http_v2_connection_t  *h2c;

    ngx_http_sluice_http2_refused(meter);

    if (meter->goaway.posted) {
        ngx_delete_posted_event(&meter->goaway);
    }

    h2c = meter->h2c;

    if (h2c && !meter->closing
        && h2c->total_bytes / 8
           > h2c->payload_bytes + NGX_HTTP_SLUICE_HTTP2_FLOOD)
    {
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_CLOSED_FRAMES, 1);
    }
}


static ssize_t
ngx_http_sluice_http2_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
    ssize_t                         n;
    ngx_uint_t                      i;
    ngx_http_sluice_http2_conf_t   *mcf;
    ngx_http_sluice_http2_meter_t  *meter;

    meter = ngx_http_sluice_http2_meter(c);
    ngx_http_sluice_http2_begin(meter);

    n = meter->recv(c, buf, size);

    if (n > 0) {
        ngx_http_sluice_http2_read(meter, buf, buf + n);

        if (ngx_exiting && meter->streams && meter->h2c
            && !meter->h2c->goaway && !meter->closing)
        {
            ngx_http_sluice_http2_close(meter);
        }
    }

    if (!meter->closing) {
        return n;
    }

    mcf = ngx_http_sluice_cycle_conf(ngx_cycle, http2);

    for (i = 0; i < NGX_HTTP_SLUICE_HTTP2_KINDS; i++) {

        if (meter->counts[i] > 2 * mcf->most[i]) {
            return NGX_ERROR;
        }
    }

    return n;
}


/* NULL: there was no memory for one. */

static ngx_http_sluice_http2_meter_t *
ngx_http_sluice_http2_meter(ngx_connection_t *c)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = c->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_sluice_http2_end) {
            return cln->data;
        }
    }

    return NULL;
}


/* nginx has used all that was read before. */

static void
ngx_http_sluice_http2_begin(ngx_http_sluice_http2_meter_t *meter)
{
#if (nginx_version >= 1025001)

    /* until it knows better, a plain connection is one of HTTP/1.1 */

    if (meter->connection->ssl || meter->left || meter->seen
        || meter->streams)
#endif
    {
        meter->h2c = meter->connection->data;
    }

    ngx_http_sluice_http2_refused(meter);

    if (ngx_time() - meter->since >= NGX_HTTP_SLUICE_HTTP2_WINDOW
        && !meter->closing)
    {
        meter->since = ngx_time();
        ngx_memzero(meter->counts, sizeof(meter->counts));
    }
}


static void
ngx_http_sluice_http2_refused(ngx_http_sluice_http2_meter_t *meter)
{
    ngx_uint_t                 known;
    ngx_http_core_loc_conf_t  *clcf;

    known = meter->connection->requests + meter->refused;

    if (meter->streams <= known || meter->h2c == NULL) {
        return;
    }

    clcf = ngx_http_get_module_loc_conf(meter->h2c->http_connection->conf_ctx,
                                        ngx_http_core_module);

    if (meter->closing
        || meter->connection->requests >= clcf->keepalive_requests)
    {
        /* nobody has refused them: they crossed a GOAWAY */

        meter->streams = known;
        return;
    }

    ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_REFUSED,
                           meter->streams - known);
    ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_STREAMS,
                              meter->streams - known);

    meter->refused += meter->streams - known;
}


static void
ngx_http_sluice_http2_read(ngx_http_sluice_http2_meter_t *meter, u_char *p,
    u_char *last)
{
    size_t  n;

    while (meter->preface < sizeof(NGX_HTTP_SLUICE_HTTP2_PREFACE) - 1) {

        if (p == last) {
            return;
        }

        if (*p++ != (u_char) NGX_HTTP_SLUICE_HTTP2_PREFACE[meter->preface++]) {
            meter->connection->recv = meter->recv;
            return;
        }
    }

    while (p < last) {

        if (meter->seen < sizeof(meter->head)) {
            meter->head[meter->seen++] = *p++;

            if (meter->seen < sizeof(meter->head)) {
                continue;
            }

            meter->left = (size_t) meter->head[0] << 16
                          | (size_t) meter->head[1] << 8 | meter->head[2];
        }

        n = ngx_min(meter->left, (size_t) (last - p));
        meter->left -= n;
        p += n;

        if (meter->left == 0) {
            meter->seen = 0;
            ngx_http_sluice_http2_frame(meter);
        }
    }
}


static void
ngx_http_sluice_http2_frame(ngx_http_sluice_http2_meter_t *meter)
{
    switch (meter->head[3]) {

    case NGX_HTTP_V2_HEADERS_FRAME:
        meter->streams++;
        return;

    case NGX_HTTP_V2_RST_STREAM_FRAME:
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_RESETS, 1);
        ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_RESETS, 1);
        return;

    case NGX_HTTP_V2_DATA_FRAME:

        if (meter->head[0] || meter->head[1] || meter->head[2]
            || meter->head[4] & NGX_HTTP_V2_END_STREAM_FLAG)
        {
            return;
        }

        break;

    case NGX_HTTP_V2_PRIORITY_FRAME:
    case NGX_HTTP_V2_SETTINGS_FRAME:
    case NGX_HTTP_V2_PING_FRAME:
    case NGX_HTTP_V2_CONTINUATION_FRAME:
        break;

    default:
        return;
    }

    ngx_http_sluice_http2_add(meter, NGX_HTTP_SLUICE_HTTP2_FRAMES, 1);
}


static void
ngx_http_sluice_http2_add(ngx_http_sluice_http2_meter_t *meter,
    ngx_uint_t kind, ngx_uint_t n)
{
    ngx_http_sluice_http2_conf_t  *mcf;

    mcf = ngx_http_sluice_cycle_conf(ngx_cycle, http2);

    meter->counts[kind] += n;

    if (!meter->closing && meter->counts[kind] > mcf->most[kind]) {
        ngx_sluice_metrics_add(SLUICE_METRICS_HTTP2_CLOSED_RESETS + kind, 1);
        ngx_http_sluice_http2_close(meter);
    }
}


/*
 * When what was read has been used: streams that begin with it would take
 * c->close for themselves, and nginx would end them unanswered.
 */

static void
ngx_http_sluice_http2_close(ngx_http_sluice_http2_meter_t *meter)
{
    ngx_event_t       *event;
    ngx_connection_t  *c;

    meter->closing = 1;

    c = meter->connection;
    event = &meter->goaway;

    if (c->fd != (ngx_socket_t) -1) {
        event->data = c;
        event->log = c->log;
        event->handler = ngx_http_sluice_http2_goaway;
        ngx_post_event(event, &ngx_posted_events);
    }
}


/* As nginx does it to idle connections when a worker leaves. */

static void
ngx_http_sluice_http2_goaway(ngx_event_t *event)
{
    ngx_connection_t  *c;

    c = event->data;

    c->close = 1;
    c->read->handler(c->read);
}
