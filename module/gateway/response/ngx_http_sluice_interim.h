
/*
 * Interim responses (1xx) to a client.  nginx sends 100 itself, and no other
 * before its version 1.29.
 *
 * What is sent here stands in none of nginx's structures, so the final
 * response takes its way as it would without.  For that an interim response
 * goes out at once or not at all: one that a client cannot take now would only
 * come late.  By HTTP/2: protocol/ngx_http_sluice_http2_interim.c.
 */


#ifndef NGX_HTTP_SLUICE_INTERIM_H_INCLUDED
#define NGX_HTTP_SLUICE_INTERIM_H_INCLUDED


#include "ngx_http_sluice_module.h"


/*
 * Whether the client takes one now.  None does that speaks HTTP/1.0, or has
 * something unread, or gets a response that a plugin holds back to decide on
 * it (ngx_http_sluice_buffered.h).
 */
ngx_uint_t ngx_http_sluice_interim_wanted(ngx_http_request_t *r);

/*
 * Sends one to a client who takes it, by HTTP/1.1: "103 Early Hints", and all
 * lines of a list.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_interim_send(ngx_http_request_t *r,
    ngx_str_t *status_line, ngx_list_t *headers);

/* Bytes of the lines. */
size_t ngx_http_sluice_interim_size(ngx_list_t *headers);


#endif /* NGX_HTTP_SLUICE_INTERIM_H_INCLUDED */
