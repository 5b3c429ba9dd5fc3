
/*
 * The access phase: from the matched route to nginx's proxy
 * (ngx_http_sluice_access.c).
 */


#ifndef NGX_HTTP_SLUICE_ACCESS_H_INCLUDED
#define NGX_HTTP_SLUICE_ACCESS_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_module.h"
#include "ngx_http_sluice_refusal.h"


/* What the client has asked for, as far as it is believed. */

typedef struct {
    ngx_http_complex_value_t  *scheme;
    ngx_http_complex_value_t  *host;
} ngx_http_sluice_access_conf_t;


#define NGX_HTTP_SLUICE_ACCESS_DIRECTIVES(at)                                 \
    { ngx_string("sluice_asked_scheme"),                                      \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_set_complex_value_slot,                                        \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_access_conf_t, scheme),                   \
      NULL },                                                                 \
                                                                              \
    { ngx_string("sluice_asked_host"),                                        \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_set_complex_value_slot,                                        \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_access_conf_t, host),                     \
      NULL }


extern const size_t  ngx_http_sluice_access_at;


/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_access_handler(ngx_http_request_t *r);


/* FFI */

/* What sluice_access_look() says. */

#define NGX_HTTP_SLUICE_ACCESS_ROUTED  0x01
#define NGX_HTTP_SLUICE_ACCESS_LATE    0x02


int sluice_access_look(ngx_http_request_t *r);
uint32_t sluice_access_wait(ngx_http_request_t *r);
int sluice_access_route(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);
int sluice_access_enter(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);
int sluice_access_leave(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);

/* FFI end */


/* Both: NGX_OK; NGX_DECLINED: refuse the request.  They do not yield. */

/* Before the plugins: is there a route, and may it be asked like this? */
ngx_int_t ngx_http_sluice_access_enter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);

/*
 * Behind them: says what the upstream is asked, and which peer.  NGX_AGAIN, of
 * a request that Lua has: sluice_changed_wanted() names a host whose addresses
 * are to be said, then it is to be called again.
 */
ngx_int_t ngx_http_sluice_access_leave(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);


#endif /* NGX_HTTP_SLUICE_ACCESS_H_INCLUDED */
