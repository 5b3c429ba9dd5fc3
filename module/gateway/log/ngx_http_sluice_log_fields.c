
/*
 * What a log entry has by name: headers, and parameters, which
 * ngx_http_sluice_log_parameters.c cuts, as objects whose values are strings,
 * or arrays of those where a name comes more than once.  Secrets are taken out
 * (ngx_sluice_redact.h).
 */


#include "ngx_http_sluice_log.h"
#include "ngx_sluice_redact.h"


static void ngx_http_sluice_log_add_connection(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r);
static void ngx_http_sluice_log_add_list(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_list_t *list);
static ngx_uint_t ngx_http_sluice_log_count(ngx_http_request_t *r,
    ngx_list_t *list, ngx_uint_t *host);
static void ngx_http_sluice_log_add(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
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
    ngx_http_sluice_log_object(log, "headers", &fields);
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
    ngx_http_sluice_log_object(log, "headers", &fields);
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
    ngx_uint_t        i, n, host, from, to;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    /* those from and to which are left out, but for Host */

    n = ngx_http_sluice_log_count(r, list, &host);
    from = n;
    to = n;

    if (n > NGX_HTTP_SLUICE_LOG_FIELDS - fields->nelts) {
        from = NGX_HTTP_SLUICE_LOG_FIELDS - fields->nelts
               - NGX_HTTP_SLUICE_LOG_LAST;
        to = n - NGX_HTTP_SLUICE_LOG_LAST;
        from -= (host >= from && host < to);
    }

    fields->omitted = 0;
    n = 0;

    for (part = &list->part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].hash == 0) {
                continue;
            }

            if (n >= from && n < to && n != host) {
                fields->omitted++;
                n++;
                continue;
            }

            n++;

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


/* How many lines a list has; host: which is that of Host, if one is. */

static ngx_uint_t
ngx_http_sluice_log_count(ngx_http_request_t *r, ngx_list_t *list,
    ngx_uint_t *host)
{
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    n = 0;
    *host = NGX_MAX_SIZE_T_VALUE;

    for (part = &list->part; part; part = part->next) {

        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (&h[i] == r->headers_in.host) {
                *host = n;
            }

            n += (h[i].hash != 0);
        }
    }

    return n;
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


void
ngx_http_sluice_log_object(ngx_http_sluice_log_t *log, const char *name,
    ngx_http_sluice_log_fields_t *fields)
{
    ngx_uint_t                    several;
    ngx_http_sluice_log_field_t  *field, *next, *end;

    end = fields->elts + fields->nelts;

    ngx_http_sluice_log_text(log, "\"");
    ngx_http_sluice_log_raw(log, name, ngx_strlen(name));
    ngx_http_sluice_log_text(log, "\":{");

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

    if (fields->omitted) {
        ngx_http_sluice_log_text(log, ",\"");
        ngx_http_sluice_log_raw(log, name, ngx_strlen(name));
        ngx_http_sluice_log_text(log, "_omitted\":");
        ngx_http_sluice_log_number(log, fields->omitted);
    }
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
