
/*
 * Objects of JSON that somebody has written already (json.h).
 */


#include "json.h"

#include <string.h>


static int sluice_json_is_unset(const char *value, size_t length);


char *
sluice_json_set_members(char *out, const char *text, size_t length)
{
    char        *start;
    const char  *p, *end, *name, *value;

    start = out;
    *out++ = '{';

    end = text + length;
    p = text;

    if (length < 2 || *p != '{') {
        *out++ = '}';
        return out;
    }

    while (end - p > 1 && p[1] == '"') {
        name = p + 1;
        value = sluice_json_after_string(name, end);

        if (value == end || *value != ':') {
            break;
        }

        value++;
        p = sluice_json_after_value(value, end);

        if (p == end) {
            break;
        }

        if (!sluice_json_is_unset(value, (size_t) (p - value))) {

            if (out - start > 1) {
                *out++ = ',';
            }

            memcpy(out, name, (size_t) (p - name));
            out += p - name;
        }

        if (*p != ',') {
            break;
        }
    }

    *out++ = '}';

    return out;
}


const char *
sluice_json_after_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {

        if (*p == '"') {
            return p + 1;
        }

        if (*p == '\\' && ++p == end) {
            break;
        }
    }

    return end;
}


const char *
sluice_json_after_value(const char *p, const char *end)
{
    size_t  depth;

    depth = 0;

    while (p < end) {

        switch (*p) {

        case '"':
            p = sluice_json_after_string(p, end);
            continue;

        case '{':
        case '[':
            depth++;
            break;

        case '}':
        case ']':
            if (depth == 0) {
                return p;
            }

            depth--;
            break;

        case ',':
            if (depth == 0) {
                return p;
            }

            break;
        }

        p++;
    }

    return end;
}


static int
sluice_json_is_unset(const char *value, size_t length)
{
    return (length == 4 && memcmp(value, "null", 4) == 0)
           || (length == 2 && (memcmp(value, "{}", 2) == 0
                               || memcmp(value, "[]", 2) == 0));
}
