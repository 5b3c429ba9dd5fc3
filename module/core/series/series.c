
/*
 * The area of series: its layout, and how values find their line (series.h).
 */


#include "series_layout.h"
#include "siphash.h"


#define series_align(n)  (((n) + 63) & ~63ull)


static uint64_t series_place(const sluice_series_shape_t *shape,
    sluice_series_t *series);
static uint32_t series_mask(uint32_t lines);
static uint32_t series_key(const sluice_core_text_t *values, uint32_t count,
    uint8_t *key);
static uint32_t series_take(sluice_series_t *series, int kind,
    const uint8_t *key, uint32_t length);


/* Where everything is in an area of a shape; its size, 0: no such shape. */

static uint64_t
series_place(const sluice_series_shape_t *shape, sluice_series_t *series)
{
    int       kind;
    uint64_t  at, lines;

    if (shape->stripes == 0 || shape->stripes > SLUICE_SERIES_STRIPES) {
        return 0;
    }

    at = sizeof(sluice_series_head_t);
    lines = 0;

    for (kind = 0; kind < SLUICE_SERIES_KINDS; kind++) {

        if (shape->lines[kind] > SLUICE_SERIES_LINES
            || shape->numbers[kind] == 0
            || shape->numbers[kind] > SLUICE_SERIES_NUMBERS)
        {
            return 0;
        }

        series->kinds[kind].limit = shape->lines[kind];
        series->kinds[kind].numbers = shape->numbers[kind];
        series->kinds[kind].mask = series_mask(shape->lines[kind]);
        series->kinds[kind].spare = 0;

        series->kinds[kind].words = at;
        at += series_align(((uint64_t) series->kinds[kind].mask + 1)
                           * sizeof(uint64_t));

        series->kinds[kind].lines = at;
        at += series_align(((uint64_t) shape->lines[kind] + 1)
                           * sizeof(sluice_series_line_t));

        lines += shape->lines[kind];
    }

    series->texts = at;
    series->text_size = lines * shape->text;

    if (series->text_size > UINT32_MAX) {
        return 0;
    }

    series->stripes = at + series_align(series->text_size);
    series->stripe_size = 0;

    for (kind = 0; kind < SLUICE_SERIES_KINDS; kind++) {
        series->kinds[kind].at = series->stripe_size;
        series->stripe_size += series_align(((uint64_t) shape->lines[kind] + 1)
                                            * shape->numbers[kind]
                                            * sizeof(uint64_t));
    }

    series->count = shape->stripes;
    series->stripe = 0;

    return series->stripes + series->count * series->stripe_size;
}


/* At most half of the words are in use, so that a search ends. */

static uint32_t
series_mask(uint32_t lines)
{
    uint32_t  words;

    for (words = 8; words < 2 * lines; words *= 2) { /* void */ }

    return words - 1;
}


uint64_t
sluice_series_size(const sluice_series_shape_t *shape)
{
    sluice_series_t  series;

    return series_place(shape, &series);
}


int
sluice_series_init(void *memory, uint64_t size,
    const sluice_series_shape_t *shape, const uint8_t *key)
{
    sluice_series_head_t  *head;

    if (size == 0 || size != sluice_series_size(shape)) {
        return SLUICE_CORE_BAD;
    }

    head = memory;
    memcpy(head->key, key, sizeof(head->key));
    head->shape = *shape;
    head->size = size;
    head->layout = SLUICE_SERIES_LAYOUT;
    head->magic = SLUICE_SERIES_MAGIC;

    return SLUICE_CORE_OK;
}


int
sluice_series_attach(sluice_series_t *series, void *memory, uint64_t size)
{
    sluice_series_shape_t        shape;
    const sluice_series_head_t  *head;

    head = memory;

    if (size < sizeof(sluice_series_head_t)
        || head->magic != SLUICE_SERIES_MAGIC)
    {
        return SLUICE_CORE_BAD;
    }

    if (head->layout != SLUICE_SERIES_LAYOUT) {
        return SLUICE_CORE_VERSION;
    }

    shape = head->shape;

    if (series_place(&shape, series) != size) {
        return SLUICE_CORE_BAD;
    }

    series->base = memory;
    memcpy(series->key, head->key, sizeof(series->key));

    return SLUICE_CORE_OK;
}


void
sluice_series_use(sluice_series_t *series, uint32_t process)
{
    series->stripe = process % series->count;

    __atomic_fetch_or(&sluice_series_head(series)->stripes,
                      1ull << series->stripe, __ATOMIC_RELAXED);
}


uint32_t
sluice_series_find(sluice_series_t *series, int kind,
    const sluice_core_text_t *values, uint32_t count)
{
    uint8_t              key[SLUICE_SERIES_TEXT];
    uint32_t             i, at, length, line, taken;
    uint64_t             hash, word, own;
    _Atomic uint64_t    *words;
    sluice_core_text_t   found;

    length = series_key(values, count, key);

    if (length == 0) {
        return 0;
    }

    hash = sluice_core_siphash(series->key, 1, 3, (uint64_t) kind, key,
                               length);
    words = (_Atomic uint64_t *) (series->base + series->kinds[kind].words);
    at = (uint32_t) hash;
    taken = 0;

    for (i = 0; i <= series->kinds[kind].mask; i++, at++) {
        at &= series->kinds[kind].mask;
        word = __atomic_load_n(&words[at], __ATOMIC_ACQUIRE);

        if (word == 0) {

            if (taken == 0) {
                taken = series_take(series, kind, key, length);
            }

            if (taken == 0) {
                return 0;
            }

            own = (hash & ~(uint64_t) UINT32_MAX) | taken;

            if (__atomic_compare_exchange_n(&words[at], &word, own, 0,
                                            __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
            {
                return taken;
            }

            /* word is what another process has put there */
        }

        line = (uint32_t) word;

        if ((word ^ hash) >> 32 == 0) {
            found = sluice_series_text(series, kind, line);

            if (found.length == length
                && memcmp(found.data, key, length) == 0)
            {
                if (taken) {
                    series->kinds[kind].spare = taken;
                }

                return line;
            }
        }
    }

    if (taken) {
        series->kinds[kind].spare = taken;
    }

    return 0;
}


/* The values as they stand in texts; their length, 0: too long. */

static uint32_t
series_key(const sluice_core_text_t *values, uint32_t count, uint8_t *key)
{
    uint32_t                i, at;
    sluice_series_length_t  length;

    at = 0;

    for (i = 0; i < count; i++) {

        if (values[i].length > SLUICE_SERIES_TEXT - sizeof(length)
            || at > SLUICE_SERIES_TEXT - sizeof(length) - values[i].length)
        {
            return 0;
        }

        length = (sluice_series_length_t) values[i].length;
        memcpy(key + at, &length, sizeof(length));
        at += sizeof(length);

        if (length) {
            memcpy(key + at, values[i].data, length);
            at += length;
        }
    }

    return at;
}


/* A line with these values, which nobody finds yet; 0: there is no room. */

static uint32_t
series_take(sluice_series_t *series, int kind, const uint8_t *key,
    uint32_t length)
{
    uint32_t               line;
    uint64_t               offset;
    sluice_series_head_t  *head;
    sluice_series_line_t  *to;

    head = sluice_series_head(series);

    if (series->text_size < length
        || __atomic_load_n(&head->text_used, __ATOMIC_RELAXED)
           > series->text_size - length)
    {
        return 0;
    }

    line = series->kinds[kind].spare;

    if (line == 0) {

        if (sluice_series_used(series, kind) >= series->kinds[kind].limit) {
            return 0;
        }

        line = __atomic_add_fetch(&head->used[kind], 1, __ATOMIC_RELAXED);

        if (line == 0 || line > series->kinds[kind].limit) {
            return 0;
        }
    }

    series->kinds[kind].spare = line;
    offset = __atomic_fetch_add(&head->text_used, length, __ATOMIC_RELAXED);

    if (offset > series->text_size - length) {
        return 0;
    }

    series->kinds[kind].spare = 0;
    memcpy(series->base + series->texts + offset, key, length);

    to = sluice_series_line(series, kind, line);
    __atomic_store_n(&to->offset, (uint32_t) offset, __ATOMIC_RELAXED);
    __atomic_store_n(&to->length, length, __ATOMIC_RELEASE);

    return line;
}


sluice_core_text_t
sluice_series_text(const sluice_series_t *series, int kind, uint32_t line)
{
    uint32_t               offset;
    sluice_core_text_t     text;
    sluice_series_line_t  *from;

    text.data = NULL;
    text.length = 0;

    if (line == 0 || line > series->kinds[kind].limit) {
        return text;
    }

    from = sluice_series_line(series, kind, line);
    text.length = __atomic_load_n(&from->length, __ATOMIC_ACQUIRE);
    offset = __atomic_load_n(&from->offset, __ATOMIC_RELAXED);

    if (text.length == 0 || text.length > SLUICE_SERIES_TEXT
        || text.length > series->text_size
        || offset > series->text_size - text.length)
    {
        text.length = 0;
        return text;
    }

    text.data = (const char *) series->base + series->texts + offset;

    return text;
}


void
sluice_series_lack(const sluice_series_t *series)
{
    __atomic_fetch_add(&sluice_series_head(series)->lacking, 1,
                       __ATOMIC_RELAXED);
}


uint64_t
sluice_series_lacking(const sluice_series_t *series)
{
    return __atomic_load_n(&sluice_series_head(series)->lacking,
                           __ATOMIC_RELAXED);
}


uint32_t
sluice_series_used(const sluice_series_t *series, int kind)
{
    return __atomic_load_n(&sluice_series_head(series)->used[kind],
                           __ATOMIC_RELAXED);
}
