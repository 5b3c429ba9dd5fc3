
/*
 * Reads what lib/sluice/packed.lua has written: words of 32 bits and doubles
 * in the machine's order, texts behind their length.
 *
 * Any bytes are safe.  What is not there reads as 0 or as no text, and so does
 * all behind it; who has read all asks ngx_http_sluice_packed_done() once.
 */


#ifndef NGX_HTTP_SLUICE_PACKED_H_INCLUDED
#define NGX_HTTP_SLUICE_PACKED_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


typedef struct {
    const u_char  *at;
    const u_char  *end;
    ngx_uint_t     failed;
} ngx_http_sluice_packed_t;


/* Begins to read bytes, which have to stay where they are. */
void ngx_http_sluice_packed_open(ngx_http_sluice_packed_t *packed,
    const ngx_str_t *bytes);

/* 0 to 2^32 - 1 */
uint32_t ngx_http_sluice_packed_number(ngx_http_sluice_packed_t *packed);

/* Any number of Lua's; never NaN. */
double ngx_http_sluice_packed_double(ngx_http_sluice_packed_t *packed);

/* In the bytes; data NULL, len 0: it was not given. */
void ngx_http_sluice_packed_text(ngx_http_sluice_packed_t *packed,
    ngx_str_t *text);

/* Of a list of texts, which follow: not more than there are bytes for. */
uint32_t ngx_http_sluice_packed_count(ngx_http_sluice_packed_t *packed);

/* NGX_OK: all was there and nothing is left; NGX_ERROR. */
ngx_int_t ngx_http_sluice_packed_done(ngx_http_sluice_packed_t *packed);


#endif /* NGX_HTTP_SLUICE_PACKED_H_INCLUDED */
