
/*
 * Samples and labels of metrics as text (exposition.h).
 *
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */


#include "exposition.h"

#include <string.h>


#define SLUICE_EXPOSITION_DIGITS  20             /* of 64 bits */

/* Beside before, labels and after: digits, ".123", the end of the line. */

#define SLUICE_EXPOSITION_REST    (SLUICE_EXPOSITION_DIGITS + 4 + 1)


static char *sluice_exposition_number(char *out, uint64_t number);


char *
sluice_exposition_label(char *out, const char *name,
    const sluice_core_text_t *value)
{
    while (*name) {
        *out++ = *name++;
    }

    *out++ = '=';
    *out++ = '"';
    out = sluice_exposition_value(out, value);
    *out++ = '"';

    return out;
}


char *
sluice_exposition_value(char *out, const sluice_core_text_t *value)
{
    char      c;
    uint32_t  i;

    for (i = 0; i < value->length; i++) {
        c = value->data[i];

        if (c == '\\' || c == '"' || c == '\n') {
            *out++ = '\\';
            c = (c == '\n') ? 'n' : c;
        }

        *out++ = c;
    }

    return out;
}


size_t
sluice_exposition_bound(const sluice_exposition_row_t *row, size_t labels)
{
    size_t    size;
    uint32_t  i;

    size = 0;

    for (i = 0; i < row->count; i++) {
        size += row->samples[i].before.length + labels
                + row->samples[i].after.length + SLUICE_EXPOSITION_REST;
    }

    return size;
}


char *
sluice_exposition_write(char *out, const sluice_exposition_row_t *row,
    const sluice_core_text_t *labels, const uint64_t *numbers)
{
    uint32_t                           i;
    uint64_t                           number, buckets, ms;
    const sluice_exposition_sample_t  *sample;

    buckets = 0;

    for (i = 0; i < row->count; i++) {
        sample = &row->samples[i];
        number = numbers[sample->number];
        ms = 0;

        switch (sample->form) {

        case SLUICE_EXPOSITION_SEEN:
            if (number == 0) {
                continue;
            }

            break;

        case SLUICE_EXPOSITION_BUCKET:
            buckets += number;
            number = buckets;
            break;

        case SLUICE_EXPOSITION_BUCKETS:
            number = buckets;
            break;

        case SLUICE_EXPOSITION_SECONDS:
            ms = number % 1000;
            number /= 1000;
            break;

        default: /* SLUICE_EXPOSITION_NUMBER */
            break;
        }

        out = sluice_core_copy(out, &sample->before);
        out = sluice_core_copy(out, labels);
        out = sluice_core_copy(out, &sample->after);
        out = sluice_exposition_number(out, number);

        if (ms) {
            *out++ = '.';
            *out++ = (char) ('0' + ms / 100);
            *out++ = (char) ('0' + ms / 10 % 10);
            *out++ = (char) ('0' + ms % 10);
        }

        *out++ = '\n';
    }

    return out;
}


static char *
sluice_exposition_number(char *out, uint64_t number)
{
    char    *p, digits[SLUICE_EXPOSITION_DIGITS];
    size_t   length;

    p = digits + sizeof(digits);

    do {
        *--p = (char) ('0' + number % 10);
        number /= 10;
    } while (number);

    length = (size_t) (digits + sizeof(digits) - p);
    memcpy(out, p, length);

    return out + length;
}
