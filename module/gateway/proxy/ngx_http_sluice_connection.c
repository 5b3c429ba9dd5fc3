
/*
 * Removes what the lines of Connection name (RFC 9110, 7.6.1), before any
 * plugin, so that it cannot remove what a plugin adds.  The list of headers is
 * walked twice, however many names and lines there are, and once more for a
 * request that may switch to WebSocket, which keeps its Upgrade.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <nginx.h>

#include "ngx_http_sluice_connection.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_upgrade.h"


/* the same as max_headers, which later versions of nginx have */

#define NGX_HTTP_SLUICE_CONNECTION_MAX_LINES  1000


typedef struct {
    ngx_http_request_t                  *request;
    ngx_table_elt_t                     *kept;      /* or NULL */
    ngx_http_sluice_connection_names_t   names;
} ngx_http_sluice_connection_dropped_t;


static ngx_uint_t ngx_http_sluice_connection_stays(u_char *name,
    size_t length);
static ngx_uint_t ngx_http_sluice_connection_drops(ngx_table_elt_t *elt,
    void *data);
static void ngx_http_sluice_connection_forget(ngx_http_request_t *r,
    ngx_table_elt_t *elt);


ngx_int_t
ngx_http_sluice_connection_apply(ngx_http_request_t *r)
{
    ngx_uint_t                             i, lines;
    ngx_list_part_t                       *part;
    ngx_table_elt_t                       *elt;
    ngx_http_sluice_connection_dropped_t   dropped;

    dropped.request = r;
    dropped.kept = NULL;
    dropped.names.count = 0;
    dropped.names.lengths = 0;
    lines = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {

        elt = part->elts;
        lines += part->nelts;

        if (lines > NGX_HTTP_SLUICE_CONNECTION_MAX_LINES) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "client sent too many header lines");
            return NGX_HTTP_REQUEST_HEADER_TOO_LARGE;
        }

        for (i = 0; i < part->nelts; i++) {

            if (elt[i].key.len != sizeof("connection") - 1
                || ngx_memcmp(elt[i].lowcase_key, "connection",
                              sizeof("connection") - 1)
                   != 0)
            {
                continue;
            }

            if (ngx_http_sluice_connection_add_names(&dropped.names,
                                                     &elt[i].value)
                != NGX_OK)
            {
                ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                              "client sent too many names in Connection");
                return NGX_HTTP_BAD_REQUEST;
            }
        }
    }

    if (ngx_http_sluice_connection_named(&dropped.names,
                                         (u_char *) "upgrade", 7)
        && ngx_http_sluice_upgrade_accept(r))
    {
        dropped.kept = r->headers_in.upgrade;
    }

    if (dropped.names.count
        && ngx_http_sluice_header_list_drop(&r->headers_in.headers, r->pool,
                                            ngx_http_sluice_connection_drops,
                                            &dropped)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_connection_add_names(ngx_http_sluice_connection_names_t *names,
    ngx_str_t *line)
{
    u_char  *p, *end, *name;
    size_t   length;

    p = line->data;
    end = p + line->len;

    while (p < end) {

        if (*p == ',' || *p == ' ' || *p == '\t') {
            p++;
            continue;
        }

        name = p;

        while (p < end && *p != ',' && *p != ' ' && *p != '\t') {
            p++;
        }

        length = p - name;

        if (ngx_http_sluice_connection_stays(name, length)
            || ngx_http_sluice_connection_named(names, name, length))
        {
            continue;
        }

        if (names->count == NGX_HTTP_SLUICE_CONNECTION_MAX_NAMES) {
            return NGX_DECLINED;
        }

        names->name[names->count].data = name;
        names->name[names->count].len = length;
        names->count++;
        names->lengths |= 1ULL << (length % 64);
    }

    return NGX_OK;
}


/* what has no header of its name, or one that nginx has acted upon already */

static ngx_uint_t
ngx_http_sluice_connection_stays(u_char *name, size_t length)
{
    ngx_str_t  *s;

    static ngx_str_t  staying[] = {
        ngx_string("keep-alive"),
        ngx_string("close"),
        ngx_string("host"),
        ngx_string("content-length"),
        ngx_string("transfer-encoding"),
        ngx_null_string
    };

    for (s = staying; s->len; s++) {

        if (s->len != length) {
            continue;
        }

        /* most write them so */

        if (ngx_memcmp(s->data, name, length) == 0
            || ngx_strncasecmp(s->data, name, length) == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_sluice_connection_named(ngx_http_sluice_connection_names_t *names,
    u_char *name, size_t length)
{
    ngx_uint_t  i;

    if (!(names->lengths & (1ULL << (length % 64)))) {
        return 0;
    }

    for (i = 0; i < names->count; i++) {
        if (names->name[i].len == length
            && ngx_strncasecmp(names->name[i].data, name, length) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_sluice_connection_drops(ngx_table_elt_t *elt, void *data)
{
    ngx_http_sluice_connection_dropped_t  *dropped = data;

    if (elt == dropped->kept
        || !ngx_http_sluice_connection_named(&dropped->names, elt->key.data,
                                             elt->key.len))
    {
        return 0;
    }

    ngx_http_sluice_connection_forget(dropped->request, elt);

    return 1;
}


/* nginx has pointers to the headers that it knows */

static void
ngx_http_sluice_connection_forget(ngx_http_request_t *r, ngx_table_elt_t *elt)
{
    ngx_http_header_t          *hh;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    hh = ngx_hash_find(&cmcf->headers_in_hash, elt->hash, elt->lowcase_key,
                       elt->key.len);

    if (hh == NULL || hh->offset == 0) {
        return;
    }

#if (nginx_version < 1023000)

    /* these two are arrays of all lines */

    if (hh->offset == offsetof(ngx_http_headers_in_t, cookies)) {
        r->headers_in.cookies.nelts = 0;
        return;
    }

#if (NGX_HTTP_X_FORWARDED_FOR)
    if (hh->offset == offsetof(ngx_http_headers_in_t, x_forwarded_for)) {
        r->headers_in.x_forwarded_for.nelts = 0;
        return;
    }
#endif

#endif

    *(ngx_table_elt_t **) ((char *) &r->headers_in + hh->offset) = NULL;
}
