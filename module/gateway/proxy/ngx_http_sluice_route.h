
/*
 * Routing: which route a request is of, and in which location nginx goes on
 * with it (ngx_http_sluice_route.c).
 */


#ifndef NGX_HTTP_SLUICE_ROUTE_H_INCLUDED
#define NGX_HTTP_SLUICE_ROUTE_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_module.h"
#include "ngx_http_sluice_refusal.h"


typedef struct {
    ngx_flag_t  enabled;
} ngx_http_sluice_route_conf_t;


#define NGX_HTTP_SLUICE_ROUTE_DIRECTIVES(at)                                  \
    { ngx_string("sluice_route"),                                             \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                     \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_route_conf_t, enabled),                   \
      NULL }


extern const size_t  ngx_http_sluice_route_at;


/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_route_handler(ngx_http_request_t *r);


/* ngx_http_sluice_route_match.c; nothing here yields */

/*
 * Finds what is published, and holds what this worker has compiled of that: to
 * be called once before a match.  The view is good until the event loop is
 * returned to.  NULL: nothing is published, or this worker cannot map it, or
 * there is no memory.
 */
const sluice_core_view_t *ngx_http_sluice_route_look(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* Whether a request that got NGX_AGAIN is to have no other answer yet. */
ngx_uint_t ngx_http_sluice_route_waits(ngx_http_sluice_ctx_t *ctx);

/*
 * Matches a request whose context has its path, fills the context and goes to
 * the location that has the phases which the chain needs.  NGX_OK; NGX_AGAIN:
 * it has compiled as much as it may in a turn of the event loop, look and
 * match again in another; NGX_DECLINED: refuse the request.
 */
ngx_int_t ngx_http_sluice_route_match(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_view_t *view,
    ngx_http_sluice_refusal_t *refusal);

/*
 * Both, in the access phase: plugins have had a rewrite of their own, or have
 * sent the request back to the beginning.
 */
ngx_int_t ngx_http_sluice_route(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);

/* Goes to the location of a kind that has the phases which the chain needs. */
void ngx_http_sluice_route_enter(ngx_http_request_t *r,
    ngx_http_sluice_location_e kind);

/* NGX_DECLINED, with what a request is told that nobody can route. */
ngx_int_t ngx_http_sluice_route_refuse_unread(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);

/* ngx_http_sluice_route_detach.c */

/*
 * Whether a request can do without what its epoch has compiled: the head of
 * its response was sent, and it has what logs and late phases ask for in its
 * own memory, since this call at the latest.
 */
ngx_uint_t ngx_http_sluice_route_detach(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_ROUTE_H_INCLUDED */
