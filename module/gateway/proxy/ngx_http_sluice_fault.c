
/*
 * Faults of a request's head (ngx_http_sluice_fault.h).
 */


#include "ngx_http_sluice_fault.h"


ngx_int_t
ngx_http_sluice_fault_refuse(ngx_http_request_t *r, uint32_t fault)
{
    sluice_refusal_t  refusal;

    (void) sluice_refusal_of_head(fault, &refusal);

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "%s", refusal.note);

    return (ngx_int_t) refusal.status;
}
