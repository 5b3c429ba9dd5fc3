
/*
 * TLS sessions of upstreams, so that a new connection to one costs less: of
 * each identity the latest, in each worker.
 *
 * A session has what its handshake has proved, and nothing is proved again
 * where it is resumed.  So it is found only by who would prove the same: the
 * same address, name and settings of the service.
 *
 * At most 1,024 sessions of an hour each: the one that was unused for longest
 * goes first.  An hour is also how long a kept connection may serve.
 */


#ifndef NGX_HTTP_SLUICE_UPSTREAM_SESSIONS_H_INCLUDED
#define NGX_HTTP_SLUICE_UPSTREAM_SESSIONS_H_INCLUDED


#include "ngx_http_sluice_upstream_tls.h"


/* Whose a session is: a digest of its identity. */

typedef struct {
    u_char  digest[NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST];
} ngx_http_sluice_upstream_identity_t;


/*
 * The identity of a connection to an address under a name.  tls is NULL where
 * the service says nothing.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_upstream_identify(
    ngx_http_sluice_upstream_identity_t *identity,
    const ngx_http_sluice_upstream_tls_t *tls, const struct sockaddr *sockaddr,
    socklen_t socklen, const ngx_str_t *name);

/* Stays the cache's; NULL: there is none. */
ngx_ssl_session_t *ngx_http_sluice_upstream_session_find(
    const ngx_http_sluice_upstream_identity_t *identity);

/*
 * In place of the one that is there.  resumed: its connection began with a
 * session itself, so its hour is that one's.  Does nothing where memory is
 * short.
 */
void ngx_http_sluice_upstream_session_put(
    const ngx_http_sluice_upstream_identity_t *identity,
    ngx_ssl_session_t *session, ngx_uint_t resumed);

/* That of an identity, if there is one. */
void ngx_http_sluice_upstream_session_drop(
    const ngx_http_sluice_upstream_identity_t *identity);


#endif /* NGX_HTTP_SLUICE_UPSTREAM_SESSIONS_H_INCLUDED */
