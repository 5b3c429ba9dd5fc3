
/*
 * A request of nginx's, as plugins that decide in plain C ask for it.
 */


#ifndef NGX_HTTP_SLUICE_DECIDE_REQUEST_H_INCLUDED
#define NGX_HTTP_SLUICE_DECIDE_REQUEST_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "decision.h"


/* What the calls get as data. */

typedef struct {
    ngx_http_request_t     *request;
    ngx_http_sluice_ctx_t  *ctx;
} ngx_http_sluice_decide_request_t;


extern const sluice_decision_calls_t  ngx_http_sluice_decide_calls;


#endif /* NGX_HTTP_SLUICE_DECIDE_REQUEST_H_INCLUDED */
