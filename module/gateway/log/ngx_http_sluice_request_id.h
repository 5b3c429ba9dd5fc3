
/*
 * Ids of requests (ngx_http_sluice_request_id.c).
 *
 * A request id has 32 hexadecimal digits: 24 are drawn when a worker starts,
 * 8 count its requests.  An id is unique as long as no two workers draw the
 * same 96 bits; it names a request and is no secret.  nginx's $request_id asks
 * OpenSSL for 16 bytes instead, which costs 8% of a proxied request.
 */


#ifndef NGX_HTTP_SLUICE_REQUEST_ID_H_INCLUDED
#define NGX_HTTP_SLUICE_REQUEST_ID_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* When a process begins.  NGX_ERROR: the kernel gives nothing, as logged. */
ngx_int_t ngx_http_sluice_request_id_draw(ngx_log_t *log);

/* The variable. */
ngx_int_t ngx_http_sluice_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_SLUICE_REQUEST_ID_H_INCLUDED */
