
/*
 * Variables of the gateway's nginx.conf (cli/nginx/conf.lua).
 *
 * What the request's Lua does not set has a default here, and what needs no
 * Lua is made here, when nginx asks for it: "set" directives would copy each
 * default for every request before its first phase, a map on
 * $upstream_header_time would print a number to take it apart again.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_request_id.h"
#include "ngx_http_sluice_value.h"
#include "ngx_http_sluice_variables.h"
#include "ngx_sluice_redact.h"
#include "decimal.h"


static ngx_int_t ngx_http_sluice_variables_asked_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_variables_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_variables_named_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_variables_server_port(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_variables_upstream_ms(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_variables_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uint64_t number);
static ngx_int_t ngx_http_sluice_variables_constant(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static ngx_str_t  ngx_http_sluice_nothing = ngx_null_string;
static ngx_str_t  ngx_http_sluice_zero = ngx_string("0");


static ngx_http_variable_t  ngx_http_sluice_variables[] = {

    /* the same for all of a request's readers, and over its redirects */

    { ngx_string("sluice_request_id"), NULL,
      ngx_http_sluice_request_id, 0, 0, 0 },

    /* what goes upstream, if it is not what the client has sent */

    { ngx_string("sluice_uri"), NULL,
      ngx_http_sluice_variables_asked_uri, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_request_path"), NULL,
      ngx_http_sluice_variables_asked_uri, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_host"), NULL,
      ngx_http_sluice_variables_host, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* the host that the request names; nothing where it names none */

    { ngx_string("sluice_named_host"), NULL,
      ngx_http_sluice_variables_named_host, 0, 0, 0 },

    /* the port that the client has connected to; of a Unix socket nothing */

    { ngx_string("sluice_server_port"), NULL,
      ngx_http_sluice_variables_server_port, 0, 0, 0 },

    { ngx_string("sluice_prefix"), NULL, ngx_http_sluice_variables_constant,
      (uintptr_t) &ngx_http_sluice_nothing, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* the way of the request, and of an answer that is not our own */

    { ngx_string("sluice_via"), NULL,
      ngx_http_sluice_via_of_request, 0, 0, 0 },

    { ngx_string("sluice_response_via"), NULL,
      ngx_http_sluice_via_of_response, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* milliseconds: before the upstream was asked, until it answered */

    { ngx_string("sluice_proxy_ms"), NULL, ngx_http_sluice_variables_constant,
      (uintptr_t) &ngx_http_sluice_zero, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_upstream_ms"), NULL,
      ngx_http_sluice_variables_upstream_ms, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_sluice_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_sluice_variables; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;

        /* what is set, or drawn once, has its place in the index */

        if (ngx_http_get_variable_index(cf, &v->name) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_redact_add_variable(cf);
}


ngx_int_t
ngx_http_sluice_variables_init_process(ngx_cycle_t *cycle,
    ngx_http_sluice_via_conf_t *via)
{
    /* an nginx with the module's libraries alone keeps its log as it is */

    if (via->own.len) {
        ngx_http_sluice_error_log_init(cycle);
    }

    return ngx_http_sluice_request_id_draw(cycle->log);
}


/* the client's URI as it came, like $request_uri */

static ngx_int_t
ngx_http_sluice_variables_asked_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_variables_constant(r, v,
                                              (uintptr_t) &r->unparsed_uri);
}


/* like $host */

static ngx_int_t
ngx_http_sluice_variables_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_core_srv_conf_t  *cscf;

    if (r->headers_in.server.len) {
        return ngx_http_sluice_variables_constant(r, v,
                                         (uintptr_t) &r->headers_in.server);
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    return ngx_http_sluice_variables_constant(r, v,
                                              (uintptr_t) &cscf->server_name);
}


static ngx_int_t
ngx_http_sluice_variables_named_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_variables_constant(r, v,
                                         (uintptr_t) &r->headers_in.server);
}


/* until the header of the last try came, nothing if none came */

static ngx_int_t
ngx_http_sluice_variables_upstream_ms(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL || r->upstream_states->nelts == 0) {
        return ngx_http_sluice_value(v, NULL, 0);
    }

    state = r->upstream_states->elts;
    state += r->upstream_states->nelts - 1;

    if (state->header_time == (ngx_msec_t) -1) {
        return ngx_http_sluice_value(v, NULL, 0);
    }

    return ngx_http_sluice_variables_number(r, v, state->header_time);
}


/* like $server_port, which costs three times as much */

static ngx_int_t
ngx_http_sluice_variables_server_port(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    in_port_t  port;

    if (ngx_connection_local_sockaddr(r->connection, NULL, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    port = ngx_inet_get_port(r->connection->local_sockaddr);

    return port ? ngx_http_sluice_variables_number(r, v, port)
                : ngx_http_sluice_value(v, NULL, 0);
}


static ngx_int_t
ngx_http_sluice_variables_number(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uint64_t number)
{
    u_char  *text, *end;

    text = ngx_pnalloc(r->pool, SLUICE_CORE_DECIMAL);
    if (text == NULL) {
        return NGX_ERROR;
    }

    end = (u_char *) sluice_core_decimal((char *) text, number);

    return ngx_http_sluice_value(v, text, end - text);
}


static ngx_int_t
ngx_http_sluice_variables_constant(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  *text;

    text = (ngx_str_t *) data;

    return ngx_http_sluice_value(v, text->data, text->len);
}
