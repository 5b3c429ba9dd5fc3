
/*
 * Series as the text of metrics (series.h).
 */


#include "series_layout.h"

#include <string.h>


#define SERIES_ONCE  512                     /* lines a call */


static void series_range(const sluice_series_t *series,
    const sluice_series_row_t *row, uint32_t *from, uint32_t *to);
static int series_sum(const sluice_series_t *series, int kind, uint32_t line,
    uint32_t from, uint32_t to, uint64_t *sums);
static size_t series_labels_bound(const sluice_series_row_t *row,
    const sluice_core_text_t *values);
static char *series_labels(char *out, const sluice_series_row_t *row,
    const sluice_core_text_t *values);


size_t
sluice_series_write(const sluice_series_t *series,
    const sluice_series_row_t *row, uint32_t *next, char *out, size_t size)
{
    char                *p, *labels;
    size_t               bound;
    uint32_t             end, used, first, last;
    uint64_t             sums[SLUICE_SERIES_NUMBERS];
    sluice_core_text_t   values, text;

    p = out;
    used = sluice_series_used(series, (int) row->kind);
    used = used < series->kinds[row->kind].limit
           ? used : series->kinds[row->kind].limit;
    end = *next + SERIES_ONCE;
    series_range(series, row, &first, &last);

    for ( /* void */ ; *next <= used && *next < end; (*next)++) {

        if (!series_sum(series, (int) row->kind, *next, first, last, sums)) {
            continue;
        }

        values = sluice_series_text(series, (int) row->kind, *next);

        if (*next && values.data == NULL) {
            continue;
        }

        /* labels are made at the end of what the samples may need */

        bound = series_labels_bound(row, &values);

        if (sluice_exposition_bound(row->row, bound) + bound
            > size - (size_t) (p - out))
        {
            return (size_t) (p - out);
        }

        labels = out + size - bound;
        text.data = labels;
        text.length = (uint32_t) (series_labels(labels, row, &values)
                                  - labels);

        p = sluice_exposition_write(p, row->row, &text, sums);
    }

    if (*next > used) {
        *next = 0;
    }

    return (size_t) (p - out);
}


/* Which numbers of a line the row has, up to the last of the kind's. */

static void
series_range(const sluice_series_t *series, const sluice_series_row_t *row,
    uint32_t *from, uint32_t *to)
{
    uint32_t  i, number;

    *from = series->kinds[row->kind].numbers;
    *to = 0;

    for (i = 0; i < row->row->count; i++) {
        number = row->row->samples[i].number;

        *from = number < *from ? number : *from;
        *to = number < *to ? *to : number + 1;
    }

    if (*to > series->kinds[row->kind].numbers) {
        *to = series->kinds[row->kind].numbers;
    }
}


/* Of all stripes; 0: all are 0. */

static int
series_sum(const sluice_series_t *series, int kind, uint32_t line,
    uint32_t from, uint32_t to, uint64_t *sums)
{
    int              any;
    uint32_t         i;
    uint64_t         stripes, *numbers;
    sluice_series_t  of;

    any = 0;
    of = *series;
    memset(sums, 0, SLUICE_SERIES_NUMBERS * sizeof(uint64_t));

    stripes = __atomic_load_n(&sluice_series_head(series)->stripes,
                              __ATOMIC_RELAXED);

    for (of.stripe = 0; of.stripe < of.count; of.stripe++) {

        /* to read what nobody has written takes pages */

        if (!(stripes & 1ull << of.stripe)) {
            continue;
        }

        numbers = sluice_series_numbers(&of, kind, line);

        for (i = from; i < to; i++) {
            sums[i] += __atomic_load_n(&numbers[i], __ATOMIC_ACQUIRE);
            any |= sums[i] != 0;
        }
    }

    return any;
}


static size_t
series_labels_bound(const sluice_series_row_t *row,
    const sluice_core_text_t *values)
{
    size_t    size;
    uint32_t  i;

    size = values->data ? 2 * (size_t) values->length
                        : 2 * (size_t) row->other.length * row->count;

    for (i = 0; i < row->count; i++) {
        size += row->pieces[i].length;
    }

    return size;
}


/* Whatever the lengths in values are, none leads out of them. */

static char *
series_labels(char *out, const sluice_series_row_t *row,
    const sluice_core_text_t *values)
{
    uint32_t                i, at;
    sluice_core_text_t      value;
    sluice_series_length_t  length;

    at = 0;

    for (i = 0; i < row->count; i++) {
        memcpy(out, row->pieces[i].data, row->pieces[i].length);
        out += row->pieces[i].length;

        value = row->other;

        if (values->data) {
            value.length = 0;

            if (values->length - at >= sizeof(length)) {
                memcpy(&length, values->data + at, sizeof(length));
                at += sizeof(length);

                value.data = values->data + at;
                value.length = length < values->length - at
                               ? length : values->length - at;
                at += value.length;
            }
        }

        out = sluice_exposition_value(out, &value);
    }

    return out;
}
