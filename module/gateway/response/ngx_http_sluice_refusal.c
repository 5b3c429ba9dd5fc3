
/*
 * Refusals are said before they are sent, since a request in whose access
 * phase Lua runs has to be answered from there.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_refusal.h"


ngx_int_t
ngx_http_sluice_refusal(ngx_http_sluice_refusal_t *refusal, ngx_uint_t status)
{
    refusal->status = status;
    ngx_str_null(&refusal->message);
    ngx_str_null(&refusal->location);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_sluice_refusal_set(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal, const sluice_refusal_t *said)
{
    u_char                    *p;
    size_t                     size;
    ngx_uint_t                 i;
    const sluice_core_text_t  *part;

    (void) ngx_http_sluice_refusal(refusal, said->status);

    refusal->message.data = (u_char *) said->message.data;
    refusal->message.len = said->message.length;

    part = said->location;

    if (part[0].data == NULL) {
        return NGX_DECLINED;
    }

    for (i = 0, size = 0; i < SLUICE_REFUSAL_PARTS; i++) {
        size += part[i].length;
    }

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return ngx_http_sluice_refusal(refusal,
                                       NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    refusal->location.data = p;
    refusal->location.len = size;

    for (i = 0; i < SLUICE_REFUSAL_PARTS; i++) {
        p = ngx_cpymem(p, part[i].data, part[i].length);
    }

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_sluice_refusal_send(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    if (refusal->message.len) {
        return ngx_http_sluice_answer(r, refusal->status, &refusal->message);
    }

    if (refusal->location.len) {
        return ngx_http_sluice_answer_redirect(r, refusal->status,
                                               &refusal->location);
    }

    return refusal->status;
}
