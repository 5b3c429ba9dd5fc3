
/*
 * What logs call a request's route and service.
 */


#ifndef NGX_HTTP_SLUICE_NAMES_H_INCLUDED
#define NGX_HTTP_SLUICE_NAMES_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


struct ngx_http_sluice_named_s {
    uint8_t      id[16];
    ngx_str_t    name;          /* of length 0: it has none */
    ngx_str_t    host;          /* of a service without a name */
};


struct ngx_http_sluice_names_s {
    ngx_http_sluice_named_t  route;
    ngx_http_sluice_named_t  service;    /* of service_slot, if that is one */
};


/* Whether this nginx's log formats ask for them: else none are kept. */
extern ngx_uint_t  ngx_http_sluice_names_are_logged;

/* The id and the name of a record, copied into pool.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_names_read(ngx_pool_t *pool,
    const sluice_core_found_t *found, int field,
    ngx_http_sluice_named_t *named);

/* A copy in pool; NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_names_copy(ngx_pool_t *pool, ngx_str_t *to,
    const ngx_str_t *from);

/*
 * Keeps those of the route and of the service, unless that is NULL, in the
 * request's own memory: the line is written when both may be gone.
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_names_keep(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_found_t *route,
    const ngx_http_sluice_named_t *service);


#endif /* NGX_HTTP_SLUICE_NAMES_H_INCLUDED */
