
/*
 * Whom a request goes to (ngx_http_sluice_peer.c).
 */


#ifndef NGX_HTTP_SLUICE_PEER_H_INCLUDED
#define NGX_HTTP_SLUICE_PEER_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/*
 * Takes the turn of the first try, and sets $sluice_host to what its Host
 * header says.  To be called once, in the access phase, when the context has
 * its destination.  NGX_OK; NGX_DECLINED: the destination has no peer, its
 * empty has the words.
 */
ngx_int_t ngx_http_sluice_peer_begin(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


/* The value of $sluice_host. */
ngx_http_variable_value_t *ngx_http_sluice_peer_host(ngx_http_request_t *r);

/* ngx_http_sluice_peer_leave.c */

/*
 * Leaves the pool of the destination, when the head of the response was sent:
 * no other peer is asked then.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_peer_leave(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_PEER_H_INCLUDED */
