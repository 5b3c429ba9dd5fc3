
/*
 * What a log entry has by name: headers, and parameters, which
 * ngx_http_sluice_log_parameters.c cuts, as objects whose values are strings,
 * or arrays of those where a name comes more than once.  Secrets are taken out
 * (ngx_sluice_redact.h).
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_log.h"
#include "ngx_sluice_redact.h"
#include "bytes.h"
#include "decimal.h"


static void ngx_http_sluice_log_add_connection(
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r);
static void ngx_http_sluice_log_add_list(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_list_t *list);
static ngx_uint_t ngx_http_sluice_log_most(ngx_list_t *list);
static ngx_uint_t ngx_http_sluice_log_count(ngx_http_request_t *r,
    ngx_list_t *list, ngx_uint_t *host);
static void ngx_http_sluice_log_add(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_sluice_log_is_same(
    ngx_http_sluice_log_fields_t *fields, ngx_str_t *one, ngx_str_t *other);
static void ngx_http_sluice_log_array(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_sluice_log_field_t *field);
static void ngx_http_sluice_log_value(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_field_t *field);
static ngx_uint_t ngx_http_sluice_log_is_plain(ngx_str_t *text);


void
ngx_http_sluice_log_request_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    ngx_http_sluice_log_fields_t  fields;

    ngx_http_sluice_log_begin_fields(&fields, 1);
    ngx_http_sluice_log_add_list(log, &fields, r, &r->headers_in.headers);
    ngx_http_sluice_log_object(log, "headers", &fields);
}


void
ngx_http_sluice_log_response_headers(ngx_http_sluice_log_t *log,
    ngx_http_request_t *r)
{
    u_char                        digits[SLUICE_CORE_DECIMAL];
    ngx_str_t                     name, value;
    ngx_http_sluice_log_fields_t  fields;

    ngx_http_sluice_log_begin_fields(&fields, 1);

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
        value.len = (u_char *) sluice_core_decimal((char *) digits,
                                        r->headers_out.content_length_n)
                    - digits;

        ngx_http_sluice_log_add_field(&fields, name)->value = value;
    }

    ngx_http_sluice_log_add_connection(&fields, r);
    ngx_http_sluice_log_add_list(log, &fields, r, &r->headers_out.headers);
    ngx_http_sluice_log_object(log, "headers", &fields);
}


static void
ngx_http_sluice_log_add_connection(ngx_http_sluice_log_fields_t *fields,
    ngx_http_request_t *r)
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
    ngx_http_sluice_log_add_field(fields, name)->value = value;

    if (r->chunked) {
        ngx_str_set(&name, "transfer-encoding");
        ngx_str_set(&value, "chunked");
        ngx_http_sluice_log_add_field(fields, name)->value = value;
    }
}


static void
ngx_http_sluice_log_add_list(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_request_t *r,
    ngx_list_t *list)
{
    ngx_uint_t                     n, room, host, from, to;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    /* those from and to which are left out, but for Host */

    room = NGX_HTTP_SLUICE_LOG_FIELDS - fields->nelts;
    host = NGX_MAX_SIZE_T_VALUE;
    from = room;
    to = room;

    n = ngx_http_sluice_log_most(list);

    if (n > room) {
        n = ngx_http_sluice_log_count(r, list, &host);
    }

    if (n > room) {
        from = room - NGX_HTTP_SLUICE_LOG_LAST;
        to = n - NGX_HTTP_SLUICE_LOG_LAST;
        from -= (host >= from && host < to);
    }

    n = 0;

    ngx_http_sluice_header_each(h, walk, list) {

        if (h->hash == 0) {
            continue;
        }

        if (n >= from && n < to && n != host) {
            fields->omitted++;
            n++;
            continue;
        }

        n++;

        ngx_http_sluice_log_add(log, fields, r, &h->key, &h->value);
    }
}


/* How many lines a list may have. */

static ngx_uint_t
ngx_http_sluice_log_most(ngx_list_t *list)
{
    ngx_uint_t        n;
    ngx_list_part_t  *part;

    n = 0;

    for (part = &list->part; part; part = part->next) {
        n += part->nelts;
    }

    return n;
}


/* How many lines a list has; host: which is that of Host, if one is. */

static ngx_uint_t
ngx_http_sluice_log_count(ngx_http_request_t *r, ngx_list_t *list,
    ngx_uint_t *host)
{
    ngx_uint_t                     n;
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    n = 0;

    ngx_http_sluice_header_each(h, walk, list) {

        if (h == r->headers_in.host) {
            *host = n;
        }

        n += (h->hash != 0);
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

    field = ngx_http_sluice_log_add_field(fields, *name);
    field->secret = ngx_sluice_redact_is_secret(name->data, name->len);

    if (!field->secret) {
        field->value = ngx_http_sluice_log_redact(log, r, value);
    }
}


/*
 * Few names have the length and the ends of another one: those alone are
 * compared.
 */

ngx_http_sluice_log_field_t *
ngx_http_sluice_log_add_field(ngx_http_sluice_log_fields_t *fields,
    ngx_str_t name)
{
    uint64_t                      bit;
    ngx_http_sluice_log_field_t  *field, *other;

    field = &fields->elts[fields->nelts++];

    ngx_memzero(field, sizeof(ngx_http_sluice_log_field_t));

    field->name = name;

    if (name.len == 0) {
        return field;
    }

    bit = (uint64_t) 1 << ((7 * name.len + 3 * (name.data[0] | 0x20)
                            + (name.data[name.len - 1] | 0x20)) % 64);

    if ((fields->seen & bit) == 0) {
        fields->seen |= bit;
        return field;
    }

    for (other = fields->elts; other < field; other++) {

        if (!other->again
            && ngx_http_sluice_log_is_same(fields, &other->name, &name))
        {
            while (other->next) {
                other = &fields->elts[other->next];
            }

            other->next = (uint8_t) (field - fields->elts);
            field->again = 1;
            break;
        }
    }

    return field;
}


static ngx_uint_t
ngx_http_sluice_log_is_same(ngx_http_sluice_log_fields_t *fields,
    ngx_str_t *one, ngx_str_t *other)
{
    if (one->len != other->len) {
        return 0;
    }

    return fields->headers
           ? ngx_strncasecmp(one->data, other->data, one->len) == 0
           : ngx_memcmp(one->data, other->data, one->len) == 0;
}


void
ngx_http_sluice_log_object(ngx_http_sluice_log_t *log, const char *name,
    ngx_http_sluice_log_fields_t *fields)
{
    ngx_http_sluice_log_field_t  *field, *end;

    end = fields->elts + fields->nelts;

    ngx_http_sluice_log_text(log, "\"");
    ngx_http_sluice_log_raw(log, name, ngx_strlen(name));
    ngx_http_sluice_log_text(log, "\":{");

    for (field = fields->elts; field < end; field++) {

        if (field->again) {
            continue;
        }

        if (field != fields->elts) {
            ngx_http_sluice_log_text(log, ",");
        }

        if (fields->headers) {
            ngx_http_sluice_log_put(log, sluice_json_name, field->name);

        } else {
            ngx_http_sluice_log_string(log, field->name);
        }

        ngx_http_sluice_log_text(log, ":");

        if (field->next && !field->secret) {
            ngx_http_sluice_log_array(log, fields, field);

        } else {
            ngx_http_sluice_log_value(log, field);
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


/* all values of this name */

static void
ngx_http_sluice_log_array(ngx_http_sluice_log_t *log,
    ngx_http_sluice_log_fields_t *fields, ngx_http_sluice_log_field_t *field)
{
    ngx_http_sluice_log_text(log, "[");
    ngx_http_sluice_log_value(log, field);

    while (field->next) {
        field = &fields->elts[field->next];

        ngx_http_sluice_log_text(log, ",");
        ngx_http_sluice_log_value(log, field);
    }

    ngx_http_sluice_log_text(log, "]");
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
        ngx_http_sluice_log_string(log, field->value);
    }
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
    char                 *p;
    size_t                n, left;
    sluice_bytes_t        bytes;
    sluice_bytes_mask_t   begins, slashes;

    slashes = (sluice_bytes_mask_t) { 0 };
    begins = slashes;
    p = (char *) text->data;

    for (left = text->len; left; left -= n, p += n) {
        n = ngx_min(left, SLUICE_BYTES);
        bytes = sluice_bytes_load(p, n);

        /* "#", "%", "&", and "$" with them; ";" and "?"; "@" */

        begins |= (bytes - '#' <= '&' - '#') | ((bytes | 4) == '?')
                  | (bytes == '@');
        slashes |= (bytes == '/');
    }

    if (sluice_bytes_any(begins)) {
        return 0;
    }

    /* a path has a slash on both sides of a secret's kind */

    return !sluice_bytes_any(slashes)
           || memchr(text->data, '/', text->len)
              == memrchr(text->data, '/', text->len)
           || !sluice_redact_has_segment(text->data, text->len);
}
