
/*
 * A header of the request by the name that a plugin asks for, which is not
 * known beforehand: no name is looked up, and no table of headers is made.
 */


#include "ngx_http_sluice_header.h"


static ngx_inline u_char ngx_http_sluice_header_fold(u_char c);
static ngx_uint_t ngx_http_sluice_header_alike(const u_char *key,
    const u_char *name, size_t length);
static ngx_uint_t ngx_http_sluice_header_same(const u_char *key,
    const u_char *name, size_t length);


/*
 * The first line of a name in any case.  Where no line has it, "-" and "_" are
 * the same, as in nginx's $http_NAME.  Returns 1, or 0: there is none.
 */

int
sluice_header_first(ngx_http_request_t *r, const u_char *name, size_t length,
    sluice_header_value_t *first)
{
    ngx_table_elt_t               *elt, *alike;
    ngx_http_sluice_header_walk_t  walk;

    if (r == NULL
        || r->connection->fd == (ngx_socket_t) -1
        || r->headers_in.headers.last == NULL)
    {
        return 0;
    }

    alike = NULL;

    ngx_http_sluice_header_each(elt, walk, &r->headers_in.headers) {

        if (elt->key.len != length
            || !ngx_http_sluice_header_alike(elt->key.data, name, length))
        {
            continue;
        }

        if (ngx_http_sluice_header_same(elt->key.data, name, length)) {
            first->data = elt->value.data;
            first->length = elt->value.len;
            return 1;
        }

        if (alike == NULL) {
            alike = elt;
        }
    }

    if (alike == NULL) {
        return 0;
    }

    first->data = alike->value.data;
    first->length = alike->value.len;

    return 1;
}


static ngx_inline u_char
ngx_http_sluice_header_fold(u_char c)
{
    return c == '_' ? '-' : ngx_tolower(c);
}


static ngx_uint_t
ngx_http_sluice_header_alike(const u_char *key, const u_char *name,
    size_t length)
{
    size_t  i;

    for (i = 0; i < length; i++) {

        if (key[i] != name[i]
            && ngx_http_sluice_header_fold(key[i])
               != ngx_http_sluice_header_fold(name[i]))
        {
            return 0;
        }
    }

    return 1;
}


/* of two that are alike */

static ngx_uint_t
ngx_http_sluice_header_same(const u_char *key, const u_char *name,
    size_t length)
{
    size_t  i;

    for (i = 0; i < length; i++) {

        if ((key[i] == '_') != (name[i] == '_')) {
            return 0;
        }
    }

    return 1;
}
