
#include "json_edit.h"
#include "json.h"

#include <string.h>


/* Of a member, or of where one is to be: value is NULL then. */

typedef struct {
    const char  *name;                  /* its quote; the object's bracket */
    const char  *value;
    const char  *end;                   /* behind the value */
    int          is_first;
} sluice_json_member_t;


static size_t sluice_json_edit_name(const sluice_json_edit_t *edit,
    size_t from);
static int sluice_json_edit_find(const char *object, const char *end,
    const char *name, size_t length, sluice_json_member_t *member);
static int sluice_json_edit_is(const char *p, const char *end,
    const char *name, size_t length);
static size_t sluice_json_edit_character(const char **p, const char *end,
    char *out);
static uint32_t sluice_json_edit_hex(const char **p, const char *end);
static size_t sluice_json_edit_utf8(char *out, uint32_t code);
static size_t sluice_json_edit_put(char *text, size_t length, size_t size,
    const sluice_json_member_t *member, const sluice_json_edit_t *edit,
    size_t from);
static size_t sluice_json_edit_remove(char *text, size_t length,
    const sluice_json_member_t *member);
static size_t sluice_json_edit_new(char *out, const sluice_json_edit_t *edit,
    size_t from, int is_first);
static size_t sluice_json_edit_quoted(char *out, const char *name,
    size_t length);


size_t
sluice_json_edit(char *text, size_t length, size_t size,
    sluice_json_edit_t *edit)
{
    size_t                from, to;
    const char           *object, *end;
    sluice_json_member_t  member;

    object = text;
    end = text + length;
    from = 0;

    edit->refused = 0;

    for ( ;; ) {
        to = sluice_json_edit_name(edit, from);

        if (!sluice_json_edit_find(object, end, edit->key + from, to - from,
                                   &member))
        {
            return length;
        }

        if (to == edit->key_length || member.value == NULL) {
            break;
        }

        if (*member.value != '{') {
            edit->refused = (uint32_t) to;
            return length;
        }

        object = member.value;
        from = to + 1;
    }

    if (member.value == NULL) {

        if (edit->mode == SLUICE_JSON_REPLACE
            || (edit->value == NULL && to == edit->key_length))
        {
            return length;
        }

        return sluice_json_edit_put(text, length, size, &member, edit, from);
    }

    if (edit->mode == SLUICE_JSON_ADD) {
        return length;
    }

    if (edit->value == NULL) {
        return sluice_json_edit_remove(text, length, &member);
    }

    return sluice_json_edit_put(text, length, size, &member, edit, from);
}


/* the end of the name that begins there */

static size_t
sluice_json_edit_name(const sluice_json_edit_t *edit, size_t from)
{
    size_t  i;

    for (i = from ? from : 1; i < edit->key_length; i++) {

        if (edit->key[i] == '.') {
            return i;
        }
    }

    return edit->key_length;
}


/* 0: what stands there is no object */

static int
sluice_json_edit_find(const char *object, const char *end, const char *name,
    size_t length, sluice_json_member_t *member)
{
    const char  *p, *value;

    if (end - object < 2 || *object != '{') {
        return 0;
    }

    member->is_first = 1;

    for (p = object + 1; p < end && *p == '"'; p++) {
        value = sluice_json_after_string(p, end);

        if (value == end || *value != ':') {
            return 0;
        }

        member->name = p;
        member->value = value + 1;
        member->end = sluice_json_after_value(value + 1, end);

        if (member->end == end) {
            return 0;
        }

        if (sluice_json_edit_is(p + 1, value - 1, name, length)) {
            return 1;
        }

        member->is_first = 0;
        p = member->end;

        if (*p != ',') {
            break;
        }
    }

    if (p == end || *p != '}') {
        return 0;
    }

    member->name = p;
    member->value = NULL;
    member->end = p;

    return 1;
}


/* whether a string, without its quotes, is this text */

static int
sluice_json_edit_is(const char *p, const char *end, const char *name,
    size_t length)
{
    char    bytes[4];
    size_t  n;

    while (p < end) {
        n = sluice_json_edit_character(&p, end, bytes);

        if (n > length || memcmp(bytes, name, n) != 0) {
            return 0;
        }

        name += n;
        length -= n;
    }

    return length == 0;
}


/* its bytes, of which there are four at most */

static size_t
sluice_json_edit_character(const char **p, const char *end, char *out)
{
    static const char  letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";

    char         c;
    uint32_t     code, low;
    const char  *letter;

    c = *(*p)++;

    if (c == '\\' && *p < end) {
        c = *(*p)++;
        letter = memchr(letters, c, sizeof(letters) - 1);

        if (letter) {
            c = meanings[letter - letters];

        } else if (c == 'u') {
            code = sluice_json_edit_hex(p, end);

            if (code >= 0xd800 && code < 0xdc00
                && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u')
            {
                *p += 2;
                low = sluice_json_edit_hex(p, end);
                code = 0x10000 + ((code - 0xd800) << 10)
                       + ((low - 0xdc00) & 0x3ff);
            }

            return sluice_json_edit_utf8(out, code);
        }
    }

    out[0] = c;

    return 1;
}


/* of four digits, behind which p is then; what is none counts as 0 */

static uint32_t
sluice_json_edit_hex(const char **p, const char *end)
{
    int       i;
    uint32_t  c, value;

    value = 0;

    for (i = 0; i < 4 && *p < end; i++) {
        c = (unsigned char) *(*p)++;
        value <<= 4;

        if (c >= '0' && c <= '9') {
            value |= c - '0';

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            value |= (c | 0x20) - 'a' + 10;
        }
    }

    return value;
}


static size_t
sluice_json_edit_utf8(char *out, uint32_t code)
{
    size_t  i, n;

    if (code < 0x80) {
        out[0] = (char) code;
        return 1;
    }

    n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (i = n - 1; i > 0; i--) {
        out[i] = (char) (0x80 | (code & 0x3f));
        code >>= 6;
    }

    /* two, three or four ones */

    out[0] = (char) (0xf0 << (4 - n) | code);

    return n;
}


/* in the place of a value, or a new member before the bracket */

static size_t
sluice_json_edit_put(char *text, size_t length, size_t size,
    const sluice_json_member_t *member, const sluice_json_edit_t *edit,
    size_t from)
{
    char        *at;
    size_t       room;
    const char  *end;

    end = text + length;

    if (member->value) {
        at = (char *) member->value;
        room = edit->value_length;

    } else {
        at = (char *) member->end;
        room = sluice_json_edit_new(NULL, edit, from, member->is_first);
    }

    length = length - (size_t) (member->end - at) + room;

    if (length > size) {
        return length;
    }

    memmove(at + room, member->end, (size_t) (end - member->end));

    if (member->value) {
        memcpy(at, edit->value, edit->value_length);

    } else {
        (void) sluice_json_edit_new(at, edit, from, member->is_first);
    }

    return length;
}


/* with one of the commas beside it */

static size_t
sluice_json_edit_remove(char *text, size_t length,
    const sluice_json_member_t *member)
{
    const char  *from, *to, *end;

    from = member->name;
    to = member->end;
    end = text + length;

    if (*to == ',') {
        to++;

    } else if (!member->is_first) {
        from--;
    }

    memmove((char *) from, to, (size_t) (end - to));

    return length - (size_t) (to - from);
}


/*
 * Writes the member and the objects that it is in, from a name on; counts the
 * bytes where out is NULL.  Without a value the innermost object is empty.
 */

static size_t
sluice_json_edit_new(char *out, const sluice_json_edit_t *edit, size_t from,
    int is_first)
{
    size_t  n, to, depth;

    n = 0;
    depth = 0;

#define sluice_json_edit_add(p, length)                                       \
    if (out) {                                                                \
        memcpy(out + n, p, length);                                           \
    }                                                                         \
                                                                              \
    n += length

    if (!is_first) {
        sluice_json_edit_add(",", 1);
    }

    for ( ;; ) {
        to = sluice_json_edit_name(edit, from);

        if (to == edit->key_length && edit->value == NULL) {
            break;
        }

        n += sluice_json_edit_quoted(out ? out + n : NULL, edit->key + from,
                                     to - from);
        sluice_json_edit_add(":", 1);

        if (to == edit->key_length) {
            sluice_json_edit_add(edit->value, edit->value_length);
            break;
        }

        sluice_json_edit_add("{", 1);
        depth++;
        from = to + 1;
    }

    while (depth--) {
        sluice_json_edit_add("}", 1);
    }

#undef sluice_json_edit_add

    return n;
}


/* sluice_json_escape() writes beyond what it says, so byte by byte */

static size_t
sluice_json_edit_quoted(char *out, const char *name, size_t length)
{
    char    escaped[sluice_json_string_bound(1)];
    size_t  i, n, count;

    if (out) {
        out[0] = '"';
    }

    n = 1;

    for (i = 0; i < length; i++) {
        count = (size_t) (sluice_json_escape(escaped, name + i, 1) - escaped);

        if (out) {
            memcpy(out + n, escaped, count);
        }

        n += count;
    }

    if (out) {
        out[n] = '"';
    }

    return n + 1;
}
