
/*
 * The plugin correlation-id in nginx: sluice_correlation_id.c decides, and
 * this makes ids.
 */


#include "ngx_http_sluice_decide.h"
#include "decimal.h"
#include "sluice_correlation_id.h"
#include "uuid.h"

#include <sys/random.h>


#define NGX_HTTP_SLUICE_CORRELATION_ID_BYTES  16

/* Of one call into the kernel, which interrupts none of 256 bytes. */
#define NGX_HTTP_SLUICE_CORRELATION_ID_DRAWN  16


typedef struct {
    sluice_correlation_id_own_t   plain;     /* the first: decide() calls it */
    ngx_http_request_t           *request;
} ngx_http_sluice_correlation_id_own_t;


static ngx_int_t ngx_http_sluice_correlation_id_init(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_sluice_correlation_id_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf);
static ngx_int_t ngx_http_sluice_correlation_id_head(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf);
static int ngx_http_sluice_correlation_id_make(
    sluice_correlation_id_own_t *plain, uint32_t generator,
    sluice_core_text_t *id);
static ngx_int_t ngx_http_sluice_correlation_id_uuid(u_char *text,
    ngx_log_t *log);
static int ngx_http_sluice_correlation_id_track(ngx_http_request_t *r,
    sluice_core_text_t *id);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_correlation_id = {
    .name = ngx_string("correlation-id"),
    .decision = &sluice_correlation_id,
    .init_worker = ngx_http_sluice_correlation_id_init,
    .access = ngx_http_sluice_correlation_id_access,
    .head = ngx_http_sluice_correlation_id_head
};


static u_char      ngx_http_sluice_correlation_id_worker[SLUICE_UUID_TEXT];
static ngx_uint_t  ngx_http_sluice_correlation_id_count;


static ngx_int_t
ngx_http_sluice_correlation_id_init(ngx_cycle_t *cycle)
{
    return ngx_http_sluice_correlation_id_uuid(
                            ngx_http_sluice_correlation_id_worker, cycle->log);
}


static ngx_int_t
ngx_http_sluice_correlation_id_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf)
{
    ngx_http_sluice_correlation_id_own_t  own;

    own.plain.make = ngx_http_sluice_correlation_id_make;
    own.request = r;

    return ngx_http_sluice_decide(&sluice_correlation_id, r, ctx, conf, &own);
}


static ngx_int_t
ngx_http_sluice_correlation_id_head(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *conf)
{
    ngx_http_sluice_correlation_id_own_t  own;

    own.plain.make = ngx_http_sluice_correlation_id_make;
    own.request = r;

    return ngx_http_sluice_decide_head(&sluice_correlation_id, r, ctx, conf,
                                       &own);
}


static int
ngx_http_sluice_correlation_id_make(sluice_correlation_id_own_t *plain,
    uint32_t generator, sluice_core_text_t *id)
{
    ngx_http_sluice_correlation_id_own_t  *own;

    u_char              *p, *last;
    ngx_http_request_t  *r;

    own = (ngx_http_sluice_correlation_id_own_t *) plain;
    r = own->request;

    if (generator == SLUICE_CORRELATION_ID_TRACKER) {
        return ngx_http_sluice_correlation_id_track(r, id);
    }

    p = ngx_pnalloc(r->pool, SLUICE_UUID_TEXT + 1 + NGX_INT_T_LEN);
    if (p == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    last = p + SLUICE_UUID_TEXT;

    if (generator == SLUICE_CORRELATION_ID_COUNTER) {
        ngx_memcpy(p, ngx_http_sluice_correlation_id_worker, SLUICE_UUID_TEXT);
        *last++ = '#';
        last = (u_char *) sluice_core_decimal((char *) last,
                                       ++ngx_http_sluice_correlation_id_count);

    } else if (ngx_http_sluice_correlation_id_uuid(p, r->connection->log)
               != NGX_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    id->data = (const char *) p;
    id->length = (uint32_t) (last - p);

    return SLUICE_FACT_OK;
}


/* a random one (RFC 9562, version 4) */

static ngx_int_t
ngx_http_sluice_correlation_id_uuid(u_char *text, ngx_log_t *log)
{
    u_char  *id;

    static size_t  used = NGX_HTTP_SLUICE_CORRELATION_ID_DRAWN;
    static u_char  drawn[NGX_HTTP_SLUICE_CORRELATION_ID_DRAWN]
                        [NGX_HTTP_SLUICE_CORRELATION_ID_BYTES];

    if (used == NGX_HTTP_SLUICE_CORRELATION_ID_DRAWN) {

        if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t) sizeof(drawn)) {
            ngx_log_error(NGX_LOG_ERR, log, ngx_errno, "getrandom() failed");
            return NGX_ERROR;
        }

        used = 0;
    }

    id = drawn[used++];

    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;

    sluice_uuid_write((char *) text, id);

    return NGX_OK;
}


/* where it came to, process, connection, request on that, time */

static int
ngx_http_sluice_correlation_id_track(ngx_http_request_t *r,
    sluice_core_text_t *id)
{
    u_char             *p, *last, text[NGX_SOCKADDR_STRLEN];
    ngx_str_t           address;
    ngx_uint_t          port;
    ngx_time_t         *tp;
    ngx_connection_t   *c;

    c = r->connection;

    address.data = text;
    address.len = sizeof(text);

    if (ngx_connection_local_sockaddr(c, &address, 0) != NGX_OK) {
        return SLUICE_FACT_MEMORY;
    }

    port = ngx_inet_get_port(c->local_sockaddr);
    tp = ngx_timeofday();

    p = ngx_pnalloc(r->pool, NGX_SOCKADDR_STRLEN + 5 * NGX_INT64_LEN + 10);
    if (p == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    last = ngx_sprintf(p, "%V-%ui-%P-%uA-%ui-%T.%03M", &address, port, ngx_pid,
                       c->number, c->requests, tp->sec, tp->msec);

    id->data = (const char *) p;
    id->length = (uint32_t) (last - p);

    return SLUICE_FACT_OK;
}
