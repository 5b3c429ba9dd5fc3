
/*
 * Ids of requests (ngx_http_sluice_request_id.h).
 */


#include "ngx_http_sluice_request_id.h"
#include "ngx_http_sluice_value.h"

#include <sys/random.h>


#define NGX_HTTP_SLUICE_REQUEST_ID_DRAWN   12
#define NGX_HTTP_SLUICE_REQUEST_ID_DIGITS  32


static u_char    ngx_http_sluice_request_id_drawn[
                     2 * NGX_HTTP_SLUICE_REQUEST_ID_DRAWN];
static uint32_t  ngx_http_sluice_request_id_count;


ngx_int_t
ngx_http_sluice_request_id_draw(ngx_log_t *log)
{
    u_char  drawn[NGX_HTTP_SLUICE_REQUEST_ID_DRAWN];

    if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t) sizeof(drawn)) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");
        return NGX_ERROR;
    }

    ngx_hex_dump(ngx_http_sluice_request_id_drawn, drawn, sizeof(drawn));

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char    *id, *p;
    uint32_t   count;

    id = ngx_pnalloc(r->pool, NGX_HTTP_SLUICE_REQUEST_ID_DIGITS);
    if (id == NULL) {
        return NGX_ERROR;
    }

    count = htonl(++ngx_http_sluice_request_id_count);

    if (count == 0
        && ngx_http_sluice_request_id_draw(r->connection->log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = ngx_cpymem(id, ngx_http_sluice_request_id_drawn,
                   sizeof(ngx_http_sluice_request_id_drawn));

    ngx_hex_dump(p, (u_char *) &count, sizeof(count));

    return ngx_http_sluice_value(v, id, NGX_HTTP_SLUICE_REQUEST_ID_DIGITS);
}
