
#ifndef NGX_HTTP_SLUICE_FAULT_H_INCLUDED
#define NGX_HTTP_SLUICE_FAULT_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "refusal.h"


/*
 * Refuses a request for a fault of its head (sluice_fault_e): logs it, and
 * returns the status for nginx to send its page.
 */

ngx_int_t ngx_http_sluice_fault_refuse(ngx_http_request_t *r, uint32_t fault);


#endif /* NGX_HTTP_SLUICE_FAULT_H_INCLUDED */
