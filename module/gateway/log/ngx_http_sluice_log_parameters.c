
/*
 * The parameters of a log entry, as ngx.decode_args() reads a query.
 */


#include "ngx_http_sluice_log.h"
#include "ngx_sluice_redact.h"


static void ngx_http_sluice_log_add_parameter(
    ngx_http_sluice_log_fields_t *fields, u_char **room, u_char *p,
    u_char *end);
static ngx_str_t ngx_http_sluice_log_unescape(u_char **room, u_char *p,
    u_char *end);
static ngx_uint_t ngx_http_sluice_log_rest(u_char *p, u_char *last);


/* of the query without its secrets */

void
ngx_http_sluice_log_parameters(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    u_char                        *p, *end, *last, *query, *room;
    size_t                         length;
    ngx_uint_t                     n;
    ngx_http_sluice_log_fields_t   fields;

    ngx_http_sluice_log_begin_fields(&fields, 0);

    if (r->args.len == 0) {
        ngx_http_sluice_log_object(log, "querystring", &fields);
        return;
    }

    query = ngx_pnalloc(r->pool, NGX_SLUICE_REDACT_GROWTH * r->args.len);
    if (query == NULL) {
        log->failed = 1;
        return;
    }

    length = ngx_sluice_redact(query, r->args.data, r->args.len,
                               NGX_SLUICE_REDACT_QUERY);

    room = ngx_pnalloc(r->pool, length);
    if (room == NULL) {
        log->failed = 1;
        return;
    }

    last = query + length;
    n = 0;

    for (p = query; p <= last && n < NGX_HTTP_SLUICE_LOG_FIELDS; n++) {

        end = memchr(p, '&', last - p);
        if (end == NULL) {
            end = last;
        }

        ngx_http_sluice_log_add_parameter(&fields, &room, p, end);

        p = end + 1;
    }

    fields.omitted = ngx_http_sluice_log_rest(p, last);

    ngx_http_sluice_log_object(log, "querystring", &fields);
}


/* parameters from there on that have a name */

static ngx_uint_t
ngx_http_sluice_log_rest(u_char *p, u_char *last)
{
    ngx_uint_t  n;

    n = 0;

    while (p < last) {

        n += (*p != '&' && *p != '=');

        p = memchr(p, '&', last - p);
        if (p == NULL) {
            break;
        }

        p++;
    }

    return n;
}


static void
ngx_http_sluice_log_add_parameter(ngx_http_sluice_log_fields_t *fields,
    u_char **room, u_char *p, u_char *end)
{
    u_char                       *equals;
    ngx_http_sluice_log_field_t  *field;

    equals = memchr(p, '=', end - p);

    if (p == (equals ? equals : end)) {
        return;
    }

    field = ngx_http_sluice_log_add_field(fields,
                ngx_http_sluice_log_unescape(room, p, equals ? equals : end));

    if (equals == NULL) {
        field->bare = 1;
        return;
    }

    field->value = ngx_http_sluice_log_unescape(room, equals + 1, end);
}


/* a triplet that is none stays as it is */

static ngx_str_t
ngx_http_sluice_log_unescape(u_char **room, u_char *p, u_char *end)
{
    u_char     *out;
    ngx_int_t   c;
    ngx_str_t   text;

    out = *room;
    text.data = out;

    for ( /* void */ ; p < end; p++) {

        if (*p == '%' && end - p >= 3) {

            c = ngx_hextoi(p + 1, 2);

            if (c != NGX_ERROR) {
                *out++ = (u_char) c;
                p += 2;
                continue;
            }
        }

        *out++ = *p == '+' ? ' ' : *p;
    }

    text.len = out - text.data;
    *room = out;

    return text;
}
