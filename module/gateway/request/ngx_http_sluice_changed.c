
/*
 * Notes what plugins change (ngx_http_sluice_changed.h).  All is copied: the
 * texts are Lua's, and the request goes on in other turns of the event loop.
 */


#include "ngx_http_sluice_changed.h"
#include "path.h"


static ngx_int_t ngx_http_sluice_changed_encode(ngx_pool_t *pool,
    ngx_str_t *to, const u_char *data, size_t length);
static ngx_int_t ngx_http_sluice_changed_copy(ngx_pool_t *pool, ngx_str_t *to,
    const u_char *data, size_t length);


ngx_http_sluice_changed_t *
ngx_http_sluice_changed(ngx_http_request_t *r)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NULL;
    }

    if (ctx->changed == NULL) {
        ctx->changed = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_changed_t));
    }

    return ctx->changed;
}


ngx_int_t
ngx_http_sluice_changed_set_path(ngx_http_request_t *r, const u_char *path,
    size_t length)
{
    char                       *buffer;
    size_t                      size;
    sluice_core_text_t          text, escaped;
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    text.data = (const char *) path;
    text.length = (uint32_t) length;
    size = sluice_path_escape_bound(&text);

    buffer = ngx_pnalloc(r->pool, size + 1);
    if (buffer == NULL) {
        return NGX_ERROR;
    }

    (void) sluice_path_escape(&text, buffer, size, &escaped);

    if (length && escaped.data != buffer) {
        ngx_memcpy(buffer, path, length);
    }

    changed->path.data = (u_char *) buffer;
    changed->path.len = escaped.length;

    return NGX_OK;
}


/* An empty one is none, as in Kong. */

ngx_int_t
ngx_http_sluice_changed_set_host(ngx_http_request_t *r, const u_char *host,
    size_t length)
{
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    if (length == 0) {
        ngx_str_null(&changed->host);
        return NGX_OK;
    }

    return ngx_http_sluice_changed_encode(r->pool, &changed->host, host,
                                          length);
}


ngx_int_t
ngx_http_sluice_changed_set_forwarded(ngx_http_request_t *r,
    ngx_http_sluice_forwarded_e which, const u_char *text, size_t length)
{
    ngx_str_t                   encoded;
    ngx_http_variable_value_t  *v;
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    if (changed->forwarded == NULL) {
        changed->forwarded = ngx_pcalloc(r->pool,
                                         NGX_HTTP_SLUICE_FORWARDED_LINES
                                         * sizeof(ngx_http_variable_value_t));
        if (changed->forwarded == NULL) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_sluice_changed_encode(r->pool, &encoded, text, length)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    v = &changed->forwarded[which];

    v->data = encoded.data;
    v->len = (unsigned) encoded.len;
    v->valid = 1;

    return NGX_OK;
}


ngx_http_variable_value_t *
ngx_http_sluice_changed_forwarded(ngx_http_sluice_ctx_t *ctx, ngx_uint_t which)
{
    if (ctx->changed == NULL || ctx->changed->forwarded == NULL
        || which == NGX_HTTP_SLUICE_FORWARDED_LINES
        || !ctx->changed->forwarded[which].valid)
    {
        return NULL;
    }

    return &ctx->changed->forwarded[which];
}


/* As nginx's Lua module encodes the values of other headers. */

static ngx_int_t
ngx_http_sluice_changed_encode(ngx_pool_t *pool, ngx_str_t *to,
    const u_char *data, size_t length)
{
    u_char  *p;
    size_t   i;

    p = ngx_pnalloc(pool, 3 * length + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    to->data = p;

    for (i = 0; i < length; i++) {

        if (data[i] < 0x20 || data[i] == 0x7f) {
            p = ngx_sprintf(p, "%%%02XD", (uint32_t) data[i]);

        } else {
            *p++ = data[i];
        }
    }

    to->len = (size_t) (p - to->data);

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_changed_set_scheme(ngx_http_request_t *r, const u_char *scheme,
    size_t length)
{
    ngx_http_sluice_changed_t  *changed;

    if ((length != 4 && length != 5)
        || ngx_strncmp(scheme, "https", length) != 0)
    {
        return NGX_DECLINED;
    }

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    changed->scheme = length == 4 ? NGX_HTTP_SLUICE_CHANGED_HTTP
                                  : NGX_HTTP_SLUICE_CHANGED_HTTPS;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_changed_copy(ngx_pool_t *pool, ngx_str_t *to,
    const u_char *data, size_t length)
{
    to->data = ngx_pnalloc(pool, length + 1);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpymem(to->data, data, length);
    to->len = length;

    return NGX_OK;
}


int
sluice_changed_path(ngx_http_request_t *r, const char *path, size_t length)
{
    return (int) ngx_http_sluice_changed_set_path(r, (const u_char *) path,
                                                  length);
}


int
sluice_changed_host(ngx_http_request_t *r, const char *host, size_t length)
{
    return (int) ngx_http_sluice_changed_set_host(r, (const u_char *) host,
                                                  length);
}


int
sluice_changed_scheme(ngx_http_request_t *r, const char *scheme, size_t length)
{
    return (int) ngx_http_sluice_changed_set_scheme(r, (const u_char *) scheme,
                                                    length);
}


int
sluice_changed_target(ngx_http_request_t *r, const char *host, size_t length,
    uint32_t port)
{
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);

    if (changed == NULL
        || ngx_http_sluice_changed_copy(r->pool, &changed->target,
                                        (const u_char *) host, length)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    changed->port = (in_port_t) port;
    changed->addresses = NULL;

    return NGX_OK;
}


/* Milliseconds, from 1 on. */

int
sluice_changed_times(ngx_http_request_t *r, uint32_t connect_ms,
    uint32_t send_ms, uint32_t read_ms)
{
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    changed->connect_ms = connect_ms;
    changed->send_ms = send_ms;
    changed->read_ms = read_ms;

    return NGX_OK;
}


int
sluice_changed_retries(ngx_http_request_t *r, uint32_t retries)
{
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    changed->tries = retries + 1;

    return NGX_OK;
}


void
sluice_changed_wanted(ngx_http_request_t *r, sluice_core_text_t *host)
{
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx(r);

    host->data = (const char *) ctx->changed->target.data;
    host->length = (uint32_t) ctx->changed->target.len;
}


/* One more of the target's, IPv6 in brackets. */

int
sluice_changed_address(ngx_http_request_t *r, const char *address,
    size_t length)
{
    ngx_str_t                  *place;
    ngx_http_sluice_changed_t  *changed;

    changed = ngx_http_sluice_changed(r);
    if (changed == NULL) {
        return NGX_ERROR;
    }

    if (changed->addresses == NULL) {
        changed->addresses = ngx_array_create(r->pool, 4, sizeof(ngx_str_t));
        if (changed->addresses == NULL) {
            return NGX_ERROR;
        }
    }

    place = ngx_array_push(changed->addresses);
    if (place == NULL) {
        return NGX_ERROR;
    }

    return (int) ngx_http_sluice_changed_copy(r->pool, place,
                                              (const u_char *) address,
                                              length);
}
