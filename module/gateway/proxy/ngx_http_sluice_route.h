
/*
 * Routing: which route a request is of, and in which location nginx goes on
 * with it (ngx_http_sluice_route.c).
 */


#ifndef NGX_HTTP_SLUICE_ROUTE_H_INCLUDED
#define NGX_HTTP_SLUICE_ROUTE_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_refuse.h"


/* ngx_http_sluice_route_match.c; nothing here yields */

/*
 * Matches a request whose context has its path, fills the context and goes to
 * the location that has the phases which the chain needs: in the server
 * rewrite phase, and in the access phase if plugins have had a rewrite of
 * their own.  NGX_OK; NGX_AGAIN: it has compiled as much as it may in a turn
 * of the event loop, call it again in another; NGX_DECLINED: refuse the
 * request.
 */
ngx_int_t ngx_http_sluice_route(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);

/*
 * Finds what is published, and the chain of requests that are not routed.
 * NGX_ERROR: nothing is, or this worker cannot map it, or there is no memory.
 */
ngx_int_t ngx_http_sluice_route_look(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* Goes to the location of a kind that has the phases which the chain needs. */
void ngx_http_sluice_route_enter(ngx_http_request_t *r,
    ngx_http_sluice_location_e kind);

/* NGX_DECLINED, with what a request is told that nobody can route. */
ngx_int_t ngx_http_sluice_route_refuse_unread(
    ngx_http_sluice_refusal_t *refusal);

/* ngx_http_sluice_route_leave.c */

/*
 * Whether a request can do without what its epoch has compiled: the head of
 * its response was sent, and it has what logs and late phases ask for in its
 * own memory, since this call at the latest.
 */
ngx_uint_t ngx_http_sluice_route_leave(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_ROUTE_H_INCLUDED */
