
/*
 * Routing: which route a request is of, and in which location nginx goes on
 * with it (ngx_http_sluice_route.c).
 */


#ifndef NGX_HTTP_SLUICE_ROUTE_H_INCLUDED
#define NGX_HTTP_SLUICE_ROUTE_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_refuse.h"


/*
 * Looks what is published, matches, fills the context and goes to the location
 * that has the phases which the chain needs: in the server rewrite phase, and
 * in the access phase if plugins have had a rewrite of their own.
 * NGX_OK; NGX_DECLINED: refuse the request.  Does not yield.
 */
ngx_int_t ngx_http_sluice_route(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);


#endif /* NGX_HTTP_SLUICE_ROUTE_H_INCLUDED */
