
/*
 * The line of the access log in JSON: docs/logs.md has its fields.  They are
 * always the same, in this order; what a request has not is null.
 *
 * nginx's log module writes the line where it belongs; its own formats with
 * escape=json cost four times as much, and pass on bytes that are no UTF-8.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_times.h"
#include "ngx_http_sluice_tries.h"
#include "uuid.h"


static void ngx_http_sluice_log_line_request(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_line_time(ngx_http_sluice_log_t *log);
static void ngx_http_sluice_log_line_entities(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_line_named(ngx_http_sluice_log_t *log,
    ngx_http_sluice_named_t *named);
static void ngx_http_sluice_log_line_name(ngx_http_sluice_log_t *log,
    ngx_str_t *name);
static void ngx_http_sluice_log_line_tries(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_line_ms(ngx_http_sluice_log_t *log,
    ngx_msec_t ms);
static void ngx_http_sluice_log_line_tls(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_line_text(ngx_http_sluice_log_t *log,
    const char *text);
static void ngx_http_sluice_log_line_times(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);


static ngx_http_sluice_log_t  ngx_http_sluice_log_line_buffer;

ngx_http_sluice_log_name(line_id, "sluice_request_id");


ngx_str_t
ngx_http_sluice_log_line(ngx_http_request_t *r)
{
    ngx_http_sluice_log_t  *log;

    log = &ngx_http_sluice_log_line_buffer;
    ngx_http_sluice_log_begin(log);

    ngx_http_sluice_log_text(log, "{");
    ngx_http_sluice_log_line_request(log, r);
    ngx_http_sluice_log_line_entities(log, r);
    ngx_http_sluice_log_line_tries(log, r);
    ngx_http_sluice_log_line_tls(log, r);
    ngx_http_sluice_log_line_times(log, r);
    ngx_http_sluice_log_text(log, "}");

    return ngx_http_sluice_log_copy(log, r);
}


static void
ngx_http_sluice_log_line_request(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_log_line_time(log);

    ngx_http_sluice_log_text(log, ",\"request_id\":");
    ngx_http_sluice_log_utf8(log, ngx_http_sluice_log_of(r, line_id));

    ngx_http_sluice_log_text(log, ",\"client\":");
    ngx_http_sluice_log_utf8(log, r->connection->addr_text);

    ngx_http_sluice_log_text(log, ",\"method\":");
    ngx_http_sluice_log_utf8(log, ngx_http_sluice_log_method(r));

    ngx_http_sluice_log_text(log, ",\"host\":");
    ngx_http_sluice_log_utf8(log, r->headers_in.server);

    ngx_http_sluice_log_text(log, ",\"path\":");
    ngx_http_sluice_log_utf8(log, ngx_http_sluice_log_target(log, r));

    ngx_http_sluice_log_text(log, ",\"status\":");
    ngx_http_sluice_log_number(log, ngx_http_sluice_log_status(r));

    ngx_http_sluice_log_text(log, ",\"bytes\":");
    ngx_http_sluice_log_number(log, r->connection->sent);

    if (ngx_http_sluice_log_is_proxied(r)) {
        ngx_http_sluice_log_text(log, ",\"source\":\"upstream\"");

    } else {
        ngx_http_sluice_log_text(log, ",\"source\":\"gateway\"");
    }
}


/* "2026-11-22T20:00:00.123+00:00": nginx's time, and the milliseconds */

static void
ngx_http_sluice_log_line_time(ngx_http_sluice_log_t *log)
{
    u_char      *zone;
    ngx_uint_t   ms;
    ngx_time_t  *now;

    const size_t  seconds = sizeof("2026-11-22T20:00:00") - 1;

    now = ngx_timeofday();
    ms = now->msec;

    ngx_http_sluice_log_text(log, "\"time\":\"");

    if (!ngx_http_sluice_log_has_room(log, ngx_cached_http_log_iso8601.len
                                           + sizeof(".123") - 1))
    {
        return;
    }

    zone = ngx_cached_http_log_iso8601.data + seconds;

    log->pos = ngx_cpymem(log->pos, ngx_cached_http_log_iso8601.data, seconds);
    *log->pos++ = '.';
    *log->pos++ = '0' + ms / 100;
    *log->pos++ = '0' + ms / 10 % 10;
    *log->pos++ = '0' + ms % 10;
    log->pos = ngx_cpymem(log->pos, zone,
                          ngx_cached_http_log_iso8601.len - seconds);

    ngx_http_sluice_log_text(log, "\"");
}


static void
ngx_http_sluice_log_line_entities(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t    *ctx;
    ngx_http_sluice_names_t  *names;

    ctx = ngx_http_sluice_ctx(r);
    names = ctx ? ctx->names : NULL;

    ngx_http_sluice_log_text(log, ",\"route\":");
    ngx_http_sluice_log_line_named(log, names ? &names->route : NULL);

    ngx_http_sluice_log_text(log, ",\"service\":");
    ngx_http_sluice_log_line_named(log,
                             names && ctx->service_slot != SLUICE_CORE_NOBODY
                             ? &names->service : NULL);

    if (ctx == NULL || (ctx->consumer.len == 0 && ctx->username.len == 0)) {
        ngx_http_sluice_log_text(log, ",\"consumer\":null");
        return;
    }

    ngx_http_sluice_log_text(log, ",\"consumer\":{\"id\":");
    ngx_http_sluice_log_line_name(log, &ctx->consumer);
    ngx_http_sluice_log_text(log, ",\"username\":");
    ngx_http_sluice_log_line_name(log, &ctx->username);
    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_line_named(ngx_http_sluice_log_t *log,
    ngx_http_sluice_named_t *named)
{
    if (named == NULL) {
        ngx_http_sluice_log_text(log, "null");
        return;
    }

    ngx_http_sluice_log_text(log, "{\"id\":\"");

    if (ngx_http_sluice_log_has_room(log, SLUICE_UUID_TEXT)) {
        sluice_uuid_write((char *) log->pos, named->id);
        log->pos += SLUICE_UUID_TEXT;
    }

    ngx_http_sluice_log_text(log, "\",\"name\":");
    ngx_http_sluice_log_line_name(log, &named->name);
    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_line_name(ngx_http_sluice_log_t *log, ngx_str_t *name)
{
    if (name->len == 0) {
        ngx_http_sluice_log_text(log, "null");
        return;
    }

    ngx_http_sluice_log_utf8(log, *name);
}


static void
ngx_http_sluice_log_line_tries(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_str_t                   host;
    ngx_int_t                   port;
    ngx_uint_t                  i, any;
    ngx_http_upstream_state_t  *state;

    any = 0;

    ngx_http_sluice_log_text(log, ",\"tries\":[");

    for (i = 0; r->upstream_states && i < r->upstream_states->nelts; i++) {

        state = r->upstream_states->elts;
        state += i;

        if (state->peer == NULL
            || !ngx_http_sluice_log_address(state->peer, &host, &port))
        {
            continue;
        }

        if (any) {
            ngx_http_sluice_log_text(log, ",");
        }

        any = 1;

        ngx_http_sluice_log_text(log, "{\"address\":");
        ngx_http_sluice_log_utf8(log, *state->peer);

        ngx_http_sluice_log_text(log, ",\"status\":");

        if (state->status) {
            ngx_http_sluice_log_number(log, state->status);

        } else {
            ngx_http_sluice_log_text(log, "null");
        }

        ngx_http_sluice_log_text(log, ",\"error\":");
        ngx_http_sluice_log_line_text(log,
              ngx_http_sluice_tries_word(ngx_http_sluice_tries_error(r, i)));

        ngx_http_sluice_log_text(log, ",\"connect_ms\":");
        ngx_http_sluice_log_line_ms(log, state->connect_time);
        ngx_http_sluice_log_text(log, ",\"header_ms\":");
        ngx_http_sluice_log_line_ms(log, state->header_time);
        ngx_http_sluice_log_text(log, ",\"response_ms\":");
        ngx_http_sluice_log_line_ms(log, state->response_time);
        ngx_http_sluice_log_text(log, "}");
    }

    ngx_http_sluice_log_text(log, "]");
}


/* nginx has -1 where it did not come so far */

static void
ngx_http_sluice_log_line_ms(ngx_http_sluice_log_t *log, ngx_msec_t ms)
{
    if (ms == (ngx_msec_t) -1) {
        ngx_http_sluice_log_text(log, "null");
        return;
    }

    ngx_http_sluice_log_number(log, ms);
}


static void
ngx_http_sluice_log_line_tls(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    SSL  *ssl;

    if (r->connection->ssl == NULL) {
        ngx_http_sluice_log_text(log, ",\"tls\":null");
        return;
    }

    ssl = r->connection->ssl->connection;

    ngx_http_sluice_log_text(log, ",\"tls\":{\"version\":");
    ngx_http_sluice_log_line_text(log, SSL_get_version(ssl));

    ngx_http_sluice_log_text(log, ",\"sni\":");
    ngx_http_sluice_log_line_text(log,
                           SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_line_text(ngx_http_sluice_log_t *log, const char *text)
{
    ngx_str_t  name;

    name.data = (u_char *) text;
    name.len = text ? ngx_strlen(text) : 0;

    ngx_http_sluice_log_line_name(log, &name);
}


static void
ngx_http_sluice_log_line_times(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_times_t  times;

    ngx_http_sluice_times(r, &times);

    ngx_http_sluice_log_text(log, ",\"total_ms\":");
    ngx_http_sluice_log_number(log, times.total);
    ngx_http_sluice_log_text(log, ",\"upstream_ms\":");

    if (times.tries) {
        ngx_http_sluice_log_number(log, times.upstream);

    } else {
        ngx_http_sluice_log_text(log, "null");
    }

    ngx_http_sluice_log_text(log, ",\"gateway_ms\":");
    ngx_http_sluice_log_number(log, times.gateway);
}
