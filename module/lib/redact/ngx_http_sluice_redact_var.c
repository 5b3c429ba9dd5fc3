
/*
 * Variables $sluice_log_<name>: what $<name> is, fit for a log.  Formats of
 * access logs get them in the place of those that may hold a secret
 * (cli/nginx/conf.lua).
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_sluice_redact.h"


typedef struct {
    ngx_str_t  name;
    ngx_int_t  kind;
} ngx_http_sluice_redact_var_t;


/* in the place of a kind of text: nothing of the value is shown, or nothing
 * if its name, behind the prefix, is a secret's */

#define NGX_SLUICE_REDACT_WHOLE  -1
#define NGX_SLUICE_REDACT_NAMED  -2


static ngx_int_t ngx_http_sluice_redact_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_redact_kind(ngx_str_t *name);


static ngx_str_t  ngx_http_sluice_redact_prefix = ngx_string("sluice_log_");
static ngx_str_t  ngx_http_sluice_redacted = ngx_string(NGX_SLUICE_REDACTED);


static ngx_http_sluice_redact_var_t  ngx_http_sluice_redact_vars[] = {

    { ngx_string("args"), NGX_SLUICE_REDACT_QUERY },
    { ngx_string("query_string"), NGX_SLUICE_REDACT_QUERY },
    { ngx_string("remote_user"), NGX_SLUICE_REDACT_WHOLE },
    { ngx_string("request"), NGX_SLUICE_REDACT_REQUEST },
    { ngx_string("request_body"), NGX_SLUICE_REDACT_WHOLE },

      { ngx_null_string, 0 }
};


static ngx_http_sluice_redact_var_t  ngx_http_sluice_redact_prefixes[] = {

    { ngx_string("arg_"), NGX_SLUICE_REDACT_NAMED },
    { ngx_string("cookie_"), NGX_SLUICE_REDACT_WHOLE },
    { ngx_string("http_"), NGX_SLUICE_REDACT_NAMED },
    { ngx_string("sent_http_"), NGX_SLUICE_REDACT_NAMED },
    { ngx_string("upstream_cookie_"), NGX_SLUICE_REDACT_WHOLE },
    { ngx_string("upstream_http_"), NGX_SLUICE_REDACT_NAMED },

      { ngx_null_string, 0 }
};


ngx_int_t
ngx_http_sluice_redact_add_variable(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var;

    var = ngx_http_add_variable(cf, &ngx_http_sluice_redact_prefix,
                                NGX_HTTP_VAR_NOCACHEABLE|NGX_HTTP_VAR_PREFIX);
    if (var == NULL) {
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_sluice_redact_variable;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_redact_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                     *text;
    ngx_int_t                   kind;
    ngx_str_t                   name;
    ngx_http_variable_value_t  *own;

    name = *(ngx_str_t *) data;
    name.data += ngx_http_sluice_redact_prefix.len;
    name.len -= ngx_http_sluice_redact_prefix.len;

    own = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));

    if (own == NULL) {
        return NGX_ERROR;
    }

    *v = *own;

    if (own->not_found || own->len == 0) {
        return NGX_OK;
    }

    kind = ngx_http_sluice_redact_kind(&name);

    if (kind == NGX_SLUICE_REDACT_WHOLE) {
        v->data = ngx_http_sluice_redacted.data;
        v->len = ngx_http_sluice_redacted.len;
        return NGX_OK;
    }

    text = ngx_pnalloc(r->pool, NGX_SLUICE_REDACT_GROWTH * own->len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    v->len = ngx_sluice_redact(text, own->data, own->len, kind);
    v->data = text;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_redact_kind(ngx_str_t *name)
{
    ngx_http_sluice_redact_var_t  *var;

    for (var = ngx_http_sluice_redact_vars; var->name.len; var++) {

        if (name->len == var->name.len
            && ngx_memcmp(name->data, var->name.data, name->len) == 0)
        {
            return var->kind;
        }
    }

    for (var = ngx_http_sluice_redact_prefixes; var->name.len; var++) {

        if (name->len <= var->name.len
            || ngx_memcmp(name->data, var->name.data, var->name.len) != 0)
        {
            continue;
        }

        if (var->kind == NGX_SLUICE_REDACT_NAMED
            && !ngx_sluice_redact_is_secret(name->data + var->name.len,
                                            name->len - var->name.len))
        {
            return NGX_SLUICE_REDACT_URI;
        }

        return NGX_SLUICE_REDACT_WHOLE;
    }

    return NGX_SLUICE_REDACT_URI;
}
