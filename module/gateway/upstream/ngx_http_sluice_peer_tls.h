
/*
 * TLS of a request's tries (ngx_http_sluice_peer_tls.c): what its service says
 * of it, and the sessions of connections that it makes.
 */


#ifndef NGX_HTTP_SLUICE_PEER_TLS_H_INCLUDED
#define NGX_HTTP_SLUICE_PEER_TLS_H_INCLUDED


#include "ngx_http_sluice_upstream_sessions.h"


typedef struct {
    ngx_http_sluice_upstream_tls_t       *service;   /* used until the response
                                                        begins */
    ngx_http_sluice_upstream_identity_t   identity;
    ngx_uint_t                            made;      /* this try has made a
                                                        connection: identity
                                                        is its */
} ngx_http_sluice_peer_tls_t;


/* NGX_ERROR: nginx.conf does not let a service's TLS be set; it is logged. */
ngx_int_t ngx_http_sluice_peer_tls_init(ngx_http_sluice_peer_tls_t *tls,
    ngx_http_request_t *r, ngx_http_sluice_upstream_tls_t *service);

/* Of a connection that is before its handshake.  NGX_ERROR: close it. */
ngx_int_t ngx_http_sluice_peer_tls_make(ngx_http_sluice_peer_tls_t *tls,
    ngx_peer_connection_t *pc, ngx_str_t *name);

/*
 * A session has come: with the handshake, or later (TLS 1.3).  That of a
 * connection which an earlier request has made is not kept.
 */
void ngx_http_sluice_peer_tls_save(ngx_http_sluice_peer_tls_t *tls,
    ngx_connection_t *c);

/* The try has ended; c may be NULL. */
void ngx_http_sluice_peer_tls_free(ngx_http_sluice_peer_tls_t *tls,
    ngx_connection_t *c);


#endif /* NGX_HTTP_SLUICE_PEER_TLS_H_INCLUDED */
