
#ifndef NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED
#define NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * NGX_OK, or the status with which the request is to be refused: for more than
 * 32 distinct names, more than 1,000 header lines, or for want of memory.
 */

ngx_int_t ngx_http_sluice_hop_by_hop_apply(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED */
