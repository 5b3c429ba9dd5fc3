
/*
 * What is written about a request once it is answered, in Kong's layout.
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_log.h"


static void ngx_http_sluice_log_values(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_request(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_tls(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_response(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static ngx_uint_t ngx_http_sluice_log_tries(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r);
static void ngx_http_sluice_log_upstream(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_uint_t is_asked);
static void ngx_http_sluice_log_latencies(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_uint_t is_proxied);
static void ngx_http_sluice_log_clean(ngx_http_sluice_log_t *log);


static ngx_http_sluice_log_t  ngx_http_sluice_log;

ngx_http_sluice_log_name(via, "sluice_response_via");
ngx_http_sluice_log_name(id, "sluice_request_id");
ngx_http_sluice_log_name(scheme, "scheme");
ngx_http_sluice_log_name(host, "host");
ngx_http_sluice_log_name(port, "server_port");
ngx_http_sluice_log_name(protocol, "ssl_protocol");
ngx_http_sluice_log_name(cipher, "ssl_cipher");
ngx_http_sluice_log_name(verify, "ssl_client_verify");
ngx_http_sluice_log_name(uri, "sluice_uri");
ngx_http_sluice_log_name(upstream_status, "upstream_status");
ngx_http_sluice_log_name(proxy_ms, "sluice_proxy_ms");


/*
 * Writes the entry of a request.  who: members about who asks, where only the
 * caller knows them (",\"consumer\":{...}"); of length 0 otherwise.
 * is_edited: with what plugins in Lua have changed of it.  entry is good until
 * the next call.  NGX_OK, NGX_ERROR: no memory.
 */

int
sluice_log_entry(ngx_http_request_t *r, const char *who, size_t length,
    int is_edited, sluice_core_text_t *entry)
{
    ngx_str_t               via;
    ngx_uint_t              is_asked, is_proxied, is_ascii;
    ngx_http_sluice_log_t  *log;

    log = &ngx_http_sluice_log;
    ngx_http_sluice_log_begin(log);

    ngx_http_sluice_log_text(log, "{\"request\":{");
    ngx_http_sluice_log_request(log, r);
    ngx_http_sluice_log_text(log, "},\"response\":{");
    ngx_http_sluice_log_response(log, r);
    ngx_http_sluice_log_text(log, "}");

    is_asked = ngx_http_sluice_log_tries(log, r);

    /* the gateway empties it where it answers itself */

    via = ngx_http_sluice_log_of(r, via);
    is_proxied = (is_asked && via.len);

    ngx_http_sluice_log_upstream(log, r, is_asked);

    ngx_http_sluice_log_text(log, ",\"latencies\":{");
    ngx_http_sluice_log_latencies(log, r, is_proxied);

    ngx_http_sluice_log_text(log, "},\"client_ip\":");
    ngx_http_sluice_log_string(log, r->connection->addr_text);

    ngx_http_sluice_log_text(log, ",\"started_at\":");
    ngx_http_sluice_log_number(log, (int64_t) r->start_sec * 1000
                                    + r->start_msec);

    if (is_proxied) {
        ngx_http_sluice_log_text(log, ",\"source\":\"upstream\"");

    } else {
        ngx_http_sluice_log_text(log, ",\"source\":\"kong\"");
    }

    ngx_http_sluice_log_values(log, r);

    is_ascii = ngx_http_sluice_log_is_ascii(log);

    ngx_http_sluice_log_entities(log, r, who, length);
    ngx_http_sluice_log_text(log, "}");

    if (log->failed) {
        return NGX_ERROR;
    }

    if (!is_ascii) {
        ngx_http_sluice_log_clean(log);
    }

    if (is_edited) {
        ngx_http_sluice_log_edits(log, r);

        if (log->failed) {
            return NGX_ERROR;
        }
    }

    entry->data = (const char *) log->start;
    entry->length = (uint32_t) (log->pos - log->start);

    return NGX_OK;
}


/* Those of plugins. */

static void
ngx_http_sluice_log_values(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t     *ctx;
    ngx_http_sluice_logged_t  *value;

    ctx = ngx_http_sluice_ctx(r);

    for (value = ctx ? ctx->log_values : NULL; value; value = value->next) {
        ngx_http_sluice_log_text(log, ",");
        ngx_http_sluice_log_string(log, value->name);
        ngx_http_sluice_log_text(log, ":");
        ngx_http_sluice_log_string(log, value->value);
    }
}


static void
ngx_http_sluice_log_request(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    ngx_str_t  uri;

    uri = ngx_http_sluice_log_redact(log, r, &r->unparsed_uri);

    ngx_http_sluice_log_text(log, "\"id\":");
    ngx_http_sluice_log_string(log, ngx_http_sluice_log_of(r, id));

    ngx_http_sluice_log_text(log, ",\"uri\":");
    ngx_http_sluice_log_string(log, uri);

    ngx_http_sluice_log_text(log, ",\"url\":\"");
    ngx_http_sluice_log_escape(log, ngx_http_sluice_log_of(r, scheme));
    ngx_http_sluice_log_text(log, ":\\/\\/");
    ngx_http_sluice_log_escape(log, ngx_http_sluice_log_of(r, host));
    ngx_http_sluice_log_text(log, ":");
    ngx_http_sluice_log_escape(log, ngx_http_sluice_log_of(r, port));
    ngx_http_sluice_log_escape(log, uri);

    ngx_http_sluice_log_text(log, "\",\"method\":");
    ngx_http_sluice_log_string(log, ngx_http_sluice_log_method(r));

    ngx_http_sluice_log_text(log, ",\"size\":");
    ngx_http_sluice_log_number(log, r->request_length);

    if (r->connection->ssl) {
        ngx_http_sluice_log_tls(log, r);
    }

    ngx_http_sluice_log_text(log, ",");
    ngx_http_sluice_log_parameters(log, r);

    ngx_http_sluice_log_text(log, ",");
    ngx_http_sluice_log_request_headers(log, r);
}


static void
ngx_http_sluice_log_tls(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    ngx_http_sluice_log_text(log, ",\"tls\":{\"version\":");
    ngx_http_sluice_log_string(log, ngx_http_sluice_log_of(r, protocol));

    ngx_http_sluice_log_text(log, ",\"cipher\":");
    ngx_http_sluice_log_string(log, ngx_http_sluice_log_of(r, cipher));

    ngx_http_sluice_log_text(log, ",\"client_verify\":");
    ngx_http_sluice_log_string(log, ctx && ctx->client_verify.len
                                    ? ctx->client_verify
                                    : ngx_http_sluice_log_of(r, verify));

    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_response(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_log_text(log, "\"status\":");
    ngx_http_sluice_log_number(log, ngx_http_sluice_log_status(r));

    ngx_http_sluice_log_text(log, ",\"size\":");
    ngx_http_sluice_log_number(log, r->connection->sent);

    ngx_http_sluice_log_text(log, ",");
    ngx_http_sluice_log_response_headers(log, r);
}


/* whether a peer was asked; what those that failed ended with is a status */

static ngx_uint_t
ngx_http_sluice_log_tries(ngx_http_sluice_log_t *log, ngx_http_request_t *r)
{
    ngx_int_t                   port;
    ngx_str_t                   host;
    ngx_uint_t                  i, any;
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL) {
        return 0;
    }

    any = 0;
    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {

        if (state[i].peer == NULL
            || !ngx_http_sluice_log_address(state[i].peer, &host, &port))
        {
            continue;
        }

        if (any) {
            ngx_http_sluice_log_text(log, ",{\"ip\":");

        } else {
            ngx_http_sluice_log_text(log, ",\"tries\":[{\"ip\":");
        }

        any = 1;

        ngx_http_sluice_log_string(log, host);
        ngx_http_sluice_log_text(log, ",\"port\":");
        ngx_http_sluice_log_number(log, port);

        if (i + 1 < r->upstream_states->nelts) {
            ngx_http_sluice_log_text(log, ",\"state\":\"failed\"");

            if (state[i].status) {
                ngx_http_sluice_log_text(log, ",\"code\":");
                ngx_http_sluice_log_number(log, state[i].status);
            }
        }

        ngx_http_sluice_log_text(log, "}");
    }

    if (any) {
        ngx_http_sluice_log_text(log, "]");
    }

    return any;
}


static void
ngx_http_sluice_log_upstream(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_uint_t is_asked)
{
    ngx_str_t  text;

    ngx_str_null(&text);

    if (is_asked) {
        text = ngx_http_sluice_log_of(r, uri);
        text = ngx_http_sluice_log_redact(log, r, &text);
    }

    ngx_http_sluice_log_text(log, ",\"upstream_uri\":");
    ngx_http_sluice_log_string(log, text);

    ngx_http_sluice_log_text(log, ",\"upstream_status\":");
    ngx_http_sluice_log_string(log,
                               ngx_http_sluice_log_of(r, upstream_status));
}


/*
 * Milliseconds: of the gateway before it asked the upstream, or for its own
 * response; of the last upstream until its head came (-1: there was none); of
 * that one's body; of all.
 */

static void
ngx_http_sluice_log_latencies(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r, ngx_uint_t is_proxied)
{
    ngx_int_t                   kong;
    ngx_str_t                   text;
    ngx_uint_t                  i;
    ngx_time_t                 *tp;
    ngx_msec_int_t              total, asked, head, receive;
    ngx_http_upstream_state_t  *state;

    tp = ngx_timeofday();

    total = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                              + (tp->msec - r->start_msec));
    total = ngx_max(total, 0);

    asked = 0;
    head = -1;
    receive = 0;

    if (r->upstream_states && r->upstream_states->nelts) {

        state = r->upstream_states->elts;

        for (i = 0; i < r->upstream_states->nelts; i++) {
            if (state[i].response_time != (ngx_msec_t) -1) {
                asked += state[i].response_time;
            }
        }

        state = &state[i - 1];

        if (state->header_time != (ngx_msec_t) -1) {
            head = state->header_time;

            if (state->response_time != (ngx_msec_t) -1) {
                receive = state->response_time - state->header_time;
            }
        }
    }

    kong = NGX_ERROR;

    if (is_proxied) {
        text = ngx_http_sluice_log_of(r, proxy_ms);
        kong = ngx_atoi(text.data, text.len);
    }

    if (kong == NGX_ERROR) {
        kong = ngx_max(total - asked, 0);
    }

    ngx_http_sluice_log_text(log, "\"kong\":");
    ngx_http_sluice_log_number(log, kong);
    ngx_http_sluice_log_text(log, ",\"proxy\":");
    ngx_http_sluice_log_number(log, head);
    ngx_http_sluice_log_text(log, ",\"receive\":");
    ngx_http_sluice_log_number(log, receive);
    ngx_http_sluice_log_text(log, ",\"request\":");
    ngx_http_sluice_log_number(log, total);
}


/* JSON is UTF-8; what a client sends need not be. */

static void
ngx_http_sluice_log_clean(ngx_http_sluice_log_t *log)
{
    u_char  *p;

    if (sluice_json_is_utf8((char *) log->start, log->pos - log->start)) {
        return;
    }

    for (p = log->start; p < log->pos; p++) {
        if (*p >= 0x80) {
            *p = '?';
        }
    }
}
