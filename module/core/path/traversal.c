
/*
 * A path is cut where any server would cut it: at a slash or a backslash, at a
 * semicolon (RFC 3986, 3.3: servlet containers drop what follows it), at a
 * number sign, which ends a path, each of them encoded in any way: by percent,
 * once or over and over (%252f), or as UTF-8 that is longer than it should be
 * (%c0%af), as old decoders take it.  A piece that is a dot segment then has
 * to stand between two plain slashes, or at the path's end behind one, and its
 * dots be encoded once at most: such a one the gateway removes itself.
 */


#include <string.h>

#include "hex.h"
#include "traversal.h"


#define SLUICE_TRAVERSAL_NAME  3        /* as many dots, or anything else */


typedef struct {
    int  byte;
    int  odd;           /* encoded more than once, or overlong */
    int  encoded;
} sluice_traversal_char_t;


static int sluice_traversal_cuts(sluice_traversal_char_t *c);
static const unsigned char *sluice_traversal_read(const unsigned char *p,
    const unsigned char *end, sluice_traversal_char_t *c);
static const unsigned char *sluice_traversal_decode(const unsigned char *p,
    const unsigned char *end, sluice_traversal_char_t *c);
static const unsigned char *sluice_traversal_digit(const unsigned char *p,
    const unsigned char *end, int may_be_encoded, int *digit);


int
sluice_traversal_hides(const unsigned char *path, const unsigned char *end)
{
    int                       dots, odd_before, odd_dot, odd_behind, is_end;
    size_t                    length;
    const unsigned char      *p;
    sluice_traversal_char_t   c;

    length = end - path;

    if (memchr(path, '%', length) == NULL
        && memchr(path, ';', length) == NULL
        && memchr(path, '\\', length) == NULL
        && memchr(path, '#', length) == NULL)
    {
        return 0;
    }

    dots = 0;
    odd_before = 0;
    odd_dot = 0;
    p = path;

    do {
        is_end = (p == end);

        if (!is_end) {
            p = sluice_traversal_read(p, end, &c);

            if (!sluice_traversal_cuts(&c)) {
                dots = (c.byte == '.') ? dots + 1 : SLUICE_TRAVERSAL_NAME;
                odd_dot |= c.odd;
                continue;
            }
        }

        odd_behind = !is_end && (c.byte != '/' || c.encoded);

        if ((dots == 1 || dots == 2)
            && (odd_before || odd_dot || odd_behind))
        {
            return 1;
        }

        dots = 0;
        odd_before = odd_behind;
        odd_dot = 0;

    } while (!is_end);

    return 0;
}


/*
 * What stands between two plain slashes goes one level down at most, since a
 * server may see no more than one segment there, and each pair of dots in it
 * one up.
 */

int
sluice_traversal_leaves(const unsigned char *path, size_t length,
    size_t base_length)
{
    int                       dots, depth, floor, went_down, is_end;
    const unsigned char      *p, *end;
    sluice_traversal_char_t   c;

    dots = 0;
    depth = 0;
    floor = 0;
    went_down = 0;
    p = path;
    end = path + length;

    do {
        is_end = (p == end);

        if (!is_end) {
            p = sluice_traversal_read(p, end, &c);

            if (!sluice_traversal_cuts(&c)) {
                dots = (c.byte == '.') ? dots + 1 : SLUICE_TRAVERSAL_NAME;

                if (dots >= SLUICE_TRAVERSAL_NAME && !went_down) {
                    went_down = 1;
                    depth++;

                    if ((size_t) (p - path) <= base_length) {
                        floor = depth;
                    }
                }

                continue;
            }
        }

        if (dots == 2 && --depth < floor) {
            return 1;
        }

        dots = 0;

        if (!is_end) {

            /* what stands behind ";" is dropped, and so is no segment */

            if (c.byte == ';') {
                went_down = 1;

            } else if (c.byte == '/' && !c.encoded) {
                went_down = 0;
            }
        }

    } while (!is_end);

    return 0;
}


static int
sluice_traversal_cuts(sluice_traversal_char_t *c)
{
    return c->byte == '/' || c->byte == '\\' || c->byte == ';'
           || c->byte == '#';
}


/* the next character, overlong UTF-8 as what it stands for */

static const unsigned char *
sluice_traversal_read(const unsigned char *p, const unsigned char *end,
    sluice_traversal_char_t *c)
{
    int                       code, more;
    const unsigned char      *q;
    sluice_traversal_char_t   next;

    p = sluice_traversal_decode(p, end, c);

    switch (c->byte) {
    case 0xc0:
    case 0xc1:
        more = 1;
        break;
    case 0xe0:
        more = 2;
        break;
    case 0xf0:
        more = 3;
        break;
    default:
        return p;
    }

    code = (more == 1) ? c->byte & 1 : 0;

    for (q = p; more && q < end; more--) {
        q = sluice_traversal_decode(q, end, &next);

        if ((next.byte & 0xc0) != 0x80) {
            return p;
        }

        code = code << 6 | (next.byte & 0x3f);
    }

    if (more || code >= 0x80) {
        return p;
    }

    c->byte = code;
    c->odd = 1;
    c->encoded = 1;

    return q;
}


/*
 * The next byte; "%", any number of "25", and two digits are one.  From the
 * second time on the digits may be encoded themselves: "%25%32%66".
 */

static const unsigned char *
sluice_traversal_decode(const unsigned char *p, const unsigned char *end,
    sluice_traversal_char_t *c)
{
    int                   high, low;
    const unsigned char  *q;

    c->byte = *p++;
    c->odd = 0;
    c->encoded = 0;

    while (c->byte == '%') {

        q = sluice_traversal_digit(p, end, c->encoded, &high);
        q = sluice_traversal_digit(q, end, c->encoded, &low);

        if (high < 0 || low < 0) {
            break;
        }

        p = q;
        c->odd = c->encoded;
        c->encoded = 1;
        c->byte = high << 4 | low;
    }

    return p;
}


/* -1: there is no digit */

static const unsigned char *
sluice_traversal_digit(const unsigned char *p, const unsigned char *end,
    int may_be_encoded, int *digit)
{
    int  code;

    *digit = (p < end) ? sluice_hex_digit(*p) : -1;

    if (*digit >= 0) {
        return p + 1;
    }

    if (may_be_encoded && p < end && *p == '%') {
        code = sluice_hex_byte(p + 1, end);

        if (code >= 0) {
            *digit = sluice_hex_digit(code);
            return p + 3;
        }
    }

    return p;
}
