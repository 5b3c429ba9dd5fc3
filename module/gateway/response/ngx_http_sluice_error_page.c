
/*
 * What clients get where nginx would send a page of its own: of a request that
 * it refuses, of an upstream that did not answer.
 *
 *     error_page 404 502 @error;
 *
 *     location @error {
 *         sluice_error_page;
 *     }
 *
 * The answer is sent in the content phase, so that the late phases of the
 * location see it.  A subrequest gets nginx's own page.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_error_page.h"


static ngx_int_t ngx_http_sluice_error_page_handler(ngx_http_request_t *r);


static ngx_int_t
ngx_http_sluice_error_page_handler(ngx_http_request_t *r)
{
    ngx_str_t              *message;
    ngx_uint_t              status;
    ngx_http_sluice_ctx_t  *ctx;

    /* without an error somebody has asked for the page by its own name */

    status = r->err_status ? r->err_status : NGX_HTTP_NOT_FOUND;

    /* what the answer sets are variables, which its main request has, too */

    if (r != r->main) {
        return status;
    }

    ctx = ngx_http_sluice_ctx(r);

    message = ctx && ctx->bound && ctx->bound->received > ctx->bound->size
              ? &ctx->bound->message : NULL;

    return ngx_http_sluice_answer(r, status, message);
}


char *
ngx_http_sluice_error_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_sluice_error_page_handler;

    return NGX_CONF_OK;
}
