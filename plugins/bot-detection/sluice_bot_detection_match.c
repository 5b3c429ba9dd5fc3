
/*
 * Is this a bot?
 *
 * Kong has regular expressions, some of which look at a long header over and
 * over.  Only whether one of them matches counts, and for that nothing counts
 * that may be missing before or behind.  What is left is mostly a name that
 * stands somewhere: time is linear in the header.
 */


#ifndef _GNU_SOURCE
#define _GNU_SOURCE                    /* memmem() */
#endif

#include "sluice_bot_detection.h"
#include "sluice_bot_detection_names.h"

#include <strings.h>


#define SLUICE_BOT_WORD  30            /* bytes beside "favicon" in a word */


static void sluice_bot_detection_add(sluice_bot_detection_index_t *index,
    const char *text);
static int sluice_bot_is_named(const sluice_bot_name_t *name,
    const char *start, const char *p, const char *end);
static int sluice_bot_is_rest(const sluice_bot_name_t *name, const char *p,
    const char *end);
static int sluice_bot_is_in_gap(uint32_t gap, unsigned char c);
static int sluice_bot_is_tail(uint32_t tail, const char *p, const char *end);
static int sluice_bot_is_number(const char *p, const char *end);
static int sluice_bot_is_last(const char *p, const char *end);
static const char *sluice_bot_digits(const char *p, const char *end);
static int sluice_bot_is_general(const char *start, const char *p,
    const char *end);
static int sluice_bot_is_favicon(const char *start, const char *p,
    const char *end);
static int sluice_bot_is_dashed(const char *p, const char *end);


#define sluice_bot_is_digit(c)  ((c) >= '0' && (c) <= '9')
#define sluice_bot_is_letter(c)  ((c) >= 'A' && (c) <= 'z')

#define sluice_bot_is_word(c)                                                 \
    (sluice_bot_is_digit(c) || (c) == '_'                                     \
     || (((c) | 0x20) >= 'a' && ((c) | 0x20) <= 'z'))


/* The word and the bit of a second byte; two bytes have the same. */

#define sluice_bot_word(index, a, b)                                          \
    ((index)->second[(unsigned char) (a)][(b) >> 6 & 1])

#define sluice_bot_bit(b)  ((uint64_t) 1 << ((b) & 63))


/* How what no table has begins, but for what begins with "/". */

static const char  sluice_bot_general[][2] = {
    { 's', 'p' }, { 's', 'P' }, { 'S', 'p' }, { 'S', 'P' },
    { 'c', 'r' }, { 'c', 'R' }, { 'C', 'r' }, { 'C', 'R' },
    { 'f', 'a' }, { 'G', 'o' }
};


void
sluice_bot_detection_index(sluice_bot_detection_index_t *index)
{
    uint32_t                  c, i;
    const char               *text;
    const sluice_bot_name_t  *names = sluice_bot_detection_names;

    for (c = 0, i = 0; c <= SLUICE_BOT_DETECTION_BYTES; c++) {

        while (names[i].text && (unsigned char) names[i].text[0] < c) {
            text = names[i++].text;
            sluice_bot_detection_add(index, text);
        }

        index->first[c] = (uint16_t) i;
    }

    for (i = 0; i < sizeof(sluice_bot_general) / 2; i++) {
        sluice_bot_detection_add(index, sluice_bot_general[i]);
    }

    /* "/" and any letter */

    index->second['/'][1] = UINT64_MAX;
}


static void
sluice_bot_detection_add(sluice_bot_detection_index_t *index, const char *text)
{
    sluice_bot_word(index, text[0], text[1]) |= sluice_bot_bit(text[1]);
}


int
sluice_bot_detection_is_bot(const sluice_bot_detection_index_t *index,
    const sluice_core_text_t *agent)
{
    uint32_t        i;
    const char     *p, *start, *end, *google;
    unsigned char   c;

    start = agent->data;
    end = start + agent->length;
    google = NULL;

    for (p = start; end - p > 1; p++) {
        c = (unsigned char) *p;

        if ((sluice_bot_word(index, c, p[1]) & sluice_bot_bit(p[1])) == 0) {
            continue;
        }

        for (i = index->first[c]; i < index->first[c + 1]; i++) {

            if (sluice_bot_is_named(&sluice_bot_detection_names[i], start, p,
                                    end))
            {
                return 1;
            }
        }

        if (sluice_bot_is_general(start, p, end)) {
            return 1;
        }

        if (google == NULL && end - p > 6 && memcmp(p, "Google", 6) == 0) {
            google = p + 6;
        }
    }

    return google && memmem(google, (size_t) (end - google), "/+/web/snippet",
                            14);
}


static int
sluice_bot_is_named(const sluice_bot_name_t *name, const char *start,
    const char *p, const char *end)
{
    uint32_t     i;
    const char  *behind;

    if ((size_t) (end - p) < name->length
        || p[1] != name->text[1]
        || memcmp(p, name->text, name->length) != 0
        || (name->begin == SLUICE_BOT_START && p != start)
        || (name->begin == SLUICE_BOT_WORD_START && p != start
            && sluice_bot_is_word(p[-1])))
    {
        return 0;
    }

    behind = p + name->length;

    if (name->gap == SLUICE_BOT_NO_GAP) {
        return sluice_bot_is_tail(name->tail, behind, end);
    }

    for (i = 0; i <= name->most; i++, behind++) {

        if (i >= name->least && sluice_bot_is_rest(name, behind, end)) {
            return 1;
        }

        if (behind == end
            || !sluice_bot_is_in_gap(name->gap, (unsigned char) *behind))
        {
            return 0;
        }
    }

    return 0;
}


static int
sluice_bot_is_rest(const sluice_bot_name_t *name, const char *p,
    const char *end)
{
    return (size_t) (end - p) >= name->rest_length
           && memcmp(p, name->rest, name->rest_length) == 0
           && sluice_bot_is_tail(name->tail, p + name->rest_length, end);
}


static int
sluice_bot_is_in_gap(uint32_t gap, unsigned char c)
{
    switch (gap) {

    case SLUICE_BOT_GAP_LETTER:
        return sluice_bot_is_letter(c);

    case SLUICE_BOT_GAP_SMALL:
        return c >= 'a' && c <= 'z';

    case SLUICE_BOT_GAP_CAPITAL:
        return c >= 'A' && c <= 'Z';

    case SLUICE_BOT_GAP_DIGIT:
        return sluice_bot_is_digit(c);

    default:                           /* SLUICE_BOT_GAP_ANY */
        return 1;
    }
}


static int
sluice_bot_is_tail(uint32_t tail, const char *p, const char *end)
{
    switch (tail) {

    case SLUICE_BOT_BOUNDARY:
        return p == end || !sluice_bot_is_word(*p);

    case SLUICE_BOT_LETTER:
        return p < end && sluice_bot_is_letter(*p);

    case SLUICE_BOT_WORD_BYTE:
        return p < end && sluice_bot_is_word(*p);

    case SLUICE_BOT_DIGIT:
        return p < end && sluice_bot_is_digit(*p);

    case SLUICE_BOT_NUMBER:
        return sluice_bot_is_number(p, end);

    case SLUICE_BOT_SPACED:
        return end - p > 1 && (*p == '/' || *p == ' ')
               && sluice_bot_is_digit(p[1]);

    case SLUICE_BOT_DASHED:
        return end - p > 1 && (*p == '-' || *p == ' ')
               && sluice_bot_is_digit(p[1]);

    case SLUICE_BOT_LAST:
        return sluice_bot_is_last(p, end);

    default:                           /* SLUICE_BOT_NOTHING */
        return 1;
    }
}


static int
sluice_bot_is_number(const char *p, const char *end)
{
    const char  *point;

    point = sluice_bot_digits(p, end);

    return point > p && end - point > 1 && *point == '.'
           && sluice_bot_is_digit(point[1]);
}


/* two digits or more, or a point between some */

static int
sluice_bot_is_last(const char *p, const char *end)
{
    const char  *point;

    point = sluice_bot_digits(p, end);

    if (point == end) {
        return end - p > 1;
    }

    return point > p && *point == '.' && end - point > 1
           && sluice_bot_digits(point + 1, end) == end;
}


static const char *
sluice_bot_digits(const char *p, const char *end)
{
    while (p < end && sluice_bot_is_digit(*p)) {
        p++;
    }

    return p;
}


/* What no table has: any case, and what stands around. */

static int
sluice_bot_is_general(const char *start, const char *p, const char *end)
{
    size_t  left;

    left = (size_t) (end - p);

    switch (*p) {

    case 's':
    case 'S':
        return left >= 6 && strncasecmp(p, "spider", 6) == 0;

    case 'c':
    case 'C':
        return left >= 5 && strncasecmp(p, "crawl", 5) == 0;

    case 'f':
        return left >= 7 && memcmp(p, "favicon", 7) == 0
               && sluice_bot_is_favicon(start, p, end);

    case '/':
        return sluice_bot_is_dashed(p, end);

    default:
        return 0;
    }
}


/* in a word with not too much beside it */

static int
sluice_bot_is_favicon(const char *start, const char *p, const char *end)
{
    uint32_t     before, behind;
    const char  *last;

    last = p + 7;
    before = 0;
    behind = 0;

    while (p > start && sluice_bot_is_word(p[-1])
           && before <= SLUICE_BOT_WORD)
    {
        p--;
        before++;
    }

    while (last < end && sluice_bot_is_word(*last)
           && behind <= SLUICE_BOT_WORD)
    {
        last++;
        behind++;
    }

    return before <= SLUICE_BOT_WORD && behind <= SLUICE_BOT_WORD;
}


/* "/a-bot-1", without a dash in the name: all bytes from "A" to "z" */

static int
sluice_bot_is_dashed(const char *p, const char *end)
{
    const char  *last;

    for (last = ++p; last < end && sluice_bot_is_letter(*last); last++) {
        /* void */
    }

    return last - p > 3 && (last[-3] | 0x20) == 'b' && last[-2] == 'o'
           && last[-1] == 't' && end - last > 1 && *last == '-'
           && sluice_bot_is_digit(last[1]);
}
