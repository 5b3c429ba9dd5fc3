
/*
 * Headers that a client must not set in the gateway's name.
 *
 *     server {
 *         sluice_guard_headers Content-Length X-Forwarded-*;
 *         sluice_drop_headers X-Consumer-*;
 *     }
 *
 * Upstreams that make variables of headers (CGI and its like) cannot tell
 * X_Forwarded_For from X-Forwarded-For, nor can nginx's $http_ variables.  So
 * a request loses each line of a guarded name in which an underscore stands
 * for a dash, and each line of a dropped name however it is written, before
 * anything reads them.  Other names with underscores pass.  A "*" at the end
 * stands for any rest.
 *
 * nginx calls this once a request, before its internal redirects.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_spoofed_headers.h"


typedef struct {
    ngx_str_t    name;              /* in lower case, with dashes */
    unsigned     prefix:1;
    unsigned     dropped:1;         /* however it is written */
} ngx_http_sluice_spoofed_headers_name_t;


static ngx_uint_t ngx_http_sluice_spoofed_headers_drops(ngx_table_elt_t *h,
    void *data);
static ngx_uint_t ngx_http_sluice_spoofed_headers_is(ngx_table_elt_t *h,
    ngx_http_sluice_spoofed_headers_name_t *name);


#define ngx_http_sluice_spoofed_headers_letter(c)                             \
    ((uint32_t) 1 << ((c) & 0x1f))


ngx_int_t
ngx_http_sluice_spoofed_headers_handler(ngx_http_request_t *r)
{
    ngx_http_sluice_spoofed_headers_conf_t  *gcf;

    gcf = ngx_http_sluice_srv_conf(r, spoofed_headers);

    if (gcf->names
        && ngx_http_sluice_header_list_drop(
               &r->headers_in.headers, r->pool,
               ngx_http_sluice_spoofed_headers_drops, gcf)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_http_sluice_spoofed_headers_drops(ngx_table_elt_t *h, void *data)
{
    ngx_http_sluice_spoofed_headers_conf_t  *gcf = data;

    ngx_uint_t                               i, underscore;
    ngx_http_sluice_spoofed_headers_name_t  *name;

    underscore = (memchr(h->key.data, '_', h->key.len) != NULL);

    if (!underscore
        && !(gcf->letters
             & ngx_http_sluice_spoofed_headers_letter(h->key.data[0])))
    {
        return 0;
    }

    name = gcf->names->elts;

    for (i = 0; i < gcf->names->nelts; i++) {

        if ((underscore || name[i].dropped)
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

        if ((c == '_' ? '-' : c) != name->name.data[i]) {
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
            if (name->name.data[n] == '_') {
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
