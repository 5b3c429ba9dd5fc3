
/*
 * TLS to a service's upstreams: who they have to prove to be, and as whom the
 * gateway comes.  nginx has both in its locations; these are the service's
 * own, and are set on each connection before its handshake.
 *
 *     sluice_upstream_trusted_certificate /etc/ssl/certs/ca-certificates.crt;
 *
 * names the CAs of services that list none.
 *
 * OpenSSL verifies within the handshake, the name too: who does not prove to
 * be the upstream gets no certificate of ours, no session and no byte of a
 * request.  (nginx looks at the result when the handshake is done.)
 */


#ifndef NGX_HTTP_SLUICE_UPSTREAM_TLS_H_INCLUDED
#define NGX_HTTP_SLUICE_UPSTREAM_TLS_H_INCLUDED


#include "ngx_http_sluice_module.h"
#include "ngx_sluice_certificates.h"


#define NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST  32
#define NGX_HTTP_SLUICE_UPSTREAM_TLS_DEPTH   1   /* nginx's by default */


typedef struct {
    X509_STORE  *trusted;
} ngx_http_sluice_upstream_tls_conf_t;


#define NGX_HTTP_SLUICE_UPSTREAM_TLS_DIRECTIVES(at)                           \
    { ngx_string("sluice_upstream_trusted_certificate"),                      \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_sluice_upstream_tls_trusted,                                   \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_upstream_tls_at;


char *ngx_http_sluice_upstream_tls_trusted(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/*
 * Compiled with its service, and not changed any more.  The digest
 * is of what all the rest comes from: two of the same digest are one identity.
 * So connections and sessions outlive a change that does not touch them, and
 * none outlives one that does: a certificate that is written again is another.
 */

typedef struct {
    u_char                        digest[NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST];
    ngx_sluice_certificate_t      client;     /* its references are ours */
    X509_STORE                   *trusted;    /* the same; NULL: nobody is */
    int                           depth;      /* of intermediate CAs */
    unsigned                      verify:1;
} ngx_http_sluice_upstream_tls_t;


/*
 * What a service says, and its upstream, whose client certificate counts where
 * the service has none.  *tls is NULL where nothing is said: then nobody is
 * verified.  The result is good as long as pool is.  NGX_DECLINED: a
 * certificate cannot be used, which is logged; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_upstream_tls_read(ngx_pool_t *pool,
    sluice_core_found_t *service, ngx_http_sluice_upstream_tls_t **tls);

/* ngx_http_sluice_upstream_tls_set.c */

/*
 * To be called between the making of a connection's SSL and its handshake.
 * name is what is verified: a host name or an address, IPv6 in brackets,
 * without a port.  NGX_ERROR: the handshake must not be made, and the log says
 * why.
 */
ngx_int_t ngx_http_sluice_upstream_tls_set(ngx_connection_t *c,
    ngx_http_sluice_upstream_tls_t *tls, ngx_str_t *name);


#endif /* NGX_HTTP_SLUICE_UPSTREAM_TLS_H_INCLUDED */
