
/*
 * TLS of a request's tries (ngx_http_sluice_peer_tls.h).
 */


#include "ngx_http_sluice_peer_tls.h"


ngx_int_t
ngx_http_sluice_peer_tls_init(ngx_http_sluice_peer_tls_t *tls,
    ngx_http_request_t *r, ngx_http_sluice_upstream_tls_t *service)
{
    tls->service = service;
    tls->made = 0;

    if (service == NULL || r->upstream->conf->ssl_session_reuse) {
        return NGX_OK;
    }

    /* nginx would not ask for a session, and nobody would be verified */

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "TLS of a service needs \"proxy_ssl_session_reuse on\"");

    return NGX_ERROR;
}


ngx_int_t
ngx_http_sluice_peer_tls_make(ngx_http_sluice_peer_tls_t *tls,
    ngx_peer_connection_t *pc, ngx_str_t *name)
{
    if (tls->service
        && ngx_http_sluice_upstream_tls_set(pc->connection, tls->service, name)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_sluice_upstream_identify(&tls->identity, tls->service,
                                          pc->sockaddr, pc->socklen, name)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    tls->made = 1;

    return ngx_ssl_set_session(pc->connection,
                      ngx_http_sluice_upstream_session_find(&tls->identity));
}


void
ngx_http_sluice_peer_tls_save(ngx_http_sluice_peer_tls_t *tls,
    ngx_connection_t *c)
{
    if (tls->made) {
        ngx_http_sluice_upstream_session_put(&tls->identity,
                  ngx_ssl_get0_session(c),
                  (ngx_uint_t) SSL_session_reused(c->ssl->connection));
    }
}


void
ngx_http_sluice_peer_tls_free(ngx_http_sluice_peer_tls_t *tls,
    ngx_connection_t *c)
{
    /* it may be the session that the upstream does not understand */

    if (tls->made && c && c->ssl && !c->ssl->handshaked) {
        ngx_http_sluice_upstream_session_drop(&tls->identity);
    }

    tls->made = 0;
}
