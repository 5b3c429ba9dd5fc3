
/*
 * What a reader of a name finds, decided once when a process starts.
 *
 * A variable's own handler is always right.  For those that are read most, and
 * for names with a prefix, there are readers here that look at the request as
 * nginx's handler does (http/ngx_http_variables.c, ngx_http_upstream.c), but
 * know beforehand what that works out at each read: the length of a header's
 * name, where an argument begins.  test/nginx/test_var_random.py compares both.
 */


#include "ngx_sluice_var.h"


#define ngx_sluice_var_offset(r, v, type)                                     \
    ((type *) ((char *) (r) + (v)->get_data))


/* For all variables whose handler is that of this name. */

typedef struct {
    ngx_str_t               name;
    ngx_sluice_var_read_pt  read;
} ngx_sluice_var_reader_t;


static ngx_http_variable_t *ngx_sluice_var_find(
    ngx_http_core_main_conf_t *cmcf, ngx_str_t *name);
static ngx_http_variable_t *ngx_sluice_var_find_prefix(
    ngx_http_core_main_conf_t *cmcf, ngx_str_t *name);
static ngx_sluice_var_read_pt ngx_sluice_var_reader(
    ngx_http_core_main_conf_t *cmcf, ngx_http_variable_t *found);

static ngx_str_t ngx_sluice_var_read_handler(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_indexed(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_absent(ngx_http_request_t *r,
    ngx_sluice_var_t *v);

static ngx_str_t ngx_sluice_var_read_string(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_host(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_scheme(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_method(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_remote_addr(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_argument(ngx_http_request_t *r,
    ngx_sluice_var_t *v);

#if (nginx_version < 1023000)

static ngx_str_t ngx_sluice_var_read_header(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_cookie(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_header_in(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_header_out(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_read_upstream_header(ngx_http_request_t *r,
    ngx_sluice_var_t *v);
static ngx_str_t ngx_sluice_var_find_header(ngx_list_part_t *part,
    ngx_str_t *suffix);

#endif


static const ngx_str_t  ngx_sluice_var_absent = {
    (size_t) NGX_SLUICE_VAR_ABSENT, NULL
};


static ngx_sluice_var_reader_t  ngx_sluice_var_readers[] = {

    { ngx_string("uri"), ngx_sluice_var_read_string },
    { ngx_string("host"), ngx_sluice_var_read_host },
    { ngx_string("remote_addr"), ngx_sluice_var_read_remote_addr },
    { ngx_string("request_method"), ngx_sluice_var_read_method },
    { ngx_string("scheme"), ngx_sluice_var_read_scheme },
    { ngx_string("arg_"), ngx_sluice_var_read_argument },

#if (nginx_version < 1023000)
    /* later versions link repeated headers, and join them */
    { ngx_string("http_host"), ngx_sluice_var_read_header },
    { ngx_string("http_"), ngx_sluice_var_read_header_in },
    { ngx_string("sent_http_"), ngx_sluice_var_read_header_out },
    { ngx_string("upstream_http_"), ngx_sluice_var_read_upstream_header },
    { ngx_string("cookie_"), ngx_sluice_var_read_cookie },
#endif

    { ngx_null_string, NULL }
};


/* In the order of ngx_http_get_variable(): the hash, the longest prefix. */

void
ngx_sluice_var_resolve(ngx_http_core_main_conf_t *cmcf, ngx_sluice_var_t *v)
{
    ngx_http_variable_t  *found;

    v->read = ngx_sluice_var_read_absent;
    v->string = 0;
    v->flags = 0;

    found = ngx_sluice_var_find(cmcf, &v->name);

    if (found) {
        v->flags = found->flags;
        v->index = found->index;
        v->get_data = found->data;
        v->set_data = found->data;
        v->set_handler = found->set_handler;

    } else {
        found = ngx_sluice_var_find_prefix(cmcf, &v->name);

        if (found == NULL) {
            return;
        }

        v->get_data = (uintptr_t) &v->name;
        v->suffix.data = v->name.data + found->name.len;
        v->suffix.len = v->name.len - found->name.len;
    }

    if (v->flags & NGX_HTTP_VAR_INDEXED) {
        v->read = ngx_sluice_var_read_indexed;
        return;
    }

    v->get_handler = found->get_handler;
    v->read = ngx_sluice_var_reader(cmcf, found);

    if (v->read == ngx_sluice_var_read_string) {
        v->string = v->get_data;

    } else if (v->read == ngx_sluice_var_read_host) {
        v->string = offsetof(ngx_http_request_t, headers_in.server);
    }
}


static ngx_http_variable_t *
ngx_sluice_var_find(ngx_http_core_main_conf_t *cmcf, ngx_str_t *name)
{
    return ngx_hash_find(&cmcf->variables_hash,
                         ngx_hash_key(name->data, name->len),
                         name->data, name->len);
}


static ngx_http_variable_t *
ngx_sluice_var_find_prefix(ngx_http_core_main_conf_t *cmcf, ngx_str_t *name)
{
    ngx_uint_t            i;
    ngx_http_variable_t  *prefix, *longest;

    longest = NULL;
    prefix = cmcf->prefix_variables.elts;

    for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
        if (name->len >= prefix[i].name.len
            && (longest == NULL || prefix[i].name.len > longest->name.len)
            && ngx_strncmp(name->data, prefix[i].name.data, prefix[i].name.len)
               == 0)
        {
            longest = &prefix[i];
        }
    }

    return longest;
}


static ngx_sluice_var_read_pt
ngx_sluice_var_reader(ngx_http_core_main_conf_t *cmcf,
    ngx_http_variable_t *found)
{
    ngx_str_t            *name;
    ngx_uint_t            i;
    ngx_http_variable_t  *v;

    for (i = 0; ngx_sluice_var_readers[i].read; i++) {

        name = &ngx_sluice_var_readers[i].name;

        v = ngx_sluice_var_find(cmcf, name);

        if (v == NULL) {
            v = ngx_sluice_var_find_prefix(cmcf, name);
        }

        if (v && v->get_handler == found->get_handler) {
            return ngx_sluice_var_readers[i].read;
        }
    }

    return ngx_sluice_var_read_handler;
}


static ngx_str_t
ngx_sluice_var_read_handler(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t                  value;
    ngx_http_variable_value_t  vv;

    ngx_memzero(&vv, sizeof(ngx_http_variable_value_t));

    if (v->get_handler(r, &vv, v->get_data) != NGX_OK || vv.not_found) {
        return ngx_sluice_var_absent;
    }

    value.len = vv.len;
    value.data = vv.data;

    return value;
}


/* Of "set", "map" in a log format, ...: as cached as the others see it. */

static ngx_str_t
ngx_sluice_var_read_indexed(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t                   value;
    ngx_http_variable_value_t  *vv;

    vv = ngx_http_get_flushed_variable(r, v->index);

    if (vv == NULL || vv->not_found) {
        return ngx_sluice_var_absent;
    }

    value.len = vv->len;
    value.data = vv->data;

    return value;
}


static ngx_str_t
ngx_sluice_var_read_absent(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return ngx_sluice_var_absent;
}


/* ngx_http_variable_request() */

static ngx_str_t
ngx_sluice_var_read_string(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t  *value;

    value = ngx_sluice_var_offset(r, v, ngx_str_t);

    return value->data ? *value : ngx_sluice_var_absent;
}


static ngx_str_t
ngx_sluice_var_read_host(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_http_core_srv_conf_t  *cscf;

    if (r->headers_in.server.len) {
        return r->headers_in.server;
    }

    cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);

    return cscf->server_name;
}


static ngx_str_t
ngx_sluice_var_read_scheme(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    static const ngx_str_t  http = ngx_string("http");

#if (NGX_HTTP_SSL)
    static const ngx_str_t  https = ngx_string("https");

    if (r->connection->ssl) {
        return https;
    }
#endif

    return http;
}


static ngx_str_t
ngx_sluice_var_read_method(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t  *value;

    value = &r->main->method_name;

    return value->data ? *value : ngx_sluice_var_absent;
}


static ngx_str_t
ngx_sluice_var_read_remote_addr(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return r->connection->addr_text;
}


/* ngx_http_arg(): the first one of the name, in any case, that has a "=". */

static ngx_str_t
ngx_sluice_var_read_argument(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    size_t      len;
    u_char     *p, *end, *last;
    ngx_str_t   value;

    len = v->suffix.len;
    p = r->args.data;
    last = p + r->args.len;

    if (len == 0 || r->args.len == 0) {
        return ngx_sluice_var_absent;
    }

    while ((size_t) (last - p) > len) {

        if (p[len] == '='
            && ngx_strncasecmp(p, v->suffix.data, len) == 0)
        {
            end = memchr(p, '&', last - p);

            value.data = p + len + 1;
            value.len = (end ? end : last) - value.data;

            return value;
        }

        p = memchr(p, '&', last - p);
        if (p == NULL) {
            break;
        }

        p++;
    }

    return ngx_sluice_var_absent;
}


#if (nginx_version < 1023000)

/* ngx_http_variable_header() */

static ngx_str_t
ngx_sluice_var_read_header(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_table_elt_t  *header;

    header = *ngx_sluice_var_offset(r, v, ngx_table_elt_t *);

    return header ? header->value : ngx_sluice_var_absent;
}


static ngx_str_t
ngx_sluice_var_read_cookie(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    ngx_str_t  value;

    if (ngx_http_parse_multi_header_lines(&r->headers_in.cookies, &v->suffix,
                                          &value)
        == NGX_DECLINED)
    {
        return ngx_sluice_var_absent;
    }

    return value;
}


static ngx_str_t
ngx_sluice_var_read_header_in(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return ngx_sluice_var_find_header(&r->headers_in.headers.part,
                                      &v->suffix);
}


static ngx_str_t
ngx_sluice_var_read_header_out(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return ngx_sluice_var_find_header(&r->headers_out.headers.part,
                                      &v->suffix);
}


static ngx_str_t
ngx_sluice_var_read_upstream_header(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    if (r->upstream == NULL) {
        return ngx_sluice_var_absent;
    }

    return ngx_sluice_var_find_header(&r->upstream->headers_in.headers.part,
                                      &v->suffix);
}


/*
 * ngx_http_variable_unknown_header(): the first one of the name, in any case
 * and with "-" for "_".  Nearly all others differ in their length.
 */

static ngx_str_t
ngx_sluice_var_find_header(ngx_list_part_t *part, ngx_str_t *suffix)
{
    u_char            ch;
    ngx_uint_t        i, n;
    ngx_table_elt_t  *header;

    for ( /* void */ ; part; part = part->next) {

        header = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (header[i].key.len != suffix->len || header[i].hash == 0) {
                continue;
            }

            for (n = 0; n < suffix->len; n++) {
                ch = header[i].key.data[n];

                if (ch >= 'A' && ch <= 'Z') {
                    ch |= 0x20;

                } else if (ch == '-') {
                    ch = '_';
                }

                if (ch != suffix->data[n]) {
                    break;
                }
            }

            if (n == suffix->len) {
                return header[i].value;
            }
        }
    }

    return ngx_sluice_var_absent;
}

#endif
