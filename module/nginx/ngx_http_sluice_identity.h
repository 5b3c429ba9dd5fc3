
/*
 * Who a request comes from, as authentication has found out.
 */


#ifndef NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED
#define NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED


#include "core.h"
#include "ngx_http_sluice_plugin.h"


/*
 * Records a consumer and a credential (records of the image, NULL: none; a
 * consumer without a credential is an anonymous one), for later plugins and
 * for the upstream: X-Consumer-ID, X-Consumer-Custom-ID, X-Consumer-Username,
 * X-Credential-Identifier, X-Anonymous-Consumer are set or cleared.  Copies
 * what it needs into the request's pool.  NGX_OK, or NGX_ERROR: no memory, the
 * request is to be answered 500.
 */
ngx_int_t ngx_http_sluice_authenticate(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_found_t *consumer,
    const sluice_core_found_t *credential);


#endif /* NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED */
