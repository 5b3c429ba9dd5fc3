
/*
 * TLS with clients: which certificate a handshake gets, and which sessions it
 * may go on with.  The directive "sluice_tls on" of a server gives its context
 * of OpenSSL the callbacks; nginx does the rest.
 *
 * All runs within one turn of the event loop: a handshake of stock nginx
 * cannot wait for anything.
 *
 *     ClientHello   the name is read, and the session id context set
 *     session       OpenSSL resumes one of this context, else makes a new one
 *     certificate   of the name, from the image; else the server's own
 *
 * Where Lua has asked for it and a configuration of the image needs it, the
 * server's own "ssl_certificate_by_lua_block" runs behind that.
 *
 * With "sluice_tls_ask_certificate on" clients are asked for a certificate, in
 * each handshake; with ports in place of "on", those who come to these.  The
 * route, which says whose is wanted, comes later, so any is taken, also none;
 * a plugin verifies.  A session with one gets no ticket, so that
 * it is resumed nowhere.
 *
 * The session id context is what keeps a session of one name from being
 * resumed under another: OpenSSL compares it in TLS 1.2 and 1.3, with tickets
 * and without (ssl_get_prev_session()), and takes a difference for a miss.
 */


#ifndef NGX_HTTP_SLUICE_TLS_H_INCLUDED
#define NGX_HTTP_SLUICE_TLS_H_INCLUDED


#include "ngx_http_sluice_module.h"


/*
 * The name that the client asked for in its handshake, in lower case and
 * without a dot at its end; empty: it named none, or this is no TLS.
 */
void ngx_http_sluice_tls_name(ngx_connection_t *c, ngx_str_t *name);

/*
 * What a connection's certificate was last verified by, and until when that
 * counts; zeroed at first.  Of a connection with TLS; NULL before its hello.
 */

typedef struct {
    uint64_t    epoch;
    uint64_t    revision;
    time_t      until;
    uint32_t    slot;
    uint32_t    is_refused;
} ngx_http_sluice_tls_verified_t;

ngx_http_sluice_tls_verified_t *ngx_http_sluice_tls_verified(
    ngx_connection_t *c);

/* FFI */

/* ngx_http_sluice_tls.c: whether handshakes of this worker may run Lua */
void sluice_tls_lua(int runs);

/* FFI end */


/*
 * What more is done in each handshake, when the certificate was chosen; NULL:
 * nothing.  The name is as above.  NGX_DONE: Lua is to run, if it may;
 * NGX_ERROR ends the handshake.
 */
typedef ngx_int_t (*ngx_http_sluice_tls_more_pt)(ngx_connection_t *c,
    ngx_str_t *name);

extern ngx_http_sluice_tls_more_pt  ngx_http_sluice_tls_more;

/* ngx_http_sluice_tls_ask.c */

typedef struct {
    ngx_uint_t    all;
    ngx_array_t  *ports;        /* of in_port_t; or NULL */
} ngx_http_sluice_tls_ask_t;

typedef struct {
    ngx_flag_t                 enable;
    ngx_http_sluice_tls_ask_t  ask;
} ngx_http_sluice_tls_conf_t;


#define NGX_HTTP_SLUICE_TLS_DIRECTIVES(at)                                    \
    { ngx_string("sluice_tls"),                                               \
      NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                                        \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_tls_conf_t, enable),                      \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_tls_ask_certificate"),                               \
      NGX_HTTP_SRV_CONF|NGX_CONF_1MORE,                                       \
      ngx_http_sluice_tls_ask,                                                \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_tls_conf_t, ask),                         \
      NULL }


extern const size_t  ngx_http_sluice_tls_at;


/* When the configuration has been read. */
ngx_int_t ngx_http_sluice_tls_init(ngx_conf_t *cf);

char *ngx_http_sluice_tls_ask(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* For a configuration, before the servers of it. */
void ngx_http_sluice_tls_ask_nobody(void);
void ngx_http_sluice_tls_ask_init(SSL_CTX *ctx,
    ngx_http_sluice_tls_ask_t *ask);

/* In the handshake; whether this client is asked. */
ngx_uint_t ngx_http_sluice_tls_ask_client(SSL *ssl,
    ngx_http_sluice_tls_ask_t *ask, ngx_connection_t *c);

/* Whether any client is. */
ngx_uint_t ngx_http_sluice_tls_asks(void);

/* ngx_http_sluice_tls_tickets.c */

ngx_int_t ngx_http_sluice_tls_tickets_init(ngx_conf_t *cf, SSL_CTX *ctx);


#endif /* NGX_HTTP_SLUICE_TLS_H_INCLUDED */
