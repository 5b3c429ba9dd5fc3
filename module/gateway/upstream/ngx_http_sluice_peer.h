
/*
 * Whom a request goes to (ngx_http_sluice_peer.c).
 */


#ifndef NGX_HTTP_SLUICE_PEER_H_INCLUDED
#define NGX_HTTP_SLUICE_PEER_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_module.h"
#include "ngx_http_sluice_pool.h"


/* Of an upstream block. */

typedef struct {
    ngx_uint_t                      enabled;
    ngx_uint_t                      own;       /* the balancer is ours */
    ngx_http_upstream_init_peer_pt  other;     /* balancer; NULL: our own */
    ngx_http_sluice_pool_t          pool;
} ngx_http_sluice_peer_conf_t;


#define NGX_HTTP_SLUICE_PEER_DIRECTIVES(at)                                   \
    { ngx_string("sluice_upstream"),                                          \
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,                                         \
      ngx_http_sluice_peer_upstream,                                          \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_peer_at;


char *ngx_http_sluice_peer_upstream(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* When the configuration has been read. */
void ngx_http_sluice_peer_init_conf(ngx_conf_t *cf);

/*
 * Takes the turn of the first try, and sets $sluice_host to what its Host
 * header says.  To be called once, in the access phase, when the context has
 * its service.  NGX_OK; NGX_DECLINED: the service has no peer, its
 * empty has the words.
 */
ngx_int_t ngx_http_sluice_peer_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* ngx_http_sluice_peer_detach.c */

/*
 * Detaches from the pool of the service, when the head of the response was
 * sent: no other peer is asked then.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_peer_detach(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_PEER_H_INCLUDED */
