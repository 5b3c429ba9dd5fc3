
/*
 * The gateway's choice of a peer for each try of a request
 * (ngx_http_sluice_peer_try.c).
 */


#ifndef NGX_HTTP_SLUICE_PEER_TRY_H_INCLUDED
#define NGX_HTTP_SLUICE_PEER_TRY_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_peer_tls.h"
#include "ngx_http_sluice_balancer.h"


typedef struct {
    ngx_http_request_t             *request;
    ngx_http_sluice_balancer_t     *balancer;
    ngx_uint_t                      peer;      /* of this try */
    uint64_t                       *tried;     /* NULL until the first retry */
    ngx_uint_t                      rewrites;
    ngx_str_t                       frame;     /* of the request's head */

    ngx_http_sluice_peer_tls_t      tls;

    unsigned                        begun:1;
    unsigned                        preserve_host:1;
} ngx_http_sluice_peer_try_t;


typedef struct {
    ngx_uint_t                      index;     /* of $sluice_host */
} ngx_http_sluice_peer_host_conf_t;


extern const size_t  ngx_http_sluice_peer_host_at;


/*
 * Writes the head of the request for its first peer, which the access phase
 * has chosen, and sets what else nginx is to do as the service says.
 * NGX_ERROR: no memory, or nothing was chosen, which is logged.
 */
ngx_int_t ngx_http_sluice_peer_try_init(ngx_http_sluice_peer_try_t *try,
    ngx_http_request_t *r);

/*
 * Chooses the peer of the next try; a head with another Host is written anew.
 * NGX_OK; NGX_BUSY: the last one was the last; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_peer_try_get(ngx_http_sluice_peer_try_t *try,
    ngx_peer_connection_t *pc);


/* The Host header that a peer is sent: $sluice_host, for nginx writes it. */

ngx_http_variable_value_t *ngx_http_sluice_peer_host(ngx_http_request_t *r);

/* host has to stay while the request may use its value. */
void ngx_http_sluice_peer_host_set(ngx_http_request_t *r, ngx_str_t *host);

/* Before the configuration is read. */
ngx_int_t ngx_http_sluice_peer_host_add(ngx_conf_t *cf,
    ngx_http_sluice_peer_host_conf_t *conf);


#endif /* NGX_HTTP_SLUICE_PEER_TRY_H_INCLUDED */
