
/*
 * Variables of the gateway's nginx.conf (cli/nginx_conf.lua).
 *
 * What the request's Lua does not set has a default here, and what needs no
 * Lua is made here, when nginx asks for it: "set" directives would copy each
 * default for every request before its first phase, a map on
 * $upstream_header_time would print a number to take it apart again.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <sys/random.h>

#include "ngx_http_sluice_error_log.h"
#include "ngx_sluice_abi.h"
#include "ngx_sluice_redact.h"


/*
 * A request id has 32 hexadecimal digits: 24 are drawn when a worker starts,
 * 8 count its requests.  An id is unique as long as no two workers draw the
 * same 96 bits; it names a request and is no secret.  nginx's $request_id asks
 * OpenSSL for 16 bytes instead, which costs 8% of a proxied request.
 */

#define NGX_HTTP_SLUICE_ID_DRAWN      12
#define NGX_HTTP_SLUICE_ID_DIGITS     32


typedef struct {
    ngx_str_t  via;             /* what Via says of this gateway */
} ngx_http_sluice_gateway_conf_t;


static void *ngx_http_sluice_gateway_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_gateway_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_gateway_init_process(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_sluice_gateway_draw(ngx_log_t *log);
static ngx_int_t ngx_http_sluice_gateway_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_asked_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_named_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_upstream_ms(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_append_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_list_t *headers);
static size_t ngx_http_sluice_gateway_other_via(ngx_list_t *headers,
    u_char *p);
static ngx_int_t ngx_http_sluice_gateway_response_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_constant(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_sluice_gateway_value(ngx_http_variable_value_t *v,
    u_char *text, size_t length);


extern ngx_module_t  ngx_http_sluice_gateway_module;


static u_char    ngx_http_sluice_id_drawn[2 * NGX_HTTP_SLUICE_ID_DRAWN];
static uint32_t  ngx_http_sluice_id_count;


static ngx_str_t  ngx_http_sluice_nothing = ngx_null_string;
static ngx_str_t  ngx_http_sluice_zero = ngx_string("0");


static ngx_http_variable_t  ngx_http_sluice_gateway_variables[] = {

    /* the same for all of a request's readers, and over its redirects */

    { ngx_string("sluice_request_id"), NULL,
      ngx_http_sluice_gateway_request_id, 0, 0, 0 },

    /* what goes upstream, if it is not what the client has sent */

    { ngx_string("sluice_uri"), NULL,
      ngx_http_sluice_gateway_asked_uri, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_request_path"), NULL,
      ngx_http_sluice_gateway_asked_uri, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_host"), NULL,
      ngx_http_sluice_gateway_host, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* the host that the request names; nothing where it names none */

    { ngx_string("sluice_named_host"), NULL,
      ngx_http_sluice_gateway_named_host, 0, 0, 0 },

    { ngx_string("sluice_prefix"), NULL, ngx_http_sluice_gateway_constant,
      (uintptr_t) &ngx_http_sluice_nothing, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* the way of the request, and of an answer that is not our own */

    { ngx_string("sluice_via"), NULL,
      ngx_http_sluice_gateway_via, 0, 0, 0 },

    { ngx_string("sluice_response_via"), NULL,
      ngx_http_sluice_gateway_response_via, 0, NGX_HTTP_VAR_CHANGEABLE, 0 },

    /* milliseconds: before the upstream was asked, until it answered */

    { ngx_string("sluice_proxy_ms"), NULL, ngx_http_sluice_gateway_constant,
      (uintptr_t) &ngx_http_sluice_zero, NGX_HTTP_VAR_CHANGEABLE, 0 },

    { ngx_string("sluice_upstream_ms"), NULL,
      ngx_http_sluice_gateway_upstream_ms, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_command_t  ngx_http_sluice_gateway_commands[] = {

    { ngx_string("sluice_via"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sluice_gateway_conf_t, via),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_gateway_module_ctx = {
    ngx_http_sluice_gateway_add_variables,  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_sluice_gateway_create_conf,   /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_gateway_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_gateway_module_ctx,   /* module context */
    ngx_http_sluice_gateway_commands,      /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_sluice_gateway_init_process,  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_sluice_gateway_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_gateway_conf_t));
}


static ngx_int_t
ngx_http_sluice_gateway_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_sluice_gateway_variables; v->name.len; v++) {

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


static ngx_int_t
ngx_http_sluice_gateway_init_process(ngx_cycle_t *cycle)
{
    ngx_http_sluice_gateway_conf_t  *gcf;

    gcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_sluice_gateway_module);

    /* an nginx with the module's libraries alone keeps its log as it is */

    if (gcf && gcf->via.len) {
        ngx_http_sluice_error_log_init(cycle);
    }

    return ngx_http_sluice_gateway_draw(cycle->log);
}


static ngx_int_t
ngx_http_sluice_gateway_draw(ngx_log_t *log)
{
    u_char  drawn[NGX_HTTP_SLUICE_ID_DRAWN];

    if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t) sizeof(drawn)) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");
        return NGX_ERROR;
    }

    ngx_hex_dump(ngx_http_sluice_id_drawn, drawn, sizeof(drawn));

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_gateway_request_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char   *id;
    uint32_t  count;

    id = ngx_pnalloc(r->pool, NGX_HTTP_SLUICE_ID_DIGITS);
    if (id == NULL) {
        return NGX_ERROR;
    }

    count = htonl(++ngx_http_sluice_id_count);

    if (count == 0
        && ngx_http_sluice_gateway_draw(r->connection->log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memcpy(id, ngx_http_sluice_id_drawn, sizeof(ngx_http_sluice_id_drawn));
    ngx_hex_dump(id + sizeof(ngx_http_sluice_id_drawn), (u_char *) &count,
                 sizeof(count));

    return ngx_http_sluice_gateway_value(v, id, NGX_HTTP_SLUICE_ID_DIGITS);
}


/* the client's URI as it came, like $request_uri */

static ngx_int_t
ngx_http_sluice_gateway_asked_uri(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_gateway_constant(r, v,
                                            (uintptr_t) &r->unparsed_uri);
}


/* like $host */

static ngx_int_t
ngx_http_sluice_gateway_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_core_srv_conf_t  *cscf;

    if (r->headers_in.server.len) {
        return ngx_http_sluice_gateway_constant(r, v,
                                         (uintptr_t) &r->headers_in.server);
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    return ngx_http_sluice_gateway_constant(r, v,
                                            (uintptr_t) &cscf->server_name);
}


static ngx_int_t
ngx_http_sluice_gateway_named_host(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_gateway_constant(r, v,
                                         (uintptr_t) &r->headers_in.server);
}


/* until the header of the last try came, nothing if none came */

static ngx_int_t
ngx_http_sluice_gateway_upstream_ms(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                     *text;
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL || r->upstream_states->nelts == 0) {
        return ngx_http_sluice_gateway_value(v, NULL, 0);
    }

    state = r->upstream_states->elts;
    state += r->upstream_states->nelts - 1;

    if (state->header_time == (ngx_msec_t) -1) {
        return ngx_http_sluice_gateway_value(v, NULL, 0);
    }

    text = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
    if (text == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_gateway_value(v, text,
                 ngx_sprintf(text, "%M", state->header_time) - text);
}


static ngx_int_t
ngx_http_sluice_gateway_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_http_sluice_gateway_append_via(r, v, &r->headers_in.headers);
}


static ngx_int_t
ngx_http_sluice_gateway_response_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    static ngx_list_t  none;

    return ngx_http_sluice_gateway_append_via(r, v,
               r->upstream ? &r->upstream->headers_in.headers : &none);
}


/* all Via lines in one, with ours behind them (RFC 9110, 7.6.3) */

static ngx_int_t
ngx_http_sluice_gateway_append_via(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, ngx_list_t *headers)
{
    u_char                          *text, *p;
    size_t                           length;
    ngx_http_sluice_gateway_conf_t  *gcf;

    gcf = ngx_http_get_module_main_conf(r, ngx_http_sluice_gateway_module);

    length = ngx_http_sluice_gateway_other_via(headers, NULL);

    if (length == 0) {
        return ngx_http_sluice_gateway_constant(r, v, (uintptr_t) &gcf->via);
    }

    text = ngx_pnalloc(r->pool, length + gcf->via.len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = text + ngx_http_sluice_gateway_other_via(headers, text);
    ngx_memcpy(p, gcf->via.data, gcf->via.len);

    return ngx_http_sluice_gateway_value(v, text, length + gcf->via.len);
}


/* writes what these lines say, unless p is NULL; returns its length */

static size_t
ngx_http_sluice_gateway_other_via(ngx_list_t *headers, u_char *p)
{
    size_t            length;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    length = 0;

    for (part = &headers->part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len != sizeof("via") - 1
                || h[i].value.len == 0
                || ngx_strncasecmp(h[i].key.data, (u_char *) "via",
                                   sizeof("via") - 1)
                   != 0)
            {
                continue;
            }

            length += h[i].value.len + sizeof(", ") - 1;

            if (p) {
                p = ngx_cpymem(p, h[i].value.data, h[i].value.len);
                p = ngx_cpymem(p, ", ", sizeof(", ") - 1);
            }
        }
    }

    return length;
}


static ngx_int_t
ngx_http_sluice_gateway_constant(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  *text;

    text = (ngx_str_t *) data;

    return ngx_http_sluice_gateway_value(v, text->data, text->len);
}


static ngx_int_t
ngx_http_sluice_gateway_value(ngx_http_variable_value_t *v, u_char *text,
    size_t length)
{
    v->data = text;
    v->len = length;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}
