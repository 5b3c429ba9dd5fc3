
/*
 * The http module: the directive that gives variables their numbers.
 */


#include "ngx_http_sluice_var.h"


typedef struct {
    /* of ngx_http_sluice_var_t; its places are the numbers */
    ngx_array_t  vars;
} ngx_http_sluice_var_conf_t;


static void *ngx_http_sluice_var_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_sluice_var_index(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_sluice_var_add(ngx_conf_t *cf,
    ngx_http_sluice_var_conf_t *vcf, ngx_str_t *name, ngx_uint_t optional);
static ngx_int_t ngx_http_sluice_var_check(ngx_conf_t *cf);
static ngx_uint_t ngx_http_sluice_var_known(ngx_http_core_main_conf_t *cmcf,
    ngx_str_t *name);
static ngx_http_sluice_var_conf_t *ngx_http_sluice_var_conf(void);
static ngx_int_t ngx_http_sluice_var_init_process(ngx_cycle_t *cycle);


/*
 * What "default" stands for: what a gateway, its plugins and its loggers read
 * of a request.  Variables of modules that this nginx lacks are passed over.
 * docs/var.md has the list, too.
 */

static ngx_str_t  ngx_http_sluice_var_defaults[] = {
    ngx_string("args"),
    ngx_string("body_bytes_sent"),
    ngx_string("bytes_sent"),
    ngx_string("connection"),
    ngx_string("connection_requests"),
    ngx_string("content_length"),
    ngx_string("content_type"),
    ngx_string("document_uri"),
    ngx_string("host"),
    ngx_string("hostname"),
    ngx_string("http2"),
    ngx_string("http_accept"),
    ngx_string("http_accept_encoding"),
    ngx_string("http_authorization"),
    ngx_string("http_connection"),
    ngx_string("http_cookie"),
    ngx_string("http_expect"),
    ngx_string("http_host"),
    ngx_string("http_origin"),
    ngx_string("http_proxy"),
    ngx_string("http_proxy_connection"),
    ngx_string("http_referer"),
    ngx_string("http_te"),
    ngx_string("http_upgrade"),
    ngx_string("http_user_agent"),
    ngx_string("http_via"),
    ngx_string("http_x_forwarded_for"),
    ngx_string("http_x_forwarded_host"),
    ngx_string("http_x_forwarded_path"),
    ngx_string("http_x_forwarded_port"),
    ngx_string("http_x_forwarded_prefix"),
    ngx_string("http_x_forwarded_proto"),
    ngx_string("http_x_real_ip"),
    ngx_string("http_x_request_id"),
    ngx_string("https"),
    ngx_string("is_args"),
    ngx_string("query_string"),
    ngx_string("realip_remote_addr"),
    ngx_string("realip_remote_port"),
    ngx_string("remote_addr"),
    ngx_string("remote_port"),
    ngx_string("remote_user"),
    ngx_string("request"),
    ngx_string("request_body"),
    ngx_string("request_body_file"),
    ngx_string("request_completion"),
    ngx_string("request_id"),
    ngx_string("request_length"),
    ngx_string("request_method"),
    ngx_string("request_time"),
    ngx_string("request_uri"),
    ngx_string("scheme"),
    ngx_string("sent_http_content_length"),
    ngx_string("sent_http_content_type"),
    ngx_string("server_addr"),
    ngx_string("server_name"),
    ngx_string("server_port"),
    ngx_string("server_protocol"),
    ngx_string("ssl_cipher"),
    ngx_string("ssl_client_raw_cert"),
    ngx_string("ssl_client_s_dn"),
    ngx_string("ssl_client_verify"),
    ngx_string("ssl_protocol"),
    ngx_string("ssl_server_name"),
    ngx_string("status"),
    ngx_string("upstream_addr"),
    ngx_string("upstream_bytes_received"),
    ngx_string("upstream_connect_time"),
    ngx_string("upstream_header_time"),
    ngx_string("upstream_http_connection"),
    ngx_string("upstream_http_content_type"),
    ngx_string("upstream_http_trailer"),
    ngx_string("upstream_http_upgrade"),
    ngx_string("upstream_response_length"),
    ngx_string("upstream_response_time"),
    ngx_string("upstream_status"),
    ngx_string("uri"),
    ngx_null_string
};


static ngx_command_t  ngx_http_sluice_var_commands[] = {

    { ngx_string("sluice_var_index"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_sluice_var_index,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    /* lua-kong-nginx-module's name of it */

    { ngx_string("lua_kong_load_var_index"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_sluice_var_index,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_var_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_var_check,             /* postconfiguration */

    ngx_http_sluice_var_create_main_conf,  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_var_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_var_module_ctx,       /* module context */
    ngx_http_sluice_var_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_sluice_var_init_process,      /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_sluice_var_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_var_conf_t  *vcf;

    vcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_var_conf_t));
    if (vcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&vcf->vars, cf->pool, 16, sizeof(ngx_http_sluice_var_t))
        != NGX_OK)
    {
        return NULL;
    }

    return vcf;
}


static char *
ngx_http_sluice_var_index(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sluice_var_conf_t  *vcf = conf;

    ngx_str_t   *value, name;
    ngx_uint_t   i, n;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "default") == 0) {

            for (n = 0; ngx_http_sluice_var_defaults[n].len; n++) {
                if (ngx_http_sluice_var_add(cf, vcf,
                                         &ngx_http_sluice_var_defaults[n], 1)
                    != NGX_CONF_OK)
                {
                    return NGX_CONF_ERROR;
                }
            }

            continue;
        }

        name.data = value[i].data + 1;
        name.len = value[i].len - 1;

        if (value[i].len < 2
            || value[i].data[0] != '$'
            || ngx_strlen(name.data)
               != strspn((char *) name.data, "abcdefghijklmnopqrstuvwxyz"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_"))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid variable name \"%V\" in \"%V\"",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }

        if (ngx_http_sluice_var_add(cf, vcf, &name, 0) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_sluice_var_add(ngx_conf_t *cf, ngx_http_sluice_var_conf_t *vcf,
    ngx_str_t *name, ngx_uint_t optional)
{
    ngx_uint_t              i;
    ngx_http_sluice_var_t  *v;

    v = vcf->vars.elts;

    for (i = 0; i < vcf->vars.nelts; i++) {
        if (v[i].name.len == name->len
            && ngx_strncasecmp(v[i].name.data, name->data, name->len) == 0)
        {
            if (v[i].optional && !optional) {
                v = &v[i];
                goto named;
            }

            return NGX_CONF_OK;
        }
    }

    v = ngx_array_push(&vcf->vars);
    if (v == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(v, sizeof(ngx_http_sluice_var_t));

    v->name.len = name->len;
    v->name.data = ngx_pnalloc(cf->pool, name->len);
    if (v->name.data == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_strlow(v->name.data, name->data, name->len);

named:

    v->file = cf->conf_file->file.name;
    v->line = cf->conf_file->line;
    v->optional = optional;

    return NGX_CONF_OK;
}


/*
 * Names that nobody defines.  Only now are all variables there; nginx's own
 * complaint about such a name knows neither file nor line.
 */

static ngx_int_t
ngx_http_sluice_var_check(ngx_conf_t *cf)
{
    ngx_uint_t                   i;
    ngx_http_sluice_var_t       *v;
    ngx_http_sluice_var_conf_t  *vcf;
    ngx_http_core_main_conf_t   *cmcf;

    vcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_var_module);
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    v = vcf->vars.elts;

    for (i = 0; i < vcf->vars.nelts; i++) {

        if (v[i].optional || ngx_http_sluice_var_known(cmcf, &v[i].name)) {
            continue;
        }

        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "unknown variable \"$%V\" to be indexed in %V:%ui",
                      &v[i].name, &v[i].file, v[i].line);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_var_known(ngx_http_core_main_conf_t *cmcf, ngx_str_t *name)
{
    ngx_uint_t            i;
    ngx_hash_key_t       *key;
    ngx_http_variable_t  *prefix;

    key = cmcf->variables_keys->keys.elts;

    for (i = 0; i < cmcf->variables_keys->keys.nelts; i++) {
        if (key[i].key.len == name->len
            && ngx_strncmp(key[i].key.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    prefix = cmcf->prefix_variables.elts;

    for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
        if (name->len >= prefix[i].name.len
            && ngx_strncmp(name->data, prefix[i].name.data, prefix[i].name.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_sluice_var_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_http_sluice_var_t       *v;
    ngx_http_sluice_var_conf_t  *vcf;
    ngx_http_core_main_conf_t   *cmcf;

    vcf = ngx_http_sluice_var_conf();

    if (vcf == NULL) {
        return NGX_OK;
    }

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    v = vcf->vars.elts;

    for (i = 0; i < vcf->vars.nelts; i++) {
        ngx_http_sluice_var_resolve(cmcf, &v[i]);
    }

    ngx_http_sluice_var_publish(&vcf->vars);

    return NGX_OK;
}


/*
 * That of the Lua code that asks: in init_by_lua the Lua module makes the new
 * cycle the current one, and a worker has no other than its own.  NULL without
 * an http block.
 */

static ngx_http_sluice_var_conf_t *
ngx_http_sluice_var_conf(void)
{
    return ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_sluice_var_module);
}


/* How many numbers there are: 0 to this less 1. */

int
sluice_var_count(void)
{
    ngx_http_sluice_var_conf_t  *vcf;

    vcf = ngx_http_sluice_var_conf();

    return vcf ? (int) vcf->vars.nelts : 0;
}


/* The length of a number's name, which is put into *data. */

int
sluice_var_name(int number, u_char **data)
{
    ngx_http_sluice_var_t  *v;

    v = ngx_http_sluice_var_conf()->vars.elts;

    *data = v[number].name.data;

    return (int) v[number].name.len;
}
