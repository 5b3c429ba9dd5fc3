
/*
 * The options of Connection (ngx_http_sluice_header_options.h).
 */


#include "ngx_http_sluice_header_options.h"


static ngx_uint_t ngx_http_sluice_header_options_stays(u_char *name,
    size_t length);


ngx_int_t
ngx_http_sluice_header_options_add(ngx_http_sluice_header_options_t *names,
    ngx_str_t *line)
{
    u_char  *p, *end, *name;
    size_t   length;

    /* most lines are one of these alone */

    if (ngx_http_sluice_header_options_stays(line->data, line->len)) {
        return NGX_OK;
    }

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

        if (ngx_http_sluice_header_options_stays(name, length)
            || ngx_http_sluice_header_options_has(names, name, length))
        {
            continue;
        }

        if (names->count == NGX_HTTP_SLUICE_HEADER_OPTIONS_MAX) {
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
ngx_http_sluice_header_options_stays(u_char *name, size_t length)
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
ngx_http_sluice_header_options_has(ngx_http_sluice_header_options_t *names,
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
