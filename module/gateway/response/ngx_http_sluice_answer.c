
#include "ngx_http_sluice_answer.h"
#include "ngx_sluice_abi.h"


typedef enum {
    NGX_HTTP_SLUICE_ANSWER_ACCEPT = 0,
    NGX_HTTP_SLUICE_ANSWER_CONTENT_TYPE,
    NGX_HTTP_SLUICE_ANSWER_REQUEST_ID,
    NGX_HTTP_SLUICE_ANSWER_RESPONSE_VIA,
    NGX_HTTP_SLUICE_ANSWER_PROXY_MS,
    NGX_HTTP_SLUICE_ANSWER_VARIABLES
} ngx_http_sluice_answer_variable_e;


typedef struct {
    ngx_str_t   server;             /* empty: no such header */
    ngx_str_t   latency;            /* its name; empty: the same */
    int         default_format;     /* for a client that names none */
    ngx_int_t   variables[NGX_HTTP_SLUICE_ANSWER_VARIABLES];    /* indices */
} ngx_http_sluice_answer_conf_t;


static ngx_int_t ngx_http_sluice_answer_send(ngx_http_request_t *r,
    ngx_uint_t status, sluice_core_text_t *body);
static int ngx_http_sluice_answer_format(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_answer_read(ngx_http_request_t *r,
    ngx_uint_t variable, sluice_core_text_t *text);
static char *ngx_http_sluice_answer_default_type(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static void *ngx_http_sluice_answer_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_answer_init(ngx_conf_t *cf);

extern ngx_module_t  ngx_http_sluice_answer_module;


static ngx_command_t  ngx_http_sluice_answer_commands[] = {

    { ngx_string("sluice_answer_server"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sluice_answer_conf_t, server),
      NULL },

    { ngx_string("sluice_answer_latency"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sluice_answer_conf_t, latency),
      NULL },

    { ngx_string("sluice_answer_default_type"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_sluice_answer_default_type,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_answer_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_answer_init,           /* postconfiguration */

    ngx_http_sluice_answer_create_conf,    /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_answer_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_answer_module_ctx,    /* module context */
    ngx_http_sluice_answer_commands,       /* module directives */
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


ngx_int_t
ngx_http_sluice_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *message)
{
    sluice_core_text_t  type, body;

    if (ngx_http_sluice_answer_is_lua(r)) {
        return ngx_http_sluice_answer_later(r, status, message);
    }

    if (sluice_answer_error(r, (int) status,
                            message ? (const char *) message->data : NULL,
                            message ? message->len : 0, &type, &body)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* shorter than the whole: nginx is to append no charset */

    r->headers_out.content_type_len = strchr(type.data, ';') - type.data;

    r->headers_out.content_type.data = (u_char *) type.data;
    r->headers_out.content_type.len = type.length;
    r->headers_out.content_type_lowcase = NULL;

    return ngx_http_sluice_answer_send(r, status, &body);
}


ngx_int_t
ngx_http_sluice_redirect(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *location)
{
    static ngx_str_t  name = ngx_string("Location");

    ngx_http_clear_location(r);

    r->headers_out.location = ngx_http_sluice_answer_push(r, &name, location);
    if (r->headers_out.location == NULL) {
        return NGX_ERROR;
    }

    ngx_str_null(&r->headers_out.content_type);

    return ngx_http_sluice_answer_send(r, status, NULL);
}


/* body: NULL: none */

static ngx_int_t
ngx_http_sluice_answer_send(ngx_http_request_t *r, ngx_uint_t status,
    sluice_core_text_t *body)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_chain_t  out;

    /* nobody waits for the request's body any more */

    r->expect_tested = 1;

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        r->keepalive = 0;
    }

    if (sluice_answer_own(r) != NGX_OK) {
        return NGX_ERROR;
    }

    sluice_answer_status(r, (int) status);

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    if (body) {
        b->pos = (u_char *) body->data;
        b->last = b->pos + body->length;
        b->memory = 1;
    }

    b->last_buf = (r == r->main);
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    /* A 304 speaks of what the client has (RFC 9110, 8.6). */

    if (status != NGX_HTTP_NOT_MODIFIED) {
        r->headers_out.content_length_n = b->last - b->pos;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_OK && !r->header_only) {
        rc = ngx_http_output_filter(r, &out);
    }

    /* In the access phase these two would mean to go on, and to wait. */

    return rc == NGX_OK || rc == NGX_AGAIN ? NGX_HTTP_OK : rc;
}


/*
 * Makes the body of an error, and says of which type it is; nothing is set.
 * message: NULL: Kong's words.  NGX_OK, NGX_ERROR: no memory.
 */

int
sluice_answer_error(ngx_http_request_t *r, int status, const char *message,
    size_t length, sluice_core_text_t *type, sluice_core_text_t *body)
{
    int                  format;
    char                *out, words[SLUICE_ANSWER_WORDS];
    sluice_core_text_t   text, id;

    text.data = message;
    text.length = length;

    if (message == NULL) {
        sluice_answer_words(status, words, &text);
    }

    format = ngx_http_sluice_answer_format(r);
    ngx_http_sluice_answer_read(r, NGX_HTTP_SLUICE_ANSWER_REQUEST_ID, &id);

    out = ngx_pnalloc(r->pool, sluice_answer_bound(text.length, id.length));
    if (out == NULL) {
        return NGX_ERROR;
    }

    body->length = sluice_answer_body(format, &text, &id, out);
    body->data = out;
    *type = sluice_answer_content_type(format);

    return NGX_OK;
}


static int
ngx_http_sluice_answer_format(ngx_http_request_t *r)
{
    sluice_core_text_t              accept;
    ngx_http_sluice_answer_conf_t  *acf;

    if (ngx_http_sluice_answer_read(r, NGX_HTTP_SLUICE_ANSWER_ACCEPT, &accept)
        != NGX_OK
        && ngx_http_sluice_answer_read(r, NGX_HTTP_SLUICE_ANSWER_CONTENT_TYPE,
                                       &accept)
           != NGX_OK)
    {
        acf = ngx_http_get_module_main_conf(r, ngx_http_sluice_answer_module);
        return acf->default_format;
    }

    return sluice_answer_accepted(&accept);
}


/*
 * Makes the response the gateway's own: with the headers that say so, without
 * those that tell of an upstream.  NGX_OK, NGX_ERROR: no memory.
 */

int
sluice_answer_own(ngx_http_request_t *r)
{
    ngx_http_variable_value_t      *v;
    ngx_http_sluice_answer_conf_t  *acf;

    acf = ngx_http_get_module_main_conf(r, ngx_http_sluice_answer_module);

    v = r->variables;
    v[acf->variables[NGX_HTTP_SLUICE_ANSWER_RESPONSE_VIA]] =
                                                 ngx_http_variable_null_value;
    v[acf->variables[NGX_HTTP_SLUICE_ANSWER_PROXY_MS]] =
                                                 ngx_http_variable_null_value;

    if (acf->server.len
        && ngx_http_sluice_answer_set_server(r, &acf->server) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (acf->latency.len == 0) {
        return NGX_OK;
    }

    return ngx_http_sluice_answer_set_latency(r, &acf->latency);
}


/* NGX_OK, NGX_DECLINED: there is none; then text is empty */

static ngx_int_t
ngx_http_sluice_answer_read(ngx_http_request_t *r, ngx_uint_t variable,
    sluice_core_text_t *text)
{
    ngx_http_variable_value_t      *v;
    ngx_http_sluice_answer_conf_t  *acf;

    acf = ngx_http_get_module_main_conf(r, ngx_http_sluice_answer_module);

    text->data = "";
    text->length = 0;

    v = ngx_http_get_indexed_variable(r, acf->variables[variable]);

    if (v == NULL || v->not_found) {
        return NGX_DECLINED;
    }

    text->data = (const char *) v->data;
    text->length = v->len;

    return NGX_OK;
}


static char *
ngx_http_sluice_answer_default_type(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_sluice_answer_conf_t  *acf = conf;

    int         format;
    ngx_str_t  *value;

    value = cf->args->elts;

    format = sluice_answer_format((char *) value[1].data, value[1].len);

    if (format == SLUICE_ANSWER_UNKNOWN) {
        return "is no type of errors";
    }

    acf->default_format = format;

    return NGX_CONF_OK;
}


static void *
ngx_http_sluice_answer_create_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_answer_conf_t  *acf;

    acf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_answer_conf_t));
    if (acf == NULL) {
        return NULL;
    }

    acf->default_format = SLUICE_ANSWER_TEXT;

    return acf;
}


static ngx_int_t
ngx_http_sluice_answer_init(ngx_conf_t *cf)
{
    ngx_uint_t                      i;
    ngx_http_sluice_answer_conf_t  *acf;

    static ngx_str_t  names[] = {
        ngx_string("http_accept"),
        ngx_string("http_content_type"),
        ngx_string("sluice_request_id"),
        ngx_string("sluice_response_via"),
        ngx_string("sluice_proxy_ms")
    };

    acf = ngx_http_conf_get_module_main_conf(cf,
                                             ngx_http_sluice_answer_module);

    for (i = 0; i < NGX_HTTP_SLUICE_ANSWER_VARIABLES; i++) {

        acf->variables[i] = ngx_http_get_variable_index(cf, &names[i]);
        if (acf->variables[i] == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
