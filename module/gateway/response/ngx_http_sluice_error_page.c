
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


static ngx_int_t ngx_http_sluice_error_page_handler(ngx_http_request_t *r);
static char *ngx_http_sluice_error_page(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_command_t  ngx_http_sluice_error_page_commands[] = {

    { ngx_string("sluice_error_page"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_sluice_error_page,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_error_page_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_error_page_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_error_page_module_ctx,  /* module context */
    ngx_http_sluice_error_page_commands,   /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_sluice_error_page_handler(ngx_http_request_t *r)
{
    ngx_uint_t  status;

    /* without an error somebody has asked for the page by its own name */

    status = r->err_status ? r->err_status : NGX_HTTP_NOT_FOUND;

    /* what the answer sets are variables, which its main request has, too */

    if (r != r->main) {
        return status;
    }

    return ngx_http_sluice_answer(r, status, NULL);
}


static char *
ngx_http_sluice_error_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_sluice_error_page_handler;

    return NGX_CONF_OK;
}
