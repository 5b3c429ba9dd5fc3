
/*
 * What all kinds of fields are read with.
 */


#include "fields_kinds.h"
#include "hex.h"

#include <string.h>
#include <strings.h>


int
sluice_fields_begins(const char *p, const char *end, const char *word)
{
    size_t  length;

    length = strlen(word);

    return (size_t) (end - p) >= length && strncasecmp(p, word, length) == 0;
}


/* the UTF-16 code unit of "\uXXXX"; -1: this is none */

int
sluice_fields_json_unit(const char *p, const char *end)
{
    int  high, low;

    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') {
        return -1;
    }

    high = sluice_hex_byte(p + 2, end);
    low = sluice_hex_byte(p + 4, end);

    return (high < 0 || low < 0) ? -1 : high << 8 | low;
}


const char *
sluice_fields_json_blank(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
        p++;
    }

    return p;
}
