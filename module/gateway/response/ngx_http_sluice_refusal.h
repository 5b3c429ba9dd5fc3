
/*
 * How a request ends that the gateway does not let through
 * (ngx_http_sluice_refusal.c).
 */


#ifndef NGX_HTTP_SLUICE_REFUSAL_H_INCLUDED
#define NGX_HTTP_SLUICE_REFUSAL_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "refusal.h"


/* FFI */

/*
 * With a message in the client's format; or by a Location; or, if both are of
 * length 0, as nginx refuses requests: by the page of an error, and mostly
 * with the end of the connection.
 */

typedef struct {
    ngx_uint_t  status;
    ngx_str_t   message;
    ngx_str_t   location;
} ngx_http_sluice_refusal_t;

/* FFI end */


/* Both: NGX_DECLINED, which says to whoever asked that refusal is filled. */

/* As nginx refuses. */
ngx_int_t ngx_http_sluice_refusal(ngx_http_sluice_refusal_t *refusal,
    ngx_uint_t status);

/* As the core says; its Upgrade is left to the caller. */
ngx_int_t ngx_http_sluice_refusal_set(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal, const sluice_refusal_t *said);

/* Refuses; returns what a handler of a phase returns at once. */
ngx_int_t ngx_http_sluice_refusal_send(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);


#endif /* NGX_HTTP_SLUICE_REFUSAL_H_INCLUDED */
