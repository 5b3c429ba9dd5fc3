
/*
 * The parts of a multipart form (fields.h).
 *
 * A delimiter is CRLF, "--" and the boundary (RFC 2046, 5.1.1).  Two bytes,
 * whatever they are, stand between it and its part; "--" follows the last.
 */


#include "layout.h"
#include "fields_kinds.h"

#include <string.h>


/* A parameter of a header. */

typedef struct {
    const char  *word;
    int          is_apart;          /* behind a semicolon or a blank */
    size_t       least;             /* bytes between quotes */
} sluice_fields_parameter_t;


static const char *sluice_fields_multipart_behind(
    const sluice_core_text_t *boundary, const char *delimiter);
static int sluice_fields_multipart_is_last(const char *p, const char *end);
static const char *sluice_fields_multipart_delimiter(const char *p,
    const char *end, const sluice_core_text_t *boundary);
static int sluice_fields_multipart_is_at(const char *p, const char *end,
    const sluice_core_text_t *boundary);
static void sluice_fields_multipart_cut(const char *p, const char *end,
    sluice_field_t *field);
static void sluice_fields_multipart_name(const char *p, const char *end,
    sluice_core_text_t *name);
static int sluice_fields_multipart_value(const char *p, const char *end,
    const sluice_fields_parameter_t *parameter, sluice_core_text_t *value);
static int sluice_fields_multipart_quoted(const char *p, const char *end,
    const sluice_fields_parameter_t *parameter, sluice_core_text_t *value);
static const char *sluice_fields_multipart_find(const char *p,
    const char *end, const sluice_fields_parameter_t *parameter);
static const char *sluice_fields_multipart_token(const char *p,
    const char *end);


static const sluice_fields_parameter_t
    sluice_fields_multipart_bound = { "boundary=", 0, 1 },
    sluice_fields_multipart_called = { "name=", 1, 0 };


void
sluice_fields_multipart_boundary(const sluice_core_text_t *type,
    sluice_core_text_t *boundary)
{
    if (!sluice_fields_multipart_value(type->data, type->data + type->length,
                                       &sluice_fields_multipart_bound,
                                       boundary)
        || memchr(boundary->data, '\r', boundary->length))
    {
        boundary->length = 0;
    }
}


const char *
sluice_fields_multipart_first(const char *p, const char *end,
    const sluice_core_text_t *boundary)
{
    const char  *first, *last, *behind;

    if (boundary->length == 0) {
        return NULL;
    }

    first = sluice_fields_multipart_is_at(p, end, boundary)
            ? p : sluice_fields_multipart_delimiter(p, end, boundary);

    for (last = first; last; /* void */ ) {
        behind = sluice_fields_multipart_behind(boundary, last);

        if (sluice_fields_multipart_is_last(behind, end)) {
            return first;
        }

        last = sluice_fields_multipart_delimiter(behind, end, boundary);
    }

    return NULL;
}


int
sluice_fields_multipart_next(sluice_fields_cursor_t *cursor,
    const sluice_fields_t *fields, sluice_field_t *field)
{
    const char  *behind, *next;

    cursor->tail = sluice_fields_multipart_from(fields, cursor->at);
    behind = sluice_fields_multipart_behind(&fields->boundary, cursor->at);

    if (sluice_fields_multipart_is_last(behind, fields->end)) {
        return 0;
    }

    next = sluice_fields_multipart_delimiter(behind, fields->end,
                                             &fields->boundary);

    field->from = cursor->tail;
    field->to = next - 2;
    cursor->at = next;

    /* the next one may follow at once, in the place of the two bytes */

    sluice_fields_multipart_cut(field->to - behind > 2 ? behind + 2
                                                       : field->to,
                                field->to, field);

    return 1;
}


const char *
sluice_fields_multipart_from(const sluice_fields_t *fields,
    const char *delimiter)
{
    return (delimiter == fields->text) ? delimiter : delimiter - 2;
}


static const char *
sluice_fields_multipart_behind(const sluice_core_text_t *boundary,
    const char *delimiter)
{
    return delimiter + 2 + boundary->length;
}


static int
sluice_fields_multipart_is_last(const char *p, const char *end)
{
    return end - p >= 2 && p[0] == '-' && p[1] == '-';
}


/* the next one, without its CRLF, which is at p or later; NULL: none */

static const char *
sluice_fields_multipart_delimiter(const char *p, const char *end,
    const sluice_core_text_t *boundary)
{
    for ( ;; ) {
        p = (p < end) ? memchr(p, '\r', (size_t) (end - p)) : NULL;

        if (p == NULL) {
            return NULL;
        }

        p++;

        if (p < end && *p == '\n'
            && sluice_fields_multipart_is_at(p + 1, end, boundary))
        {
            return p + 1;
        }
    }
}


static int
sluice_fields_multipart_is_at(const char *p, const char *end,
    const sluice_core_text_t *boundary)
{
    return (size_t) (end - p) >= 2 + (size_t) boundary->length
           && p[0] == '-' && p[1] == '-'
           && memcmp(p + 2, boundary->data, boundary->length) == 0;
}


static void
sluice_fields_multipart_cut(const char *p, const char *end,
    sluice_field_t *field)
{
    const char  *head, *line;

    head = memmem(p, (size_t) (end - p), "\r\n\r\n", 4);

    field->type = head ? SLUICE_FIELD_TEXT : SLUICE_FIELD_FLAG;
    sluice_fields_text(&field->value, head ? head + 4 : end, end);

    field->name.data = NULL;
    field->name.length = 0;
    head = head ? head : end;

    for ( ;; ) {
        line = memmem(p, (size_t) (head - p), "\r\n", 2);

        sluice_fields_multipart_name(p, line ? line : head, &field->name);

        if (line == NULL) {
            return;
        }

        p = line + 2;
    }
}


/* the name that this line gives a part, if it is a line that gives one */

static void
sluice_fields_multipart_name(const char *p, const char *end,
    sluice_core_text_t *name)
{
    if (sluice_fields_begins(p, end, "content-disposition:")
        && !sluice_fields_multipart_value(p, end,
                                          &sluice_fields_multipart_called,
                                          name))
    {
        name->data = NULL;
        name->length = 0;
    }
}


/* the first between quotes; where there is none, the first without */

static int
sluice_fields_multipart_value(const char *p, const char *end,
    const sluice_fields_parameter_t *parameter, sluice_core_text_t *value)
{
    const char  *to;

    if (sluice_fields_multipart_quoted(p, end, parameter, value)) {
        return 1;
    }

    for ( ;; ) {
        p = sluice_fields_multipart_find(p, end, parameter);

        if (p == NULL) {
            return 0;
        }

        to = sluice_fields_multipart_token(p, end);

        if (to > p) {
            sluice_fields_text(value, p, to);
            return 1;
        }
    }
}


static int
sluice_fields_multipart_quoted(const char *p, const char *end,
    const sluice_fields_parameter_t *parameter, sluice_core_text_t *value)
{
    const char  *to;

    for ( ;; ) {
        p = sluice_fields_multipart_find(p, end, parameter);

        if (p == NULL) {
            return 0;
        }

        if (p == end || *p != '"') {
            continue;
        }

        to = memchr(p + 1, '"', (size_t) (end - p - 1));

        if (to == NULL) {
            return 0;
        }

        if ((size_t) (to - p - 1) >= parameter->least) {
            sluice_fields_text(value, p + 1, to);
            return 1;
        }
    }
}


/* where the next value begins; NULL: there is none */

static const char *
sluice_fields_multipart_find(const char *p, const char *end,
    const sluice_fields_parameter_t *parameter)
{
    const char  *from;

    for (from = p; p < end; p++) {

        if ((*p | 0x20) != *parameter->word
            || !sluice_fields_begins(p, end, parameter->word))
        {
            continue;
        }

        if (!parameter->is_apart
            || (p > from && (p[-1] == ';' || p[-1] == ' ')))
        {
            return p + strlen(parameter->word);
        }
    }

    return NULL;
}


/* behind what may stand without quotes */

static const char *
sluice_fields_multipart_token(const char *p, const char *end)
{
    while (p < end && *p != ';' && *p != ' ' && (*p < '\t' || *p > '\r')) {
        p++;
    }

    return p;
}
