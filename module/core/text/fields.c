
/*
 * Fields of any kind, and those of forms (fields.h).
 */


#include "fields_kinds.h"
#include "hex.h"

#include <string.h>


static int sluice_fields_next(const sluice_fields_t *fields,
    sluice_fields_cursor_t *cursor, sluice_field_t *field);
static int sluice_fields_form_next(sluice_fields_cursor_t *cursor,
    const char *end, int is_loose, sluice_field_t *field);
static void sluice_fields_pass(const sluice_fields_t *fields,
    sluice_fields_cursor_t *cursor, const sluice_field_t *field);
static int sluice_fields_is_any(const sluice_fields_t *fields,
    const sluice_core_text_t *spelt, const sluice_fields_name_t *names,
    size_t count);
static int sluice_fields_is(const sluice_fields_t *fields,
    const sluice_core_text_t *spelt, const sluice_core_text_t *name);
static size_t sluice_fields_spelt(int kind, const char **p, const char *end,
    char *out);
static char *sluice_fields_copy(char *out, const char *from, const char *to);


static const struct {
    const char  *type;
    int          kind;
} sluice_fields_types[] = {
    { "application/x-www-form-urlencoded", SLUICE_FIELDS_FORM },
    { "application/json", SLUICE_FIELDS_JSON },
    { "multipart/form-data", SLUICE_FIELDS_MULTIPART },
    { NULL, SLUICE_FIELDS_NONE }
};


int
sluice_fields_kind(const sluice_core_text_t *type)
{
    size_t       i;
    const char  *end;

    end = type->data + type->length;

    for (i = 0; sluice_fields_types[i].type; i++) {
        if (sluice_fields_begins(type->data, end,
                                 sluice_fields_types[i].type))
        {
            break;
        }
    }

    return sluice_fields_types[i].kind;
}


int
sluice_fields_open(sluice_fields_t *fields, int kind,
    const sluice_core_text_t *type, const sluice_core_text_t *text)
{
    if (text->length > SLUICE_FIELDS_MAX) {
        return SLUICE_CORE_NONE;
    }

    fields->kind = kind;
    fields->text = text->data;
    fields->end = text->data + text->length;

    switch (kind) {

    case SLUICE_FIELDS_FORM:
    case SLUICE_FIELDS_LOOSE:
        fields->first = fields->text;
        return SLUICE_CORE_OK;

    case SLUICE_FIELDS_JSON:
        fields->first = sluice_fields_json_first(fields->text, fields->end);
        break;

    case SLUICE_FIELDS_MULTIPART:
        sluice_fields_multipart_boundary(type, &fields->boundary);
        fields->first = sluice_fields_multipart_first(fields->text,
                                                      fields->end,
                                                      &fields->boundary);
        break;

    default:
        fields->first = NULL;
    }

    return fields->first ? SLUICE_CORE_OK : SLUICE_CORE_NONE;
}


void
sluice_fields_find(const sluice_fields_t *fields, sluice_fields_name_t *names,
    size_t count)
{
    size_t                   i;
    sluice_field_t           field;
    sluice_fields_name_t    *name;
    sluice_fields_cursor_t   cursor;

    for (i = 0; i < count; i++) {
        names[i].count = 0;
        names[i].is_text = 0;
    }

    cursor.at = fields->first;

    while (sluice_fields_next(fields, &cursor, &field)) {

        for (i = 0; i < count; i++) {
            name = &names[i];

            if (!sluice_fields_is(fields, &field.name, &name->name)) {
                continue;
            }

            if (name->count == 0) {
                name->value = field.value;
                name->is_text = (field.type == SLUICE_FIELD_TEXT);
                name->count = (field.type == SLUICE_FIELD_TABLE);
            }

            name->count++;
        }
    }
}


size_t
sluice_fields_decode(const sluice_fields_t *fields,
    const sluice_core_text_t *value, char *buffer)
{
    char        *out, bytes[SLUICE_FIELDS_SPELT];
    size_t       length;
    const char  *p, *end;

    out = buffer;
    p = value->data;
    end = p + value->length;

    while (p < end) {
        length = sluice_fields_spelt(fields->kind, &p, end, bytes);
        memcpy(out, bytes, length);
        out += length;
    }

    return (size_t) (out - buffer);
}


/*
 * A multipart form may begin with a delimiter, which has no CRLF before it.
 * Nor has then what comes into its place.
 */

int
sluice_fields_without(const sluice_fields_t *fields,
    const sluice_fields_name_t *names, size_t count, char *buffer,
    sluice_core_text_t *rest)
{
    char                    *out;
    size_t                   kept, all, skip;
    const char              *head;
    sluice_field_t           field;
    sluice_fields_cursor_t   cursor;

    head = fields->first;
    skip = 0;

    if (fields->kind == SLUICE_FIELDS_MULTIPART) {
        head = sluice_fields_multipart_from(fields, head);
        skip = (fields->first == fields->text) ? 2 : 0;
    }

    out = sluice_fields_copy(buffer, fields->text, head);
    cursor.at = fields->first;

    for (kept = 0, all = 0; sluice_fields_next(fields, &cursor, &field);
         all++)
    {
        if (sluice_fields_is_any(fields, &field.name, names, count)) {
            sluice_fields_pass(fields, &cursor, &field);
            continue;
        }

        /* with what divides it from the field before */

        if (kept && fields->kind != SLUICE_FIELDS_MULTIPART) {
            *out++ = field.from[-1];
        }

        if (out == buffer && field.from != fields->text) {
            field.from += skip;
        }

        out = sluice_fields_copy(out, field.from, field.to);
        kept++;
    }

    if (kept == all) {
        return SLUICE_CORE_NONE;
    }

    if (out == buffer) {
        cursor.tail += skip;
    }

    out = sluice_fields_copy(out, cursor.tail, fields->end);

    sluice_fields_text(rest, buffer, out);

    return SLUICE_CORE_OK;
}


static int
sluice_fields_next(const sluice_fields_t *fields,
    sluice_fields_cursor_t *cursor, sluice_field_t *field)
{
    switch (fields->kind) {

    case SLUICE_FIELDS_JSON:
        return sluice_fields_json_next(cursor, fields->end, field);

    case SLUICE_FIELDS_MULTIPART:
        return sluice_fields_multipart_next(cursor, fields, field);

    default:
        return sluice_fields_form_next(cursor, fields->end,
                                       fields->kind == SLUICE_FIELDS_LOOSE,
                                       field);
    }
}


/* a last "&" ends a field and begins none */

static int
sluice_fields_form_next(sluice_fields_cursor_t *cursor, const char *end,
    int is_loose, sluice_field_t *field)
{
    const char  *to, *equals;

    cursor->tail = end;

    if (cursor->at >= end) {
        return 0;
    }

    if (is_loose) {
        for (to = cursor->at; to < end && *to != '&' && *to != ';'; to++) {
            /* void */
        }

    } else {
        to = memchr(cursor->at, '&', (size_t) (end - cursor->at));
        to = to ? to : end;
    }

    equals = memchr(cursor->at, '=', (size_t) (to - cursor->at));

    field->from = cursor->at;
    field->to = to;
    field->type = equals ? SLUICE_FIELD_TEXT : SLUICE_FIELD_FLAG;
    sluice_fields_text(&field->name, cursor->at, equals ? equals : to);
    sluice_fields_text(&field->value, equals ? equals + 1 : to, to);

    cursor->at = (to < end) ? to + 1 : end;

    return 1;
}


/* Of a loose form: a ";" may be in the text of what begins behind "&". */

static void
sluice_fields_pass(const sluice_fields_t *fields,
    sluice_fields_cursor_t *cursor, const sluice_field_t *field)
{
    const char  *to;

    if (fields->kind != SLUICE_FIELDS_LOOSE
        || (field->from != fields->text && field->from[-1] != '&'))
    {
        return;
    }

    to = memchr(field->to, '&', (size_t) (fields->end - field->to));

    cursor->at = to ? to + 1 : fields->end;
}


static int
sluice_fields_is_any(const sluice_fields_t *fields,
    const sluice_core_text_t *spelt, const sluice_fields_name_t *names,
    size_t count)
{
    size_t  i;

    for (i = 0; i < count; i++) {
        if (sluice_fields_is(fields, spelt, &names[i].name)) {
            return 1;
        }
    }

    return 0;
}


/* is what is spelt so the name?  No spelling is shorter than its bytes */

static int
sluice_fields_is(const sluice_fields_t *fields,
    const sluice_core_text_t *spelt, const sluice_core_text_t *name)
{
    char         bytes[SLUICE_FIELDS_SPELT];
    size_t       length;
    const char  *p, *end, *q, *last;

    if (spelt->data == NULL || spelt->length < name->length) {
        return 0;
    }

    p = spelt->data;
    end = p + spelt->length;
    q = name->data;
    last = q + name->length;

    while (p < end) {
        length = sluice_fields_spelt(fields->kind, &p, end, bytes);

        if (length > (size_t) (last - q) || memcmp(q, bytes, length) != 0) {
            return 0;
        }

        q += length;
    }

    return q == last;
}


static size_t
sluice_fields_spelt(int kind, const char **p, const char *end, char *out)
{
    int  code;

    if (kind == SLUICE_FIELDS_JSON && **p == '\\') {
        return sluice_fields_json_spelt(p, end, out);
    }

    *out = *(*p)++;

    if (kind == SLUICE_FIELDS_FORM || kind == SLUICE_FIELDS_LOOSE) {

        if (*out == '+') {
            *out = ' ';

        } else if (*out == '%') {
            code = sluice_hex_byte(*p, end);

            if (code >= 0) {
                *out = (char) code;
                *p += 2;
            }
        }
    }

    return 1;
}


static char *
sluice_fields_copy(char *out, const char *from, const char *to)
{
    if (to > from) {
        memcpy(out, from, (size_t) (to - from));
    }

    return out + (to - from);
}
