
/*
 * Interim responses (1xx) to a client.  nginx sends 100 itself, and no other
 * before its version 1.29.
 *
 * The final response takes its way as it would without.  For that an interim
 * response goes out at once or not at all: one that a client cannot take now
 * would only come late.  It is in neither $bytes_sent nor $body_bytes_sent.
 *
 * By HTTP/2: protocol/ngx_http_sluice_http2_interim.c.
 */


#ifndef NGX_HTTP_SLUICE_INTERIM_H_INCLUDED
#define NGX_HTTP_SLUICE_INTERIM_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef struct {
    ngx_flag_t  enabled;
} ngx_http_sluice_interim_conf_t;


#define NGX_HTTP_SLUICE_INTERIM_DIRECTIVES(at)                                \
    { ngx_string("sluice_early_hints"),                                       \
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,                     \
      ngx_conf_set_flag_slot,                                                 \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at + offsetof(ngx_http_sluice_interim_conf_t, enabled),                 \
      NULL }


extern const size_t  ngx_http_sluice_interim_at;


/*
 * Whether the client takes one now.  None does where they are off, that speaks
 * HTTP/1.0, that has something unread, or that gets a response which a plugin
 * holds back to decide on it (ngx_http_sluice_buffered.h).
 */
ngx_uint_t ngx_http_sluice_interim_wanted(ngx_http_request_t *r);

/*
 * Sends one to a client who takes it, by HTTP/1.1, with all lines of a list.
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_interim_send(ngx_http_request_t *r,
    ngx_uint_t status, ngx_list_t *headers);

/* Bytes that it has by HTTP/1.1. */
size_t ngx_http_sluice_interim_size(ngx_uint_t status, ngx_list_t *headers);


#endif /* NGX_HTTP_SLUICE_INTERIM_H_INCLUDED */
