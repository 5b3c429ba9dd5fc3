
/*
 * What a reader of a name finds, decided once when a process starts.
 *
 * A variable's own handler is always right.  For those that are read most, and
 * for names with a prefix, there are readers here that look at the request as
 * nginx's handler does (http/ngx_http_variables.c, ngx_http_upstream.c), but
 * know beforehand what that works out at each read: the length of a header's
 * name, where an argument begins.  test_var_random.py compares them.
 */


#include "ngx_http_sluice_var.h"


/* For all variables whose handler is nginx's of this name or this prefix. */

typedef struct {
    ngx_str_t                    name;
    ngx_http_sluice_var_read_pt  read;
    ngx_uint_t                   suffix;  /* of a prefix: what follows it */
} ngx_http_sluice_var_reader_t;


static ngx_http_variable_t *ngx_http_sluice_var_find(
    ngx_http_core_main_conf_t *cmcf, ngx_str_t *name);
static ngx_http_variable_t *ngx_http_sluice_var_find_prefix(
    ngx_http_core_main_conf_t *cmcf, ngx_str_t *name);
static ngx_http_sluice_var_reader_t *ngx_http_sluice_var_reader(
    ngx_http_core_main_conf_t *cmcf, ngx_http_variable_t *found);


static ngx_http_sluice_var_reader_t  ngx_http_sluice_var_readers[] = {

    { ngx_string("uri"), ngx_http_sluice_var_read_string, 0 },
    { ngx_string("host"), ngx_http_sluice_var_read_host, 0 },
    { ngx_string("remote_addr"), ngx_http_sluice_var_read_remote_addr, 0 },
    { ngx_string("request_method"), ngx_http_sluice_var_read_method, 0 },
    { ngx_string("scheme"), ngx_http_sluice_var_read_scheme, 0 },
    { ngx_string("arg_"), ngx_http_sluice_var_read_argument,
      NGX_HTTP_SLUICE_VAR_NAME },

#if (nginx_version < 1023000)
    /* later versions link repeated headers, and join them */
    { ngx_string("http_host"), ngx_http_sluice_var_read_header, 0 },
    { ngx_string("http_x_forwarded_for"), ngx_http_sluice_var_read_headers,
      0 },
    { ngx_string("http_cookie"), ngx_http_sluice_var_read_headers, 0 },
    { ngx_string("http_"), ngx_http_sluice_var_read_header_in,
      NGX_HTTP_SLUICE_VAR_HEADER },
    { ngx_string("sent_http_"), ngx_http_sluice_var_read_header_out,
      NGX_HTTP_SLUICE_VAR_HEADER },
    { ngx_string("upstream_http_"), ngx_http_sluice_var_read_upstream_header,
      NGX_HTTP_SLUICE_VAR_HEADER },
    { ngx_string("cookie_"), ngx_http_sluice_var_read_cookie,
      NGX_HTTP_SLUICE_VAR_NAME },
#endif

    { ngx_null_string, ngx_http_sluice_var_read_handler, 0 }
};


/* In the order of ngx_http_get_variable(): the hash, the longest prefix. */

void
ngx_http_sluice_var_resolve(ngx_http_core_main_conf_t *cmcf,
    ngx_http_sluice_var_t *v)
{
    ngx_http_variable_t           *found;
    ngx_http_sluice_var_reader_t  *reader;

    v->read = ngx_http_sluice_var_read_absent;

    found = ngx_http_sluice_var_find(cmcf, &v->name);

    if (found) {
        v->indexed = (found->flags & NGX_HTTP_VAR_INDEXED) != 0;
        v->index = found->index;
        v->data = found->data;

        if (found->flags & NGX_HTTP_VAR_CHANGEABLE) {
            v->set_handler = found->set_handler;
            v->changeable = v->indexed || v->set_handler;
        }

    } else {
        found = ngx_http_sluice_var_find_prefix(cmcf, &v->name);

        if (found == NULL) {
            return;
        }

        v->data = (uintptr_t) &v->name;
        v->suffix.data = v->name.data + found->name.len;
        v->suffix.len = v->name.len - found->name.len;
    }

    if (v->indexed) {
        v->read = ngx_http_sluice_var_read_indexed;
        return;
    }

    v->get_handler = found->get_handler;

    reader = ngx_http_sluice_var_reader(cmcf, found);
    v->read = reader->read;

    if (v->read == ngx_http_sluice_var_read_string) {
        v->string = v->data;

    } else if (v->read == ngx_http_sluice_var_read_host) {
        v->string = offsetof(ngx_http_request_t, headers_in.server);

    } else if (reader->suffix
               && ngx_http_sluice_var_prepare(v, reader->suffix) != NGX_OK)
    {
        v->read = ngx_http_sluice_var_read_handler;
    }
}


static ngx_http_variable_t *
ngx_http_sluice_var_find(ngx_http_core_main_conf_t *cmcf, ngx_str_t *name)
{
    return ngx_hash_find(&cmcf->variables_hash,
                         ngx_hash_key(name->data, name->len),
                         name->data, name->len);
}


static ngx_http_variable_t *
ngx_http_sluice_var_find_prefix(ngx_http_core_main_conf_t *cmcf,
    ngx_str_t *name)
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


/* The last one if there is none of its own. */

static ngx_http_sluice_var_reader_t *
ngx_http_sluice_var_reader(ngx_http_core_main_conf_t *cmcf,
    ngx_http_variable_t *found)
{
    ngx_str_t            *name;
    ngx_uint_t            i;
    ngx_http_variable_t  *v;

    for (i = 0; ngx_http_sluice_var_readers[i].name.len; i++) {

        name = &ngx_http_sluice_var_readers[i].name;

        /* a map may be called $arg_, and its handler is that of all maps */

        if (name->data[name->len - 1] == '_') {
            v = ngx_http_sluice_var_find_prefix(cmcf, name);

        } else {
            v = ngx_http_sluice_var_find(cmcf, name);
        }

        if (v && v->get_handler == found->get_handler) {
            break;
        }
    }

    return &ngx_http_sluice_var_readers[i];
}
