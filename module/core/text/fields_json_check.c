
/*
 * Is this JSON, as lua-cjson 2.1.0 takes it (fields.h)?
 *
 * What looks for members later relies on it: brackets match, and strings end.
 * A NUL is the end of a text, since lua-cjson, and strtod() with it, takes C
 * strings.
 */


#include "fields_kinds.h"

#include <string.h>


typedef enum {
    FIELDS_JSON_VALUE = 0,
    FIELDS_JSON_ELEMENT,            /* the first of an array, or its end */
    FIELDS_JSON_MEMBER,             /* the first of an object, or its end */
    FIELDS_JSON_NAME,
    FIELDS_JSON_COLON,
    FIELDS_JSON_BEHIND              /* of a value */
} sluice_fields_json_e;


/* What is open: a bit each, set for objects. */

typedef struct {
    uint8_t   objects[SLUICE_FIELDS_DEPTH / 8 + 1];
    uint32_t  depth;
} sluice_fields_open_t;


static int sluice_fields_json_behind(sluice_fields_open_t *open, int c);
static int sluice_fields_json_push(sluice_fields_open_t *open, int is_object);
static int sluice_fields_json_is_object(const sluice_fields_open_t *open);
static const char *sluice_fields_json_scalar(const char *p, const char *end);
static const char *sluice_fields_json_word(const char *p, const char *end,
    const char *word);
static const char *sluice_fields_json_string(const char *p, const char *end);
static const char *sluice_fields_json_escape(const char *p, const char *end);
static const char *sluice_fields_json_number(const char *p, const char *end);
static const char *sluice_fields_json_nan(const char *p, const char *end);
static const char *sluice_fields_json_digits(const char *p, const char *end,
    int is_hex);
static const char *sluice_fields_json_exponent(const char *p, const char *end,
    int letter);
static int sluice_fields_json_digit(const char *p, const char *end,
    int is_hex);


int
sluice_fields_json_is_valid(const char *p, const char *end)
{
    int                   c, state;
    sluice_fields_open_t  open;

    open.depth = 0;
    state = FIELDS_JSON_VALUE;

    for ( ;; ) {
        p = sluice_fields_json_blank(p, end);
        c = (p < end) ? *p : '\0';

        if ((state == FIELDS_JSON_ELEMENT && c == ']')
            || (state == FIELDS_JSON_MEMBER && c == '}'))
        {
            state = FIELDS_JSON_BEHIND;
        }

        switch (state) {

        case FIELDS_JSON_VALUE:
        case FIELDS_JSON_ELEMENT:

            if (c == '{' || c == '[') {
                state = (c == '{') ? FIELDS_JSON_MEMBER : FIELDS_JSON_ELEMENT;

                if (!sluice_fields_json_push(&open, c == '{')) {
                    return 0;
                }

                p++;
                continue;
            }

            p = sluice_fields_json_scalar(p, end);
            state = FIELDS_JSON_BEHIND;
            break;

        case FIELDS_JSON_MEMBER:
        case FIELDS_JSON_NAME:
            p = (c == '"') ? sluice_fields_json_string(p, end) : NULL;
            state = FIELDS_JSON_COLON;
            break;

        case FIELDS_JSON_COLON:
            p = (c == ':') ? p + 1 : NULL;
            state = FIELDS_JSON_VALUE;
            break;

        default:    /* FIELDS_JSON_BEHIND */

            if (open.depth == 0) {
                return c == '\0';
            }

            state = sluice_fields_json_behind(&open, c);
            p = (state >= 0) ? p + 1 : NULL;
        }

        if (p == NULL) {
            return 0;
        }
    }
}


/* What comes after a comma or a closing bracket; -1: neither is there. */

static int
sluice_fields_json_behind(sluice_fields_open_t *open, int c)
{
    int  is_object;

    is_object = sluice_fields_json_is_object(open);

    if (c == ',') {
        return is_object ? FIELDS_JSON_NAME : FIELDS_JSON_VALUE;
    }

    if (c != (is_object ? '}' : ']')) {
        return -1;
    }

    open->depth--;

    return FIELDS_JSON_BEHIND;
}


static int
sluice_fields_json_push(sluice_fields_open_t *open, int is_object)
{
    uint8_t  bit, *byte;

    if (open->depth == SLUICE_FIELDS_DEPTH) {
        return 0;
    }

    byte = &open->objects[open->depth / 8];
    bit = (uint8_t) (1 << open->depth % 8);
    *byte = (uint8_t) (is_object ? *byte | bit : *byte & ~bit);

    open->depth++;

    return 1;
}


static int
sluice_fields_json_is_object(const sluice_fields_open_t *open)
{
    uint32_t  last;

    last = open->depth - 1;

    return open->objects[last / 8] >> last % 8 & 1;
}


/* behind a value that is neither array nor object; NULL: there is none */

static const char *
sluice_fields_json_scalar(const char *p, const char *end)
{
    int          c;
    const char  *word;

    c = (p < end) ? *p : '\0';

    switch (c) {

    case '"':
        return sluice_fields_json_string(p, end);

    case 't':
        return sluice_fields_json_word(p, end, "true");

    case 'f':
        return sluice_fields_json_word(p, end, "false");

    case 'n':
        word = sluice_fields_json_word(p, end, "null");

        return word ? word : sluice_fields_json_number(p, end);

    case 'N':
    case 'i':
    case 'I':
    case '+':
    case '-':
        return sluice_fields_json_number(p, end);

    default:
        return (c >= '0' && c <= '9') ? sluice_fields_json_number(p, end)
                                      : NULL;
    }
}


static const char *
sluice_fields_json_word(const char *p, const char *end, const char *word)
{
    size_t  length;

    length = strlen(word);

    return (size_t) (end - p) >= length && memcmp(p, word, length) == 0
           ? p + length : NULL;
}


/* behind a string that is whole; NULL: it is not */

static const char *
sluice_fields_json_string(const char *p, const char *end)
{
    for (p++; p && p < end && *p != '"' && *p != '\0'; /* void */ ) {
        p = (*p == '\\') ? sluice_fields_json_escape(p, end) : p + 1;
    }

    return (p && p < end && *p == '"') ? p + 1 : NULL;
}


static const char *
sluice_fields_json_escape(const char *p, const char *end)
{
    int  unit, low;

    if (end - p < 2 || p[1] == '\0' || strchr("\"\\/bfnrtu", p[1]) == NULL) {
        return NULL;
    }

    if (p[1] != 'u') {
        return p + 2;
    }

    unit = sluice_fields_json_unit(p, end);

    if (unit < 0 || (unit & 0xf800) != 0xd800) {
        return (unit < 0) ? NULL : p + 6;
    }

    low = sluice_fields_json_unit(p + 6, end);

    return (unit < 0xdc00 && (low & ~0x3ff) == 0xdc00) ? p + 12 : NULL;
}


/* behind what strtod() takes; NULL: nothing */

static const char *
sluice_fields_json_number(const char *p, const char *end)
{
    const char  *q;

    p += (*p == '+' || *p == '-');

    if (sluice_fields_begins(p, end, "infinity")) {
        return p + 8;
    }

    if (sluice_fields_begins(p, end, "inf")) {
        return p + 3;
    }

    if (sluice_fields_begins(p, end, "nan")) {
        return sluice_fields_json_nan(p + 3, end);
    }

    if (sluice_fields_begins(p, end, "0x")) {
        q = sluice_fields_json_digits(p + 2, end, 1);

        return q ? sluice_fields_json_exponent(q, end, 'p') : p + 1;
    }

    q = sluice_fields_json_digits(p, end, 0);

    return q ? sluice_fields_json_exponent(q, end, 'e') : NULL;
}


/* behind the "(...)" that may follow */

static const char *
sluice_fields_json_nan(const char *p, const char *end)
{
    const char  *q;

    if (p == end || *p != '(') {
        return p;
    }

    for (q = p + 1; q < end; q++) {
        if (*q != '_' && !sluice_fields_json_digit(q, end, 0)
            && ((*q | 0x20) < 'a' || (*q | 0x20) > 'z'))
        {
            break;
        }
    }

    return (q < end && *q == ')') ? q + 1 : p;
}


/* behind digits with at most one point among them; NULL: there is no digit */

static const char *
sluice_fields_json_digits(const char *p, const char *end, int is_hex)
{
    const char  *from, *point;

    for (from = p; sluice_fields_json_digit(p, end, is_hex); p++) {
        /* void */
    }

    if (p == end || *p != '.') {
        return (p > from) ? p : NULL;
    }

    for (point = p++; sluice_fields_json_digit(p, end, is_hex); p++) {
        /* void */
    }

    return (point > from || p > point + 1) ? p : NULL;
}


static const char *
sluice_fields_json_exponent(const char *p, const char *end, int letter)
{
    const char  *q;

    if (p == end || (*p | 0x20) != letter) {
        return p;
    }

    q = p + 1;
    q += (q < end && (*q == '+' || *q == '-'));

    if (!sluice_fields_json_digit(q, end, 0)) {
        return p;
    }

    while (sluice_fields_json_digit(q, end, 0)) {
        q++;
    }

    return q;
}


static int
sluice_fields_json_digit(const char *p, const char *end, int is_hex)
{
    if (p == end) {
        return 0;
    }

    return (*p >= '0' && *p <= '9')
           || (is_hex && (*p | 0x20) >= 'a' && (*p | 0x20) <= 'f');
}
