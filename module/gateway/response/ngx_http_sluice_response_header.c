
/*
 * Lines that the gateway adds to responses.
 *
 *     server {
 *         sluice_response_header Via $sluice_response_via;
 *     }
 *
 * As "add_header ... always" in the place of that, behind the header filters
 * of Lua (module/config): a line, unless the value is empty.  The value is one
 * variable, which is read where it stands, and not by a program that copies
 * it.
 */


#include "ngx_http_sluice_answer.h"


typedef struct {
    ngx_str_t     name;
    ngx_uint_t    index;                       /* of the variable */
} ngx_http_sluice_response_header_line_t;


typedef struct {
    ngx_array_t  *lines;                       /* NULL: none */
} ngx_http_sluice_response_header_conf_t;


static ngx_int_t ngx_http_sluice_response_header_filter(
    ngx_http_request_t *r);
static char *ngx_http_sluice_response_header(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static void *ngx_http_sluice_response_header_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_response_header_init(ngx_conf_t *cf);

extern ngx_module_t  ngx_http_sluice_response_header_module;


static ngx_http_output_header_filter_pt  ngx_http_sluice_response_header_next;


static ngx_command_t  ngx_http_sluice_response_header_commands[] = {

    { ngx_string("sluice_response_header"),
      NGX_HTTP_SRV_CONF|NGX_CONF_TAKE2,
      ngx_http_sluice_response_header,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_response_header_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_response_header_init,  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_response_header_create_conf,  /* create server
                                                     configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_response_header_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_response_header_module_ctx,  /* module context */
    ngx_http_sluice_response_header_commands,     /* module directives */
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
ngx_http_sluice_response_header_filter(ngx_http_request_t *r)
{
    ngx_str_t                                value;
    ngx_uint_t                               i;
    ngx_http_variable_value_t               *v;
    ngx_http_sluice_response_header_conf_t  *conf;
    ngx_http_sluice_response_header_line_t  *line;

    conf = ngx_http_get_module_srv_conf(r,
                                       ngx_http_sluice_response_header_module);

    if (conf->lines == NULL || r != r->main) {
        return ngx_http_sluice_response_header_next(r);
    }

    ngx_http_sluice_answer_method(r);

    line = conf->lines->elts;

    for (i = 0; i < conf->lines->nelts; i++) {

        v = ngx_http_get_flushed_variable(r, line[i].index);

        if (v == NULL) {
            return NGX_ERROR;
        }

        if (v->not_found || v->len == 0) {
            continue;
        }

        value.data = v->data;
        value.len = v->len;

        if (ngx_http_sluice_answer_push(r, &line[i].name, &value) == NULL) {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_response_header_next(r);
}


static char *
ngx_http_sluice_response_header(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sluice_response_header_conf_t  *rcf = conf;

    ngx_int_t                                index;
    ngx_str_t                               *value;
    ngx_http_sluice_response_header_line_t  *line;

    if (rcf->lines == NULL) {
        rcf->lines = ngx_array_create(cf->pool, 4,
                              sizeof(ngx_http_sluice_response_header_line_t));
        if (rcf->lines == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    if (value[2].len < 2 || value[2].data[0] != '$') {
        return "has a value that is not one variable";
    }

    value[2].data++;
    value[2].len--;

    index = ngx_http_get_variable_index(cf, &value[2]);
    if (index == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    line = ngx_array_push(rcf->lines);
    if (line == NULL) {
        return NGX_CONF_ERROR;
    }

    line->name = value[1];
    line->index = (ngx_uint_t) index;

    return NGX_CONF_OK;
}


static void *
ngx_http_sluice_response_header_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool,
                       sizeof(ngx_http_sluice_response_header_conf_t));
}


static ngx_int_t
ngx_http_sluice_response_header_init(ngx_conf_t *cf)
{
    ngx_http_sluice_response_header_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_sluice_response_header_filter;

    return NGX_OK;
}
