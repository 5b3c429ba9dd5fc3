
/*
 * What plugins in Lua ask of a client's TLS (gateway/kit/client/tls.lua).
 */


#ifndef NGX_HTTP_SLUICE_TLS_CLIENT_H_INCLUDED
#define NGX_HTTP_SLUICE_TLS_CLIENT_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/* FFI */

/*
 * Who has connected, and to which port.  Texts are the connection's; of length
 * 0, and ports of 0: there is none.
 */

typedef struct {
    sluice_core_text_t  address;
    sluice_core_text_t  claimed;       /* by the PROXY protocol */
    uint32_t            port;
    uint32_t            claimed_port;
    uint32_t            own_port;
} sluice_tls_peer_t;


/*
 * All five: NGX_OK; NGX_DECLINED: the connection has no TLS, or the client no
 * certificate; NGX_ERROR: no memory.
 */

/* In the handshake, where there is no request with variables. */
int sluice_tls_client_peer(ngx_http_request_t *r, sluice_tls_peer_t *peer);

/* The client's certificates in PEM, its own first; in the request's pool. */
int sluice_tls_client_chain(ngx_http_request_t *r, sluice_core_text_t *pem);

/*
 * In the handshake: asks the client for a certificate, and takes any, or none.
 * issuers: STACK_OF(X509) whose names the client is told; NULL: none.
 */
int sluice_tls_client_ask(ngx_http_request_t *r, void *issuers);

/* In the handshake: its session is not resumed. */
int sluice_tls_client_forget(ngx_http_request_t *r);

/* What logs say of the verification, in place of $ssl_client_verify. */
int sluice_tls_client_verify(ngx_http_request_t *r, const char *text,
    size_t length);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_TLS_CLIENT_H_INCLUDED */
