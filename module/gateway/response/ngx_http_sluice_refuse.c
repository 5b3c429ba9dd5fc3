
/*
 * Refusals are said before they are sent, since a request in whose access
 * phase Lua runs has to be answered from there.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_refuse.h"


ngx_int_t
ngx_http_sluice_refusal(ngx_http_sluice_refusal_t *refusal, ngx_uint_t status,
    const char *message)
{
    refusal->status = status;
    refusal->message.data = (u_char *) message;
    refusal->message.len = message ? ngx_strlen(message) : 0;
    ngx_str_null(&refusal->location);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_sluice_refuse(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    if (refusal->message.len) {
        return ngx_http_sluice_answer(r, refusal->status, &refusal->message);
    }

    if (refusal->location.len) {
        return ngx_http_sluice_redirect(r, refusal->status,
                                        &refusal->location);
    }

    return refusal->status;
}
