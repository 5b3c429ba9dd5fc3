
#include "ngx_http_sluice_answer.h"


static ngx_int_t ngx_http_sluice_answer_send(ngx_http_request_t *r,
    ngx_uint_t status, sluice_core_text_t *body);
static int ngx_http_sluice_answer_make(ngx_http_request_t *r, int format,
    int status, const char *message, size_t length, sluice_core_text_t *body);
static int ngx_http_sluice_answer_format(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_answer_read(ngx_http_request_t *r,
    ngx_uint_t variable, sluice_core_text_t *text);

ngx_int_t
ngx_http_sluice_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *message)
{
    sluice_core_text_t  type, body;

    if (ngx_http_sluice_answer_is_lua(r)) {
        return ngx_http_sluice_answer_later(r, status, message, NULL);
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
ngx_http_sluice_answer_body(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_str_t *body)
{
    u_char              *parameters;
    sluice_core_text_t   text;

    if (ngx_http_sluice_answer_is_lua(r)) {
        return ngx_http_sluice_answer_later(r, status, body, type);
    }

    text.length = (uint32_t) body->len;
    text.data = (const char *) ngx_pstrdup(r->pool, body);

    r->headers_out.content_type.data = ngx_pstrdup(r->pool, type);
    r->headers_out.content_type.len = type->len;
    r->headers_out.content_type_lowcase = NULL;

    parameters = ngx_strlchr(type->data, type->data + type->len, ';');
    r->headers_out.content_type_len = parameters
                                      ? (size_t) (parameters - type->data)
                                      : type->len;

    if ((text.data == NULL && body->len)
        || (r->headers_out.content_type.data == NULL && type->len))
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_answer_send(r, status, &text);
}


ngx_int_t
ngx_http_sluice_answer_redirect(ngx_http_request_t *r, ngx_uint_t status,
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


/*
 * Who waits for "100 Continue" and is answered may send the body or not: curl
 * repeats a request after a 417 on the same connection.  Nobody could tell the
 * one from the other, so the connection ends (RFC 9110, 10.1.1).
 */

void
ngx_http_sluice_answer_discard_body(ngx_http_request_t *r)
{
    /* nginx says that it has tested where it sends the page of an error */

    if (r->request_body == NULL
        && r->headers_in.expect
        && r->http_version == NGX_HTTP_VERSION_11
        && (r->headers_in.content_length_n > 0 || r->headers_in.chunked)
        && r->header_in->pos == r->header_in->last)
    {
        r->keepalive = 0;
    }

    r->expect_tested = 1;

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        r->keepalive = 0;
    }
}


/* body: NULL: none */

static ngx_int_t
ngx_http_sluice_answer_send(ngx_http_request_t *r, ngx_uint_t status,
    sluice_core_text_t *body)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_chain_t  out;

    ngx_http_sluice_answer_discard_body(r);

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

    if (body && body->length) {
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
    int  format;

    format = ngx_http_sluice_answer_format(r);
    *type = sluice_answer_content_type(format);

    return ngx_http_sluice_answer_make(r, format, status, message, length,
                                       body);
}


/* The same in the format of a media type; text where there is none of it. */

int
sluice_answer_error_as(ngx_http_request_t *r, int status, const char *message,
    size_t length, const sluice_core_text_t *type, sluice_core_text_t *body)
{
    int          format;
    const char  *end;

    end = memchr(type->data, ';', type->length);

    format = sluice_answer_format(type->data, end ? (size_t) (end - type->data)
                                                  : type->length);
    if (format == SLUICE_ANSWER_UNKNOWN) {
        format = SLUICE_ANSWER_TEXT;
    }

    return ngx_http_sluice_answer_make(r, format, status, message, length,
                                       body);
}


static int
ngx_http_sluice_answer_make(ngx_http_request_t *r, int format, int status,
    const char *message, size_t length, sluice_core_text_t *body)
{
    char                *out, words[SLUICE_ANSWER_WORDS];
    sluice_core_text_t   text, id;

    text.data = message;
    text.length = length;

    if (message == NULL) {
        sluice_answer_words(status, words, &text);
    }

    ngx_http_sluice_answer_read(r, NGX_HTTP_SLUICE_ANSWER_REQUEST_ID, &id);

    out = ngx_pnalloc(r->pool, sluice_answer_bound(text.length, id.length));
    if (out == NULL) {
        return NGX_ERROR;
    }

    body->length = sluice_answer_body(format, &text, &id, out);
    body->data = out;

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
        acf = ngx_http_sluice_main_conf(r, answer);
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

    ngx_http_sluice_answer_note(r);

    acf = ngx_http_sluice_main_conf(r, answer);

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

    acf = ngx_http_sluice_main_conf(r, answer);

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


char *
ngx_http_sluice_answer_default_type(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    int                             format;
    ngx_str_t                      *value;
    ngx_http_sluice_answer_conf_t  *acf;

    acf = ngx_http_sluice_set_conf(conf, cmd);
    value = cf->args->elts;

    format = sluice_answer_format((char *) value[1].data, value[1].len);

    if (format == SLUICE_ANSWER_UNKNOWN) {
        return "is no type of errors";
    }

    acf->default_format = format;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_sluice_answer_init(ngx_conf_t *cf, ngx_http_sluice_answer_conf_t *acf)
{
    ngx_uint_t  i;

    static ngx_str_t  names[] = {
        ngx_string("http_accept"),
        ngx_string("http_content_type"),
        ngx_string("sluice_request_id"),
        ngx_string("sluice_response_via"),
        ngx_string("sluice_proxy_ms")
    };

    for (i = 0; i < NGX_HTTP_SLUICE_ANSWER_VARIABLES; i++) {

        acf->variables[i] = ngx_http_get_variable_index(cf, &names[i]);
        if (acf->variables[i] == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
