
/*
 * Series beside a model: a list of values with their numbers.  Then what a
 * text of them is, whatever the room, and areas whose bytes are anything.
 */


#include "make.h"
#include "series_layout.h"

#include <stdlib.h>


#define LINES    40
#define STRIPES  3
#define VALUES   3
#define KNOWN    200


typedef struct {
    char      text[VALUES][24];
    uint64_t  number;
    uint32_t  line;
} known_t;


static uint64_t            state;
static known_t             known[KNOWN];
static const uint8_t      *key = (const uint8_t *) "0123456789abcdef";
static char                before[] = "a{", after[] = "\"} ";
static char                pieces[VALUES][8] = {
    "x=\"", "\",y=\"", "\",z=\""
};

static const sluice_series_shape_t  shape = {
    { LINES, 5, 0 }, { 2, 3, 1 }, STRIPES, 32
};


static void *
make_area(uint64_t *size, sluice_series_t *series)
{
    void  *area;

    *size = sluice_series_size(&shape);
    area = make_memory(*size);
    memset(area, 0, *size);

    test_check(sluice_series_init(area, *size, &shape, key) == SLUICE_CORE_OK
               && sluice_series_attach(series, area, *size) == SLUICE_CORE_OK,
               "an area");
    sluice_series_use(series, 0);

    return area;
}


static uint32_t
find(sluice_series_t *series, int kind, const known_t *one)
{
    uint32_t            i;
    sluice_core_text_t  values[VALUES];

    for (i = 0; i < VALUES; i++) {
        values[i].data = one->text[i];
        values[i].length = (uint32_t) strlen(one->text[i]);
    }

    return sluice_series_find(series, kind, values, VALUES);
}


/* Short ones, so that some begin as others end: "a", "bc" and "ab", "c". */

static void
invent(known_t *one)
{
    uint32_t  i, j, length;

    memset(one, 0, sizeof(*one));

    for (i = 0; i < VALUES; i++) {
        length = (uint32_t) test_below(&state, test_below(&state, 9) ? 3 : 20);

        for (j = 0; j < length; j++) {
            one->text[i][j] = "ab\"\\\n\xc3"[test_below(&state, 6)];
        }
    }
}


static known_t *
same(const known_t *one, uint32_t count)
{
    uint32_t  i;

    for (i = 0; i < count; i++) {
        if (memcmp(known[i].text, one->text, sizeof(one->text)) == 0) {
            return &known[i];
        }
    }

    return NULL;
}


static size_t
text_of(const sluice_series_t *series, char *out, size_t size)
{
    int                         i;
    size_t                      length;
    uint32_t                    next, last;
    sluice_core_text_t          labels[VALUES];
    sluice_series_row_t         row;
    sluice_exposition_row_t     samples;
    sluice_exposition_sample_t  sample;

    memset(&sample, 0, sizeof(sample));
    sample.before.data = before;
    sample.before.length = sizeof(before) - 1;
    sample.after.data = after;
    sample.after.length = sizeof(after) - 1;
    sample.number = 1;

    samples.samples = &sample;
    samples.count = 1;

    for (i = 0; i < VALUES; i++) {
        labels[i].data = pieces[i];
        labels[i].length = (uint32_t) strlen(pieces[i]);
    }

    row.row = &samples;
    row.pieces = labels;
    row.count = VALUES;
    row.kind = 0;
    row.other.data = "*";
    row.other.length = 1;

    length = 0;
    next = 0;

    do {
        last = next;
        length += sluice_series_write(series, &row, &next, out + length,
                                      size - length);
    } while (next != 0 && next != last);

    return next ? 0 : length;
}


/* What the model says, in any order: a line of text for each with a number. */

static void
check_text(const sluice_series_t *series, uint32_t count, uint64_t others)
{
    char      text[65536], line[256], *p;
    size_t    length, size;
    uint32_t  i, j, lines, wanted;

    length = text_of(series, text, sizeof(text) - 1);
    text[length] = '\0';

    for (p = text, lines = 0; (p = strchr(p, '\n')); p++, lines++) { /* */ }

    wanted = others != 0;

    for (i = 0; i < count; i++) {

        if (known[i].line == 0 || known[i].number == 0) {
            continue;
        }

        wanted++;
        p = line + sprintf(line, "a{");

        for (j = 0; j < VALUES; j++) {
            sluice_core_text_t  value;

            value.data = known[i].text[j];
            value.length = (uint32_t) strlen(value.data);
            p += sprintf(p, "%s", pieces[j]);
            p = sluice_exposition_value(p, &value);
        }

        sprintf(p, "\"} %lu\n", known[i].number);
        test_check(strstr(text, line) != NULL, "no %s in %s", line, text);
    }

    sprintf(line, "a{x=\"*\",y=\"*\",z=\"*\"} %lu\n", others);
    test_check(!others || strstr(text, line), "no %s in %s", line, text);
    test_check(lines == wanted, "%u lines, not %u", lines, wanted);

    /* less room: pieces of it, and nothing behind its end */

    size = length / 2 + test_below(&state, length + 200);
    p = malloc(size + 1);
    length = text_of(series, p, size);
    test_check(length == 0 || memcmp(p, text, length) == 0, "another text");
    free(p);
}


static void
turn_of_model(void)
{
    void             *area;
    known_t           one, *found;
    uint32_t          i, line, count, lines;
    uint64_t          n, size, others, lacking;
    sluice_series_t   series[STRIPES + 1], *own;

    area = make_area(&size, &series[0]);

    /* the last shares the first's stripe */

    for (i = 1; i <= STRIPES; i++) {
        test_check(sluice_series_attach(&series[i], area, size)
                   == SLUICE_CORE_OK, "attach");
        sluice_series_use(&series[i], i);
    }

    for (i = 0, count = 0, lines = 0, others = 0, lacking = 0; i < 2000; i++) {
        own = &series[test_below(&state, STRIPES + 1)];

        if (count && test_below(&state, 3)) {
            one = known[test_below(&state, count)];

        } else {
            invent(&one);
        }

        line = find(own, 0, &one);
        found = same(&one, count);

        if (found == NULL && count < KNOWN) {
            found = &known[count++];
            *found = one;
            found->line = line;
            lines += line != 0;
            test_check(line == 0 || line == lines, "line %u", line);
        }

        test_check(found == NULL || line == found->line, "%u, not %u", line,
                   found->line);

        n = test_below(&state, 5);
        sluice_series_add(&sluice_series_numbers(own, 0, line)[1], n);

        if (line == 0) {
            others += n;
            lacking++;
            sluice_series_lack(own);

        } else {
            found->number += n;
        }

        test_check(sluice_series_used(own, 0) == lines && lines <= LINES,
                   "%u lines", lines);
    }

    test_check(sluice_series_lacking(&series[1]) == lacking, "lacking");
    test_check(sluice_series_used(&series[0], 1) == 0, "of another kind");
    check_text(&series[2], count, others);
    free(area);
}


static void
bounds(void)
{
    int                    kind;
    void                  *area;
    char                   large[SLUICE_SERIES_TEXT + 1];
    known_t                one;
    uint64_t               size, left;
    sluice_series_t        series;
    sluice_core_text_t     value;
    sluice_series_shape_t  other;

    area = make_area(&size, &series);

    /* kinds are apart; one without lines has the one for all */

    invent(&one);
    test_check(find(&series, 0, &one) == 1 && find(&series, 1, &one) == 1
               && find(&series, 2, &one) == 0, "three kinds");

    memset(large, 'x', sizeof(large));
    value.data = large;
    value.length = sizeof(large);
    test_check(sluice_series_find(&series, 0, &value, 1) == 0, "too long");
    value.length = SLUICE_SERIES_TEXT;
    test_check(sluice_series_find(&series, 0, &value, 1) == 0, "its length");
    test_check(sluice_series_find(&series, 0, &value, 0) == 0, "no values");
    test_check(sluice_series_used(&series, 0) == 1, "nothing was taken");

    /* texts end before lines do, and no line goes with them */

    for (kind = 0; kind < 30; kind++) {
        large[0] = (char) ('a' + kind);
        value.length = 200;
        (void) sluice_series_find(&series, 0, &value, 1);
    }

    test_check(sluice_series_used(&series, 0) < 9, "texts are full");
    value.length = 3;
    left = series.text_size - ((sluice_series_head_t *) area)->text_used;
    test_check((sluice_series_find(&series, 0, &value, 1) != 0)
               == (left >= value.length + sizeof(sluice_series_length_t)),
               "short ones, %u left", (unsigned) left);

    other = shape;
    other.numbers[1] = SLUICE_SERIES_NUMBERS + 1;
    test_check(sluice_series_size(&other) == 0, "numbers");
    other = shape;
    other.stripes = SLUICE_SERIES_STRIPES + 1;
    test_check(sluice_series_size(&other) == 0, "stripes");
    other = shape;
    other.lines[0] = SLUICE_SERIES_LINES + 1;
    test_check(sluice_series_size(&other) == 0, "lines");
    test_check(sluice_series_init(area, size, &other, key) == SLUICE_CORE_BAD
               && sluice_series_init(area, size - 1, &shape, key)
                  == SLUICE_CORE_BAD, "init");
    test_check(sluice_series_attach(&series, area, size - 64)
               == SLUICE_CORE_BAD, "another size");

    ((sluice_series_head_t *) area)->layout++;
    test_check(sluice_series_attach(&series, area, size)
               == SLUICE_CORE_VERSION, "another layout");
    ((sluice_series_head_t *) area)->magic++;
    test_check(sluice_series_attach(&series, area, size) == SLUICE_CORE_BAD,
               "no area");
    free(area);
}


/* ASan sees whether a verb leaves the area. */

static void
damage(void)
{
    char              text[65536];
    void             *area;
    known_t           one;
    uint8_t          *bytes;
    uint64_t          i, size, at;
    sluice_series_t   series, other;

    area = make_area(&size, &series);
    bytes = area;

    for (i = 0; i < 60; i++) {
        invent(&one);
        sluice_series_add(&sluice_series_numbers(&series, 0,
                                           find(&series, 0, &one))[1], 1);
    }

    for (i = 0; i < 300; i++) {
        at = test_below(&state, test_below(&state, 2) ? size : series.texts);
        bytes[at] = (uint8_t) test_random(&state);

        if (test_below(&state, 8) == 0) {
            memset(bytes + series.kinds[0].words, (int) test_random(&state),
                   series.kinds[0].lines - series.kinds[0].words);
        }

        invent(&one);
        sluice_series_add(&sluice_series_numbers(&series, 0,
                                           find(&series, 0, &one))[1], 1);
        (void) text_of(&series, text, sizeof(text));

        if (sluice_series_attach(&other, area, size) == SLUICE_CORE_OK) {
            (void) find(&other, 1, &one);
        }
    }

    free(area);
}


int
main(void)
{
    uint64_t  i, cases;

    state = test_seed("series");
    cases = test_env("CASES", 200);
    bounds();

    for (i = 0; i < cases; i++) {
        turn_of_model();
        damage();
    }

    return 0;
}
