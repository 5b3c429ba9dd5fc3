
/*
 * Headers that a client must not set in the gateway's name, and those whose
 * names are none.
 *
 *     server {
 *         ignore_invalid_headers off;
 *         sluice_guard_headers Content-Length X-Forwarded-*;
 *         sluice_drop_headers X-Consumer-*;
 *     }
 *
 * Upstreams that make variables of headers cannot tell X_Forwarded_For from
 * X-Forwarded-For, nor can nginx's $http_ variables; PHP takes X.Forwarded.For
 * for the same, too, and old CGI each other character.  So a request loses
 * each line of a guarded name in which something else stands for a dash, and
 * each line of a dropped name however it is written, before anything reads
 * them.  Other names pass.  A "*" at the end stands for any rest.
 *
 * With "ignore_invalid_headers off" nginx takes names with any character but
 * controls, blanks and colons: a request loses the lines whose name is no
 * token (RFC 9110, 5.6.2).  nginx also takes a line without a colon for a name
 * without a value, and may know the name: such a request is refused.
 *
 * nginx calls this once a request, before its internal redirects.  What nginx
 * refuses while it reads comes to the page of the error only, where plugins
 * and log entries see what there is of headers: there it is done then, and
 * lines without a colon go, too.
 */


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_fault.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_spoofed_headers.h"
#include "refusal.h"


typedef struct {
    ngx_str_t    name;              /* in lower case, with dashes */
    unsigned     prefix:1;
    unsigned     dropped:1;         /* however it is written */
} ngx_http_sluice_spoofed_headers_name_t;


typedef struct {
    ngx_http_sluice_spoofed_headers_conf_t  *conf;
    unsigned                                 has_lines:1;  /* of HTTP/1 */
    unsigned                                 is_page:1;    /* of an error */
    ngx_str_t                               *illegal;    /* or NULL */
    ngx_str_t                               *bare;       /* or NULL */
} ngx_http_sluice_spoofed_headers_dropped_t;


/* Characters of a name. */

#define NGX_HTTP_SLUICE_SPOOFED_HEADERS_MARK     1   /* for a dash */
#define NGX_HTTP_SLUICE_SPOOFED_HEADERS_ILLEGAL  2


static ngx_int_t ngx_http_sluice_spoofed_headers_drop(ngx_http_request_t *r,
    ngx_uint_t is_page);
static ngx_uint_t ngx_http_sluice_spoofed_headers_drops(ngx_table_elt_t *h,
    void *data);
static ngx_uint_t ngx_http_sluice_spoofed_headers_is(ngx_table_elt_t *h,
    ngx_http_sluice_spoofed_headers_name_t *name);


/* 0: letters, digits and "-"; a mark: "!#$%&'*+.^_`|~" */

static const u_char  ngx_http_sluice_spoofed_headers_kinds[256] = {
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 0, 1, 2,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2,
    2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 1, 1,
    1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2
};


#define ngx_http_sluice_spoofed_headers_letter(c)                             \
    ((uint32_t) 1 << ((c) & 0x1f))


ngx_int_t
ngx_http_sluice_spoofed_headers_handler(ngx_http_request_t *r)
{
    return ngx_http_sluice_spoofed_headers_drop(r, 0);
}


ngx_int_t
ngx_http_sluice_spoofed_headers_page(ngx_http_request_t *r)
{
    /* HTTP/0.9, and a bad request line, have no list */

    if (!r->error_page
        || ngx_http_sluice_ctx(r) != NULL
        || r->headers_in.headers.last == NULL)
    {
        return NGX_DECLINED;
    }

    return ngx_http_sluice_spoofed_headers_drop(r, 1);
}


static ngx_int_t
ngx_http_sluice_spoofed_headers_drop(ngx_http_request_t *r, ngx_uint_t is_page)
{
    ngx_http_sluice_spoofed_headers_dropped_t  dropped;

    dropped.conf = ngx_http_sluice_srv_conf(r, spoofed_headers);
    dropped.has_lines = (r->http_version < NGX_HTTP_VERSION_20);
    dropped.is_page = is_page;
    dropped.illegal = NULL;
    dropped.bare = NULL;

    if (dropped.conf->names == NULL) {
        return NGX_DECLINED;
    }

    if (ngx_http_sluice_header_list_drop(&r->headers_in.headers, r->pool,
                                        ngx_http_sluice_spoofed_headers_drops,
                                        &dropped)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (is_page) {
        return NGX_DECLINED;
    }

    if (dropped.bare) {
        return ngx_http_sluice_fault_refuse(r, SLUICE_FAULT_COLON);
    }

    if (dropped.illegal) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent invalid header name: \"%V\"",
                      dropped.illegal);
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_http_sluice_spoofed_headers_drops(ngx_table_elt_t *h, void *data)
{
    ngx_http_sluice_spoofed_headers_dropped_t  *dropped = data;

    size_t                                   n;
    ngx_uint_t                               i, marks;
    ngx_http_sluice_spoofed_headers_conf_t  *gcf;
    ngx_http_sluice_spoofed_headers_name_t  *name;

    gcf = dropped->conf;
    marks = 0;

    for (n = 0; n < h->key.len; n++) {
        marks |= ngx_http_sluice_spoofed_headers_kinds[h->key.data[n]];
    }

    if (dropped->has_lines && h->value.data == h->key.data + h->key.len) {
        dropped->bare = &h->key;

        if (dropped->is_page) {
            return 1;
        }
    }

    if (marks & NGX_HTTP_SLUICE_SPOOFED_HEADERS_ILLEGAL) {
        dropped->illegal = &h->key;
        return 1;
    }

    if (marks) {
        /* nginx leaves out what it does not expect, and a 0 is no header */
        h->hash = ngx_hash_key(h->lowcase_key, h->key.len);
    }

    if (!marks
        && !(gcf->letters
             & ngx_http_sluice_spoofed_headers_letter(h->key.data[0])))
    {
        return 0;
    }

    name = gcf->names->elts;

    for (i = 0; i < gcf->names->nelts; i++) {

        if ((marks || name[i].dropped)
            && ngx_http_sluice_spoofed_headers_is(h, &name[i]))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_sluice_spoofed_headers_is(ngx_table_elt_t *h,
    ngx_http_sluice_spoofed_headers_name_t *name)
{
    u_char  c;
    size_t  i;

    if (name->prefix ? h->key.len < name->name.len
                     : h->key.len != name->name.len)
    {
        return 0;
    }

    for (i = 0; i < name->name.len; i++) {

        c = h->lowcase_key[i];

        if (ngx_http_sluice_spoofed_headers_kinds[c]) {
            c = '-';
        }

        if (c != name->name.data[i]) {
            return 0;
        }
    }

    return 1;
}


char *
ngx_http_sluice_spoofed_headers_add(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    size_t                                   n;
    ngx_str_t                               *value;
    ngx_uint_t                               i;
    ngx_http_sluice_spoofed_headers_conf_t  *gcf;
    ngx_http_sluice_spoofed_headers_name_t  *name;

    gcf = ngx_http_sluice_set_conf(conf, cmd);

    if (gcf->names == NULL) {
        gcf->names = ngx_array_create(cf->pool, 16,
                             sizeof(ngx_http_sluice_spoofed_headers_name_t));
        if (gcf->names == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        name = ngx_array_push(gcf->names);
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        name->name = value[i];
        name->prefix = (value[i].len > 0
                        && value[i].data[value[i].len - 1] == '*');
        name->dropped = (cmd->post != NULL);

        if (name->prefix) {
            name->name.len--;
        }

        if (name->name.len == 0) {
            return "has a name without letters";
        }

        ngx_strlow(name->name.data, name->name.data, name->name.len);

        for (n = 0; n < name->name.len; n++) {
            if (ngx_http_sluice_spoofed_headers_kinds[name->name.data[n]]) {
                name->name.data[n] = '-';
            }
        }

        if (name->dropped) {
            gcf->letters |=
                ngx_http_sluice_spoofed_headers_letter(name->name.data[0]);
        }
    }

    return NGX_CONF_OK;
}
