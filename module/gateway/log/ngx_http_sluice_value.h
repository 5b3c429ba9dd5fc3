
/*
 * Values of variables.
 */


#ifndef NGX_HTTP_SLUICE_VALUE_H_INCLUDED
#define NGX_HTTP_SLUICE_VALUE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Sets one to a text that stays; NGX_OK, for its handler to return. */

static ngx_inline ngx_int_t
ngx_http_sluice_value(ngx_http_variable_value_t *v, u_char *text,
    size_t length)
{
    v->data = text;
    v->len = length;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


#endif /* NGX_HTTP_SLUICE_VALUE_H_INCLUDED */
