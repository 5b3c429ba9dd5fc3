
/*
 * What a log entry has by name: headers and parameters, as objects whose
 * values are strings, or arrays of those where a name comes more than once.
 * Secrets are taken out (ngx_sluice_redact.h).
 */


#include "ngx_http_sluice_log.h"
#include "ngx_sluice_redact.h"


/* Of one request in hand: nothing here waits. */

typedef struct {
    ngx_uint_t                    nelts;
    ngx_http_sluice_log_field_t   elts[NGX_HTTP_SLUICE_LOG_FIELDS];
} ngx_http_sluice_log_fields_t;


static void ngx_http_sluice_log_add_connection(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r);
static void ngx_http_sluice_log_add_list(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_list_t *list);
static void ngx_http_sluice_log_add(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static void ngx_http_sluice_log_add_parameter(
    ngx_http_sluice_log_fields_t *fields, u_char **room, u_char *p,
    u_char *end);
static ngx_str_t ngx_http_sluice_log_unescape(u_char **room, u_char *p,
    u_char *end);
static void ngx_http_sluice_log_object(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields);
static void ngx_http_sluice_log_value(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_field_t *field);
static ngx_http_sluice_log_field_t *ngx_http_sluice_log_next(
    ngx_http_sluice_log_field_t *field, ngx_http_sluice_log_field_t *end);
static ngx_uint_t ngx_http_sluice_log_is_plain(ngx_str_t *text);


void
ngx_http_sluice_log_request_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_log_fields_t  fields;

    fields.nelts = 0;

    ngx_http_sluice_log_add_list(log, &fields, r, &r->headers_in.headers);
    ngx_http_sluice_log_object(log, &fields);
}


void
ngx_http_sluice_log_response_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    u_char                        digits[NGX_OFF_T_LEN];
    ngx_str_t                     name, value;
    ngx_http_sluice_log_fields_t  fields;

    fields.nelts = 0;

    /* what nginx keeps in places of its own, or writes itself */

    if (r->headers_out.content_type.len) {
        ngx_str_set(&name, "content-type");
        ngx_http_sluice_log_add(log, &fields, r, &name,
                                &r->headers_out.content_type);
    }

    if (r->headers_out.content_length == NULL
        && r->headers_out.content_length_n >= 0)
    {
        ngx_str_set(&name, "content-length");

        value.data = digits;
        value.len = ngx_sprintf(digits, "%O", r->headers_out.content_length_n)
                    - digits;

        ngx_http_sluice_log_add(log, &fields, r, &name, &value);
    }

    ngx_http_sluice_log_add_connection(log, &fields, r);
    ngx_http_sluice_log_add_list(log, &fields, r, &r->headers_out.headers);
    ngx_http_sluice_log_object(log, &fields);
}


static void
ngx_http_sluice_log_add_connection(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r)
{
    ngx_str_t  name, value;

    if (r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS) {
        ngx_str_set(&value, "upgrade");

    } else if (r->keepalive) {
        ngx_str_set(&value, "keep-alive");

    } else {
        ngx_str_set(&value, "close");
    }

    ngx_str_set(&name, "connection");
    ngx_http_sluice_log_add(log, fields, r, &name, &value);

    if (r->chunked) {
        ngx_str_set(&name, "transfer-encoding");
        ngx_str_set(&value, "chunked");
        ngx_http_sluice_log_add(log, fields, r, &name, &value);
    }
}


static void
ngx_http_sluice_log_add_list(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_list_t *list)
{
    ngx_str_t         name;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &list->part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].hash == 0) {
                continue;
            }

            if (fields->nelts == NGX_HTTP_SLUICE_LOG_FIELDS) {
                return;
            }

            /* of a response not all modules fill lowcase_key */

            name.len = h[i].key.len;
            name.data = ngx_pnalloc(r->pool, name.len);

            if (name.data == NULL) {
                log->failed = 1;
                return;
            }

            ngx_strlow(name.data, h[i].key.data, name.len);

            ngx_http_sluice_log_add(log, fields, r, &name, &h[i].value);
        }
    }
}


/* a value may be a URI with a key in it (Referer, Location) */

static void
ngx_http_sluice_log_add(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value)
{
    ngx_http_sluice_log_field_t  *field;

    field = &fields->elts[fields->nelts++];

    ngx_memzero(field, sizeof(ngx_http_sluice_log_field_t));

    field->name = *name;
    field->secret = ngx_sluice_redact_is_secret(name->data, name->len);

    if (!field->secret) {
        field->value = ngx_http_sluice_log_redact(log, r, value);
    }
}


/* as ngx.decode_args() reads a query, of which the secrets are taken first */

void
ngx_http_sluice_log_parameters(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    u_char                        *p, *end, *last, *query, *room;
    size_t                         length;
    ngx_uint_t                     n;
    ngx_http_sluice_log_fields_t   fields;

    fields.nelts = 0;

    if (r->args.len == 0) {
        ngx_http_sluice_log_text(log, "{}");
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

    ngx_http_sluice_log_object(log, &fields);
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

    field = &fields->elts[fields->nelts++];

    ngx_memzero(field, sizeof(ngx_http_sluice_log_field_t));

    field->name = ngx_http_sluice_log_unescape(room, p,
                                               equals ? equals : end);

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


static void
ngx_http_sluice_log_object(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields)
{
    ngx_uint_t                    several;
    ngx_http_sluice_log_field_t  *field, *next, *end;

    end = fields->elts + fields->nelts;

    ngx_http_sluice_log_text(log, "{");

    for (field = fields->elts; field < end; field++) {

        if (field->done) {
            continue;
        }

        if (field != fields->elts) {
            ngx_http_sluice_log_text(log, ",");
        }

        ngx_http_sluice_log_string(log, field->name.data, field->name.len);
        ngx_http_sluice_log_text(log, ":");

        next = ngx_http_sluice_log_next(field, end);
        several = (next != NULL && !field->secret);

        if (several) {
            ngx_http_sluice_log_text(log, "[");
        }

        ngx_http_sluice_log_value(log, field);

        for ( /* void */ ; next; next = ngx_http_sluice_log_next(next, end)) {
            next->done = 1;

            if (several) {
                ngx_http_sluice_log_text(log, ",");
                ngx_http_sluice_log_value(log, next);
            }
        }

        if (several) {
            ngx_http_sluice_log_text(log, "]");
        }
    }

    ngx_http_sluice_log_text(log, "}");
}


static void
ngx_http_sluice_log_value(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_field_t *field)
{
    if (field->bare) {
        ngx_http_sluice_log_text(log, "true");

    } else if (field->secret) {
        ngx_http_sluice_log_text(log, "\"" NGX_SLUICE_REDACTED "\"");

    } else {
        ngx_http_sluice_log_string(log, field->value.data, field->value.len);
    }
}


/* the next of this name */

static ngx_http_sluice_log_field_t *
ngx_http_sluice_log_next(ngx_http_sluice_log_field_t *field,
    ngx_http_sluice_log_field_t *end)
{
    ngx_http_sluice_log_field_t  *next;

    for (next = field + 1; next < end; next++) {

        if (next->name.len == field->name.len
            && ngx_memcmp(next->name.data, field->name.data, field->name.len)
               == 0)
        {
            return next;
        }
    }

    return NULL;
}


ngx_str_t
ngx_http_sluice_log_redact(ngx_http_sluice_log_t *log, ngx_http_request_t *r,
    ngx_str_t *text)
{
    ngx_str_t  redacted;

    if (ngx_http_sluice_log_is_plain(text)) {
        return *text;
    }

    redacted.len = 0;
    redacted.data = ngx_pnalloc(r->pool, NGX_SLUICE_REDACT_GROWTH * text->len);

    if (redacted.data == NULL) {
        log->failed = 1;
        return redacted;
    }

    redacted.len = ngx_sluice_redact(redacted.data, text->data, text->len,
                                     NGX_SLUICE_REDACT_URI);

    return redacted;
}


/* whether nothing in it can begin a secret of a URI */

static ngx_uint_t
ngx_http_sluice_log_is_plain(ngx_str_t *text)
{
    u_char               *p, *last;
    static const u_char   begins[256] = {
        ['?'] = 1, ['&'] = 1, [';'] = 1, ['#'] = 1, ['@'] = 1, ['%'] = 1,
        ['/'] = 2
    };

    last = text->data + text->len;

    for (p = text->data; p < last; p++) {

        if (begins[*p] == 0) {
            continue;
        }

        if (begins[*p] == 1
            || ((size_t) (last - p) >= sizeof("/key-auth") - 1
                && ngx_memcmp(p, "/key-auth", sizeof("/key-auth") - 1) == 0))
        {
            return 0;
        }
    }

    return 1;
}
