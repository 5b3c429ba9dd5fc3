
#ifndef NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED
#define NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * NGX_OK; or NGX_DECLINED: the request has a fault, SLUICE_FAULT_LINES or
 * _OPTIONS (refusal.h), of more than 32 distinct names; NGX_ERROR: no memory.
 */

ngx_int_t ngx_http_sluice_hop_by_hop_apply(ngx_http_request_t *r,
    uint32_t *fault);


#endif /* NGX_HTTP_SLUICE_HOP_BY_HOP_H_INCLUDED */
