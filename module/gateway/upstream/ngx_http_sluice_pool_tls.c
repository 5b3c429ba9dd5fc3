
/*
 * The TLS identity of connections to upstreams: which one a request asks for,
 * and which one a connection has come to have.
 */


#include "ngx_http_sluice_service.h"
#include "ngx_http_sluice_pool.h"


/* The steps of nginx's ngx_http_upstream_ssl_name(). */

ngx_int_t
ngx_http_sluice_pool_tls_read(ngx_http_request_t *r,
    ngx_http_sluice_pool_tls_t *tls)
{
    u_char                    *p, *last;
    ngx_http_sluice_ctx_t     *ctx;
    ngx_http_upstream_conf_t  *conf;

    ngx_memzero(tls, sizeof(ngx_http_sluice_pool_tls_t));
    ngx_str_set(&tls->name, "");

    if (!r->upstream->ssl) {
        return NGX_OK;
    }

    conf = r->upstream->conf;

    if (conf->ssl_certificate
        && (conf->ssl_certificate->lengths
            || conf->ssl_certificate_key->lengths))
    {
        return NGX_DECLINED;
    }

    tls->ctx = conf->ssl->ctx;
    tls->server_name = conf->ssl_server_name;
    tls->verify = conf->ssl_verify;

    ctx = ngx_http_sluice_ctx(r);

    if (ctx && ctx->service && ctx->service->tls) {
        ngx_memcpy(tls->service, ctx->service->tls->digest,
                   sizeof(tls->service));
    }

    if (!tls->server_name && !tls->verify) {
        return NGX_OK;
    }

    if (conf->ssl_name == NULL) {
        tls->name = r->upstream->ssl_name;

    } else if (ngx_http_complex_value(r, conf->ssl_name, &tls->name)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* without the port, which comes behind the brackets if there are any */

    p = tls->name.data;
    last = p + tls->name.len;

    if (p != last && *p == '[') {
        p = ngx_strlchr(p, last, ']');

        if (p == NULL) {
            p = tls->name.data;
        }
    }

    p = ngx_strlchr(p, last, ':');

    if (p) {
        tls->name.len = p - tls->name.data;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_sluice_pool_tls_is_made(ngx_http_upstream_t *u, ngx_connection_t *c,
    ngx_http_sluice_pool_tls_t *tls)
{
    if (c->ssl == NULL) {
        return tls->ctx == NULL;
    }

    if (c->ssl->session_ctx != tls->ctx) {
        return 0;
    }

    if (!tls->server_name && !tls->verify) {
        return 1;
    }

    return u->ssl_name.len == tls->name.len
           && ngx_memcmp(u->ssl_name.data, tls->name.data, tls->name.len) == 0;
}


ngx_uint_t
ngx_http_sluice_pool_tls_is_quiet(ngx_connection_t *c)
{
    return c->ssl->last != NGX_DONE
           && c->ssl->last != NGX_ERROR
           && !SSL_has_pending(c->ssl->connection);
}
