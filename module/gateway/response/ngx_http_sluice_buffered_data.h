
/*
 * What is known of a response that is held back, for the files that hold it
 * (ngx_http_sluice_buffered.c) and that Lua calls (_lua.c).
 *
 *   ASKED     a response of the upstream's is to be held
 *   HELD      its head is; its body is being copied
 *   WHOLE     all of it has come, and Lua has it in hand
 *   RELEASED  head and body go out when Lua ends
 *   REPLACED  another body goes out in its place
 *   PASSED    the filters do nothing any more
 */


#ifndef NGX_HTTP_SLUICE_BUFFERED_DATA_H_INCLUDED
#define NGX_HTTP_SLUICE_BUFFERED_DATA_H_INCLUDED


#include "ngx_http_sluice_buffered.h"


typedef enum {
    NGX_HTTP_SLUICE_BUFFERED_ASKED = 0,
    NGX_HTTP_SLUICE_BUFFERED_HELD,
    NGX_HTTP_SLUICE_BUFFERED_WHOLE,
    NGX_HTTP_SLUICE_BUFFERED_RELEASED,
    NGX_HTTP_SLUICE_BUFFERED_REPLACED,
    NGX_HTTP_SLUICE_BUFFERED_PASSED
} ngx_http_sluice_buffered_state_e;


typedef ngx_int_t (*ngx_http_sluice_buffered_init_pt)(void *data);
typedef void (*ngx_http_sluice_buffered_end_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


struct ngx_http_sluice_buffered_s {
    ngx_http_sluice_buffered_state_e   state;
    ngx_uint_t                         level;
    ngx_event_t                        event;     /* WHOLE, or too large */

    ngx_array_t                        pieces;    /* of ngx_str_t */
    size_t                             room;      /* of the last one's */
    size_t                             size;      /* of all */

    ngx_http_sluice_buffered_init_pt   begin;     /* nginx's callbacks */
    ngx_http_sluice_buffered_end_pt    end;

    off_t                              length;    /* Content-Length; -1 */
    ngx_table_elt_t                   *ranges;    /* Accept-Ranges; NULL */

    unsigned                           bounded:1; /* it is too large */
    unsigned                           wanted:1;  /* plugins may read it */
    unsigned                           sent:1;    /* what replaces it is */
};


/* The one that it has, or a new one, PASSED; NULL: no memory. */
ngx_http_sluice_buffered_t *ngx_http_sluice_buffered_make(
    ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx);


#endif /* NGX_HTTP_SLUICE_BUFFERED_DATA_H_INCLUDED */
