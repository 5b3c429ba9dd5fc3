
/*
 * Why tries of a request have failed: what its logs say, and its metrics.
 */


#ifndef NGX_HTTP_SLUICE_TRIES_H_INCLUDED
#define NGX_HTTP_SLUICE_TRIES_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


typedef enum {
    NGX_HTTP_SLUICE_TRY_OK = 0,
    NGX_HTTP_SLUICE_TRY_REFUSED,
    NGX_HTTP_SLUICE_TRY_UNREACHABLE,
    NGX_HTTP_SLUICE_TRY_NOT_CONNECTED,         /* whatever the reason is */
    NGX_HTTP_SLUICE_TRY_CONNECT_TIMEOUT,       /* of TCP or TLS */
    NGX_HTTP_SLUICE_TRY_TLS,
    NGX_HTTP_SLUICE_TRY_CERTIFICATE,
    NGX_HTTP_SLUICE_TRY_WRITE_TIMEOUT,
    NGX_HTTP_SLUICE_TRY_READ_TIMEOUT,
    NGX_HTTP_SLUICE_TRY_RESET,
    NGX_HTTP_SLUICE_TRY_CLOSED,
    NGX_HTTP_SLUICE_TRY_INVALID,               /* a head that is no HTTP */
    NGX_HTTP_SLUICE_TRY_ERRORS
} ngx_http_sluice_try_e;


/* FFI */

/*
 * The address of a try, from 0, and the status of its response, 0: none came.
 * Returns -1: there was no such try.
 */
int sluice_tries_peer(ngx_http_request_t *r, unsigned i,
    sluice_core_text_t *address);

/* FFI end */


/* What the last one of r->upstream_states has failed by. */
void ngx_http_sluice_tries_fail(ngx_http_request_t *r, ngx_uint_t error);

/* In words, such as "connection refused"; NULL: NGX_HTTP_SLUICE_TRY_OK. */
const char *ngx_http_sluice_tries_word(ngx_uint_t error);

/* Of one of r->upstream_states, by its place. */
ngx_uint_t ngx_http_sluice_tries_error(ngx_http_request_t *r, ngx_uint_t i);


#endif /* NGX_HTTP_SLUICE_TRIES_H_INCLUDED */
