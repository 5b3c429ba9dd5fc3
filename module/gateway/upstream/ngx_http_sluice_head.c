
/*
 * The head of what is sent to an upstream, in one pass.
 *
 *     server {
 *         sluice_upstream_header Host $sluice_host;
 *         sluice_upstream_header X-Real-IP $remote_addr;
 *         sluice_upstream_header Proxy "";
 *
 *         proxy_set_header Host "";
 *         proxy_set_header Connection "";
 *         proxy_pass_request_headers off;
 *     }
 *
 * As proxy_set_header: a line of this name, or none where the value is empty,
 * in place of all that the client has sent.  The value is one variable, which
 * is read where it stands.  nginx's proxy_set_header interprets a program for
 * each line, four times a request; docs/notes/request-cpu.md has what that
 * cost.
 *
 * nginx still frames the body, which its output filter depends on:
 * Content-Length and Transfer-Encoding are its own lines.  So it makes a short
 * head of these, and we put ours in its place before anything is sent.
 */


#include "ngx_http_sluice_head.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_upgrade.h"


/* What a head is made of, for the pass that counts and the one that writes. */

typedef struct {
    ngx_http_sluice_head_conf_t  *conf;
    ngx_http_variable_value_t    *uri;
    ngx_http_variable_value_t    *values[NGX_HTTP_SLUICE_HEAD_LINES];
    const ngx_str_t              *frame;
} ngx_http_sluice_head_t;


static ngx_int_t ngx_http_sluice_head_read(ngx_http_request_t *r,
    ngx_http_sluice_head_t *head);
static void ngx_http_sluice_head_read_changed(ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_head_t *head);
static size_t ngx_http_sluice_head_length(ngx_http_request_t *r,
    const ngx_http_sluice_head_t *head);
static u_char *ngx_http_sluice_head_put(ngx_http_request_t *r, u_char *p,
    const ngx_http_sluice_head_t *head);
static u_char *ngx_http_sluice_head_put_line(ngx_http_request_t *r, u_char *p,
    const ngx_http_sluice_head_t *head);
static ngx_uint_t ngx_http_sluice_head_replaces(
    const ngx_http_sluice_head_conf_t *conf, const ngx_table_elt_t *h);
static ngx_int_t ngx_http_sluice_head_parse(ngx_conf_t *cf,
    ngx_http_sluice_head_line_t *line);
static ngx_uint_t ngx_http_sluice_head_which(const ngx_str_t *lowcase);

#define ngx_http_sluice_head_bit(hash)  ((uint64_t) 1 << ((hash) & 63))


static const char  ngx_http_sluice_head_version[] = " HTTP/1.1" CRLF;

/* In one spelling, for clients that were let through (upgrade.c). */

static const char  ngx_http_sluice_head_upgrade[] =
    "Connection: upgrade" CRLF "Upgrade: websocket" CRLF;


ngx_int_t
ngx_http_sluice_head_write(ngx_http_request_t *r, const ngx_str_t *frame)
{
    u_char                  *p;
    size_t                   length;
    ngx_buf_t               *b;
    ngx_http_sluice_head_t   head;

    head.conf = ngx_http_sluice_srv_conf(r, head);
    head.frame = frame;

    /* without lines of ours, and of a subrequest, it stays nginx's */

    if (head.conf->count == 0 || r != r->main) {
        return NGX_OK;
    }

    if (ngx_http_sluice_head_read(r, &head) != NGX_OK) {
        return NGX_ERROR;
    }

    length = ngx_http_sluice_head_length(r, &head);

    p = ngx_pnalloc(r->pool, length);
    if (p == NULL) {
        return NGX_ERROR;
    }

    /* nginx begins there again at a retry */

    b = r->upstream->request_bufs->buf;

    b->start = p;
    b->pos = p;
    b->last = ngx_http_sluice_head_put(r, p, &head);
    b->end = b->last;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_head_read(ngx_http_request_t *r, ngx_http_sluice_head_t *head)
{
    ngx_int_t               index;
    ngx_uint_t              i;
    ngx_http_sluice_ctx_t  *ctx;

    head->uri = ngx_http_get_indexed_variable(r, head->conf->uri);

    if (head->uri == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < head->conf->count; i++) {

        index = head->conf->lines[i].index;
        head->values[i] = NULL;

        if (index == NGX_ERROR) {
            continue;
        }

        head->values[i] = ngx_http_get_flushed_variable(r, index);

        if (head->values[i] == NULL) {
            return NGX_ERROR;
        }

        if (head->values[i]->not_found || head->values[i]->len == 0) {
            head->values[i] = NULL;
        }
    }

    ctx = ngx_http_sluice_ctx(r);

    if (ctx && ctx->changed && ctx->changed->forwarded) {
        ngx_http_sluice_head_read_changed(ctx, head);
    }

    return NGX_OK;
}


/* Lines about the client that plugins have written. */

static void
ngx_http_sluice_head_read_changed(ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_head_t *head)
{
    ngx_uint_t                  i;
    ngx_http_variable_value_t  *v;

    for (i = 0; i < head->conf->count; i++) {

        v = ngx_http_sluice_changed_forwarded(ctx,
                                              head->conf->lines[i].forwarded);
        if (v) {
            head->values[i] = v->len ? v : NULL;
        }
    }
}


/* At most: the slash before the URI may be there. */

static size_t
ngx_http_sluice_head_length(ngx_http_request_t *r,
    const ngx_http_sluice_head_t *head)
{
    size_t                         length;
    ngx_uint_t                     i;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    length = r->method_name.len + sizeof(" /") - 1 + head->uri->len
             + sizeof(ngx_http_sluice_head_version) - 1
             + sizeof(ngx_http_sluice_head_upgrade) - 1
             + head->frame->len;

    for (i = 0; i < head->conf->count; i++) {

        if (head->values[i]) {
            length += head->conf->lines[i].key.len + head->values[i]->len
                      + sizeof(CRLF) - 1;
        }
    }

    ngx_http_sluice_header_each(h, walk, &r->headers_in.headers) {
        length += h->key.len + sizeof(": ") - 1 + h->value.len
                  + sizeof(CRLF) - 1;
    }

    return length;
}


static u_char *
ngx_http_sluice_head_put(ngx_http_request_t *r, u_char *p,
    const ngx_http_sluice_head_t *head)
{
    ngx_uint_t                     i;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    p = ngx_http_sluice_head_put_line(r, p, head);

    for (i = 0; i < head->conf->count; i++) {

        if (head->values[i]) {
            p = ngx_cpymem(p, head->conf->lines[i].key.data,
                           head->conf->lines[i].key.len);
            p = ngx_cpymem(p, head->values[i]->data, head->values[i]->len);
            p = ngx_cpymem(p, CRLF, sizeof(CRLF) - 1);
        }
    }

    if (ngx_http_sluice_upgrade_asked(r)) {
        p = ngx_cpymem(p, ngx_http_sluice_head_upgrade,
                       sizeof(ngx_http_sluice_head_upgrade) - 1);
    }

    ngx_http_sluice_header_each(h, walk, &r->headers_in.headers) {

        if (ngx_http_sluice_head_replaces(head->conf, h)) {
            continue;
        }

        p = ngx_cpymem(p, h->key.data, h->key.len);
        p = ngx_cpymem(p, ": ", sizeof(": ") - 1);

        /* of no bytes data may be NULL */

        if (h->value.len) {
            p = ngx_cpymem(p, h->value.data, h->value.len);
        }

        p = ngx_cpymem(p, CRLF, sizeof(CRLF) - 1);
    }

    return ngx_cpymem(p, head->frame->data, head->frame->len);
}


/* The request line; nginx logs its URI. */

static u_char *
ngx_http_sluice_head_put_line(ngx_http_request_t *r, u_char *p,
    const ngx_http_sluice_head_t *head)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    p = ngx_cpymem(p, r->method_name.data, r->method_name.len);
    *p++ = ' ';

    u->uri.data = p;

    /* a client's URI may have a query alone behind its host */

    if (head->uri->len == 0 || head->uri->data[0] != '/') {
        *p++ = '/';
    }

    p = ngx_cpymem(p, head->uri->data, head->uri->len);
    u->uri.len = p - u->uri.data;

    return ngx_cpymem(p, ngx_http_sluice_head_version,
                      sizeof(ngx_http_sluice_head_version) - 1);
}


/* Whether a line of the client's is not passed. */

static ngx_uint_t
ngx_http_sluice_head_replaces(const ngx_http_sluice_head_conf_t *conf,
    const ngx_table_elt_t *h)
{
    ngx_uint_t                          i;
    const ngx_http_sluice_head_line_t  *line;

    if ((conf->hashes & ngx_http_sluice_head_bit(h->hash)) == 0) {
        return 0;
    }

    for (i = 0; i < conf->count; i++) {

        line = &conf->lines[i];

        if (line->hash == h->hash
            && line->lowcase.len == h->key.len
            && ngx_memcmp(line->lowcase.data, h->lowcase_key, h->key.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* It has written the request line, its URI at u->uri, then the frame. */

void
ngx_http_sluice_head_frame(ngx_http_request_t *r, ngx_str_t *frame)
{
    ngx_http_upstream_t  *u;

    u = r->upstream;

    frame->data = u->uri.data + u->uri.len
                  + sizeof(ngx_http_sluice_head_version) - 1;
    frame->len = u->request_bufs->buf->last - frame->data;
}


ngx_int_t
ngx_http_sluice_head_forwarded(ngx_http_request_t *r,
    ngx_http_sluice_forwarded_e which, ngx_http_variable_value_t *value)
{
    ngx_uint_t                    i;
    ngx_http_variable_value_t    *v;
    ngx_http_sluice_head_conf_t  *conf;

    conf = ngx_http_sluice_srv_conf(r, head);
    v = NULL;

    for (i = 0; i < conf->count; i++) {

        if (conf->lines[i].forwarded != (ngx_uint_t) which
            || conf->lines[i].index == NGX_ERROR)
        {
            continue;
        }

        v = ngx_http_get_flushed_variable(r, conf->lines[i].index);
        if (v == NULL) {
            return NGX_ERROR;
        }
    }

    value->data = v && !v->not_found ? v->data : NULL;
    value->len = v && !v->not_found ? v->len : 0;
    value->valid = 1;
    value->no_cacheable = 0;
    value->not_found = 0;

    return NGX_OK;
}


char *
ngx_http_sluice_head_header(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                     index;
    ngx_http_sluice_head_conf_t  *hcf;
    ngx_http_sluice_head_line_t  *line;

    static ngx_str_t              uri = ngx_string("sluice_uri");

    hcf = ngx_http_sluice_set_conf(conf, cmd);

    if (hcf->count == NGX_HTTP_SLUICE_HEAD_LINES) {
        return "has more lines than there is room for";
    }

    index = ngx_http_get_variable_index(cf, &uri);
    if (index == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    hcf->uri = (ngx_uint_t) index;
    line = &hcf->lines[hcf->count++];

    if (ngx_http_sluice_head_parse(cf, line) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    hcf->hashes |= ngx_http_sluice_head_bit(line->hash);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sluice_head_parse(ngx_conf_t *cf, ngx_http_sluice_head_line_t *line)
{
    u_char     *p;
    ngx_str_t  *value;

    value = cf->args->elts;

    p = ngx_pnalloc(cf->pool, 2 * value[1].len + sizeof(": ") - 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    line->key.data = p;
    p = ngx_cpymem(p, value[1].data, value[1].len);
    p = ngx_cpymem(p, ": ", sizeof(": ") - 1);
    line->key.len = p - line->key.data;

    line->lowcase.data = p;
    line->lowcase.len = value[1].len;
    line->hash = ngx_hash_strlow(p, value[1].data, value[1].len);
    line->index = NGX_ERROR;
    line->forwarded = ngx_http_sluice_head_which(&line->lowcase);

    if (value[2].len == 0) {
        return NGX_OK;
    }

    if (value[2].data[0] != '$') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not one variable", &value[2]);
        return NGX_ERROR;
    }

    value[2].data++;
    value[2].len--;

    line->index = ngx_http_get_variable_index(cf, &value[2]);

    return line->index == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_head_which(const ngx_str_t *lowcase)
{
    ngx_uint_t  which;

    static ngx_str_t  names[NGX_HTTP_SLUICE_FORWARDED_LINES] = {
        ngx_string("x-forwarded-for"),
        ngx_string("x-forwarded-proto"),
        ngx_string("x-forwarded-host"),
        ngx_string("x-forwarded-port"),
        ngx_string("x-forwarded-path"),
        ngx_string("x-forwarded-prefix")
    };

    for (which = 0; which < NGX_HTTP_SLUICE_FORWARDED_LINES; which++) {

        if (lowcase->len == names[which].len
            && ngx_memcmp(lowcase->data, names[which].data, lowcase->len) == 0)
        {
            break;
        }
    }

    return which;
}
