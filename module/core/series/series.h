
/*
 * Series of labels: numbers that many processes add to in one shared area,
 * found by the values of their labels.
 *
 *
 * SYNOPSIS
 *
 *     once, in zeroed memory that all will share:
 *         sluice_series_init(memory, size, shape, key);
 *     each process, also after a reload:
 *         sluice_series_attach(&series, memory, size);
 *         sluice_series_use(&series, worker);
 *     a request:
 *         line = sluice_series_find(&series, kind, values, count);
 *         numbers = sluice_series_numbers(&series, kind, line);
 *         sluice_series_add(&numbers[0], 1);
 *     a scrape:
 *         sluice_series_write(&series, kind, &row, pieces, &next, out, size);
 *
 *
 * WHAT IS PROMISED
 *
 *   exact    What was added is in the sums once, whoever added it, and stays.
 *   alive    No lock: a process that dies, or is stopped, at any instruction
 *            blocks nobody.  It takes one line of a kind with it at most.
 *   one      Values have one line, also where many processes meet them first
 *            at once.
 *   bounded  Each kind has a bound of lines, all together one of text.  Beyond
 *            them line 0 is found, which is the kind's for all others.
 *   safe     Whatever the bytes of the area are, no verb leaves it or loops
 *            for ever.
 *
 * Lines are never given back: a series outlives what its labels name.
 *
 *
 * THE AREA
 *
 *     +--------+---------------------+-------+------+---------+-----
 *     | header | of each kind: words | texts | stripe 0 | stripe 1 ...
 *     |        | and lines           |       | numbers  |
 *     +--------+---------------------+-------+------+---------+-----
 *
 *     word     {tag 32, line 32}, by the hash of the values; 0: empty
 *     line     where its values stand, once they do
 *     numbers  of each kind those of line 0, line 1 ...
 *
 * Numbers are summed over stripes: processes that add at once do so in
 * different ones, and share one where there are more of them.
 *
 * A process that meets new values takes a line, writes the values, and puts
 * the line's word where the search for them ended, by compare and exchange.
 * Who finds another word there looks whose it is: of equal values both have
 * ended at the same place.  The line that was not needed is kept for the next
 * new values.
 *
 *
 * COSTS
 *
 * A look is a hash of the values, one or two words, and a comparison; an
 * addition is one instruction that locks a cache line which is this
 * process's mostly.  Memory that nobody has written takes no pages.
 */


#ifndef SLUICE_SERIES_H_INCLUDED
#define SLUICE_SERIES_H_INCLUDED


#include "exposition.h"


#define SLUICE_SERIES_LAYOUT   1             /* grows with each change */
#define SLUICE_SERIES_VALUES   8             /* of a line, at most */
#define SLUICE_SERIES_TEXT     4096          /* bytes of them, at most */
#define SLUICE_SERIES_NUMBERS  64            /* of a line, at most */
#define SLUICE_SERIES_LINES    (1u << 20)    /* of a kind, at most */
#define SLUICE_SERIES_STRIPES  64            /* at most */

/* FFI */

#define SLUICE_SERIES_KINDS    3


/* An area, as a process knows it: it believes no size that stands there. */

typedef struct {
    /* FFI: the rest is C's */
    uint8_t   *base;
    uint64_t   key[2];
    uint64_t   texts;                        /* where they begin */
    uint64_t   text_size;
    uint64_t   stripes;                      /* where the first begins */
    uint64_t   stripe_size;
    uint32_t   count;                        /* of stripes */
    uint32_t   stripe;                       /* this process's */

    struct {
        uint32_t   limit;                    /* lines beside line 0 */
        uint32_t   numbers;                  /* of a line */
        uint32_t   mask;                     /* of words */
        uint32_t   spare;                    /* a line taken in vain; 0 */
        uint64_t   words;                    /* where they begin */
        uint64_t   lines;
        uint64_t   at;                       /* in a stripe */
    } kinds[SLUICE_SERIES_KINDS];
} sluice_series_t;


/* How a scrape shows a kind's series. */

typedef struct {
    const sluice_exposition_row_t  *row;
    const sluice_core_text_t       *pieces;  /* before each value */
    uint32_t                        count;   /* of pieces */
    uint32_t                        kind;
    sluice_core_text_t              other;   /* value of line 0's labels */
} sluice_series_row_t;


/*
 * Writes the samples of each series with a number in the row that is not 0,
 * from the line next on: of some hundred lines at most, and until samples may
 * not have room.  Returns the bytes written; next is where to go on, 0: behind
 * the last.
 */
size_t sluice_series_write(const sluice_series_t *series,
    const sluice_series_row_t *row, uint32_t *next, char *out, size_t size);

/* What was found no line for, as sluice_series_lack() counts. */
uint64_t sluice_series_lacking(const sluice_series_t *series);

/* FFI end */


typedef struct {
    uint32_t  lines[SLUICE_SERIES_KINDS];    /* beside line 0 */
    uint32_t  numbers[SLUICE_SERIES_KINDS];
    uint32_t  stripes;
    uint32_t  text;                          /* bytes a line, on average */
} sluice_series_shape_t;


/* Bytes of an area. */
uint64_t sluice_series_size(const sluice_series_shape_t *shape);

/*
 * Makes an area of zeroed memory, aligned to 64 bytes; by one process, before
 * any attaches.  key: 16 random bytes.  SLUICE_CORE_OK, _BAD (a shape beyond
 * the limits above, or not of this size).
 */
int sluice_series_init(void *memory, uint64_t size,
    const sluice_series_shape_t *shape, const uint8_t *key);

/* Is this an area of this layout and size?  SLUICE_CORE_OK, _BAD, _VERSION. */
int sluice_series_attach(sluice_series_t *series, void *memory, uint64_t size);

/* Which stripe this process adds in: that of a number of processes. */
void sluice_series_use(sluice_series_t *series, uint32_t process);

/* The line of values; 0: there is none left, or they are too long. */
uint32_t sluice_series_find(sluice_series_t *series, int kind,
    const sluice_core_text_t *values, uint32_t count);

/* Lines of a kind that were given out, beside line 0. */
uint32_t sluice_series_used(const sluice_series_t *series, int kind);

/* Notes that something was counted in a line 0. */
void sluice_series_lack(const sluice_series_t *series);


/* This process's numbers of a line that was found. */

static inline uint64_t *
sluice_series_numbers(const sluice_series_t *series, int kind, uint32_t line)
{
    return (uint64_t *) (series->base + series->stripes
                         + series->stripe * series->stripe_size
                         + series->kinds[kind].at)
           + (uint64_t) line * series->kinds[kind].numbers;
}


static inline void
sluice_series_add(uint64_t *number, uint64_t n)
{
    /* whoever sees it sees the values of its line */

    __atomic_fetch_add(number, n, __ATOMIC_RELEASE);
}


#endif /* SLUICE_SERIES_H_INCLUDED */
