
/*
 * The members of a JSON object (fields.h), in a text that was checked.
 */


#include "fields_kinds.h"

#include <string.h>


static const char *sluice_fields_json_quote(const char *p, const char *end);
static void sluice_fields_json_cut(sluice_field_t *field);
static int sluice_fields_json_code(const char *p, const char *end);


const char *
sluice_fields_json_first(const char *p, const char *end)
{
    const char  *brace;

    brace = sluice_fields_json_blank(p, end);

    if (brace == end || *brace != '{'
        || !sluice_fields_json_is_valid(brace, end))
    {
        return NULL;
    }

    return brace + 1;
}


int
sluice_fields_json_next(sluice_fields_cursor_t *cursor, const char *end,
    sluice_field_t *field)
{
    int          depth, has_name;
    const char  *p;

    if (cursor->at == NULL) {
        return 0;
    }

    depth = 0;
    has_name = 0;

    for (p = cursor->at; p < end; p++) {

        if (*p == '"') {
            has_name = 1;
            p = sluice_fields_json_quote(p, end);

        } else if (*p == '{' || *p == '[') {
            depth++;

        } else if (depth > 0) {
            depth -= (*p == '}' || *p == ']');

        } else if (*p == ',' || *p == '}') {
            break;
        }
    }

    field->from = cursor->at;
    field->to = p;

    cursor->tail = has_name ? p : cursor->at;
    cursor->at = (p < end && *p == ',') ? p + 1 : NULL;

    if (has_name) {
        sluice_fields_json_cut(field);
    }

    return has_name;
}


/* the quote that ends the string which begins at p */

static const char *
sluice_fields_json_quote(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        p += (*p == '\\');
    }

    return p;
}


static void
sluice_fields_json_cut(sluice_field_t *field)
{
    const char  *p, *quote, *end;

    p = memchr(field->from, '"', (size_t) (field->to - field->from));
    quote = sluice_fields_json_quote(p, field->to);
    sluice_fields_text(&field->name, p + 1, quote);

    p = memchr(quote, ':', (size_t) (field->to - quote));
    p = sluice_fields_json_blank(p + 1, field->to);

    field->type = SLUICE_FIELD_FLAG;
    sluice_fields_text(&field->value, p, p);

    if (*p == '"') {
        field->type = SLUICE_FIELD_TEXT;
        sluice_fields_text(&field->value, p + 1,
                           sluice_fields_json_quote(p, field->to));

    } else if (*p == '{' || *p == '[') {
        field->type = SLUICE_FIELD_TABLE;

    } else {
        for (end = field->to; end > p && strchr(" \t\r\n", end[-1]); end--) {
            /* void */
        }

        sluice_fields_text(&field->value, p, end);
    }
}


size_t
sluice_fields_json_spelt(const char **p, const char *end, char *out)
{
    int                code;
    const char        *letter;
    static const char  letters[] = "bfnrt", bytes[] = "\b\f\n\r\t";

    if ((*p)[1] != 'u') {
        letter = strchr(letters, (*p)[1]);
        *out = letter ? bytes[letter - letters] : (*p)[1];
        *p += 2;
        return 1;
    }

    code = sluice_fields_json_code(*p, end);
    *p += (code > 0xffff) ? 12 : 6;

    if (code <= 0x7f) {
        out[0] = (char) code;
        return 1;
    }

    if (code <= 0x7ff) {
        out[0] = (char) (code >> 6 | 0xc0);
        out[1] = (char) ((code & 0x3f) | 0x80);
        return 2;
    }

    if (code <= 0xffff) {
        out[0] = (char) (code >> 12 | 0xe0);
        out[1] = (char) ((code >> 6 & 0x3f) | 0x80);
        out[2] = (char) ((code & 0x3f) | 0x80);
        return 3;
    }

    out[0] = (char) (code >> 18 | 0xf0);
    out[1] = (char) ((code >> 12 & 0x3f) | 0x80);
    out[2] = (char) ((code >> 6 & 0x3f) | 0x80);
    out[3] = (char) ((code & 0x3f) | 0x80);

    return 4;
}


/* of one unit, or of a pair of surrogates, which are valid */

static int
sluice_fields_json_code(const char *p, const char *end)
{
    int  unit, low;

    unit = sluice_fields_json_unit(p, end);

    if ((unit & 0xf800) != 0xd800) {
        return unit;
    }

    low = sluice_fields_json_unit(p + 6, end);

    return ((unit & 0x3ff) << 10 | (low & 0x3ff)) + 0x10000;
}
