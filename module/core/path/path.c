
/*
 * The spellings of a path: normal, and encoded for a request line.  path.h
 * says what they are, path_upstream.c what the upstream is asked.
 *
 * A path is looked at first, and written only if the look finds something to
 * change.  It is written in one pass: bytes of a segment are decoded, and at
 * its end the segment stays, goes ("", ".") or takes the one before it along
 * ("..").  What is written is taken back at most once, so the time is linear.
 */


#include "hex.h"
#include "path.h"

#include <string.h>


static int sluice_path_is_normal(const sluice_core_text_t *path);
static int sluice_path_is_plain(const uint8_t *p, const uint8_t *end);
static int sluice_path_is_dropped(const uint8_t *p, const uint8_t *end);
static int sluice_path_is_kept(const uint8_t *p, const uint8_t *end);
static char *sluice_path_decode(char *out, const uint8_t **in,
    const uint8_t *end);
static char *sluice_path_end_segment(char *out, char *segment,
    const char *buffer);
static char *sluice_path_triplet(char *out, int code);


#define sluice_path_in(set, c)  ((set)[(c) >> 5] & (1U << ((c) & 0x1f)))

/*
 * A byte eight times.  Of eight bytes the top bit of each that is zero; maybe
 * also of others, but of none where no byte is zero.
 */

#define sluice_path_eight(c)  ((uint64_t) (c) * 0x0101010101010101)
#define sluice_path_zeros(v)                                                  \
    (((v) - sluice_path_eight(0x01)) & ~(v) & sluice_path_eight(0x80))


/* RFC 3986, 2.2, and "%": encoded or not makes a difference */

static const uint32_t  sluice_path_reserved[8] = {
    0x00000000,
    0xac009ffa, /*    ?>=< ;:98 7654 3210 /.-, +*)( '&%$ #"!  */
    0x28000001, /*    _^]\ [ZYX WVUT SRQP ONML KJIH GFED CBA@ */
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


/* what may stand in a request line: those, letters, digits, "-._~" */

static const uint32_t  sluice_path_safe[8] = {
    0x00000000,
    0xaffffffa, /*    ?>=< ;:98 7654 3210 /.-, +*)( '&%$ #"!  */
    0xafffffff, /*    _^]\ [ZYX WVUT SRQP ONML KJIH GFED CBA@ */
    0x47fffffe, /*     ~}| {zyx wvut srqp onml kjih gfed cba` */
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


void
sluice_path_split(const sluice_core_text_t *target, sluice_core_text_t *raw,
    sluice_core_text_t *query)
{
    const char  *mark, *end;

    end = target->data + target->length;
    mark = target->length ? memchr(target->data, '?', target->length) : NULL;
    mark = mark ? mark : end;

    raw->data = target->data;
    raw->length = (uint32_t) (mark - target->data);

    query->data = mark;
    query->length = (uint32_t) (end - mark);
}


int
sluice_path_normalize(const sluice_core_text_t *raw, char *buffer, size_t size,
    sluice_core_text_t *path)
{
    char           *out, *segment;
    const uint8_t  *p, *end;

    if (sluice_path_is_normal(raw)) {
        *path = *raw;
        return SLUICE_CORE_OK;
    }

    if (size < sluice_path_normalize_bound(raw)) {
        return SLUICE_CORE_FULL;
    }

    p = (const uint8_t *) raw->data;
    end = p + raw->length;
    out = buffer;

    *out++ = '/';
    segment = out;

    while (p < end) {

        if (*p == '%') {
            out = sluice_path_decode(out, &p, end);
            continue;
        }

        if (*p != '/') {
            *out++ = (char) *p++;
            continue;
        }

        p++;
        out = sluice_path_end_segment(out, segment, buffer);

        if (out[-1] != '/') {
            *out++ = '/';
        }

        segment = out;
    }

    out = sluice_path_end_segment(out, segment, buffer);

    path->data = buffer;
    path->length = (uint32_t) (out - buffer);

    return SLUICE_CORE_OK;
}


/* a slash, and the rest of nothing but stray percent signs */

size_t
sluice_path_normalize_bound(const sluice_core_text_t *raw)
{
    return 1 + 3 * (size_t) raw->length;
}


int
sluice_path_escape(const sluice_core_text_t *path, char *buffer, size_t size,
    sluice_core_text_t *escaped)
{
    char           *out;
    const uint8_t  *p, *end;

    p = (const uint8_t *) path->data;
    end = p + path->length;

    while (p < end && sluice_path_in(sluice_path_safe, *p)) {
        p++;
    }

    if (p == end) {
        *escaped = *path;
        return SLUICE_CORE_OK;
    }

    if (size < sluice_path_escape_bound(path)) {
        return SLUICE_CORE_FULL;
    }

    out = buffer;

    for (p = (const uint8_t *) path->data; p < end; p++) {

        if (sluice_path_in(sluice_path_safe, *p)) {
            *out++ = (char) *p;

        } else {
            out = sluice_path_triplet(out, *p);
        }
    }

    escaped->data = buffer;
    escaped->length = (uint32_t) (out - buffer);

    return SLUICE_CORE_OK;
}


size_t
sluice_path_escape_bound(const sluice_core_text_t *path)
{
    return 3 * (size_t) path->length;
}


/* plugins may write anything, and know best how arguments are encoded */

char *
sluice_path_put_args(const sluice_core_text_t *args, char *out)
{
    uint32_t  i;
    uint8_t   ch;

    for (i = 0; i < args->length; i++) {
        ch = (uint8_t) args->data[i];

        if (ch <= 0x20 || ch == 0x7f) {
            out = sluice_path_triplet(out, ch);

        } else {
            *out++ = (char) ch;
        }
    }

    return out;
}


size_t
sluice_path_put_args_bound(const sluice_core_text_t *args)
{
    return 3 * (size_t) args->length;
}


/* exactly what normalizing leaves as it is */

static int
sluice_path_is_normal(const sluice_core_text_t *path)
{
    uint8_t         c;
    const uint8_t  *p, *end;

    p = (const uint8_t *) path->data;
    end = p + path->length;

    if (p == end || *p != '/') {
        return 0;
    }

    if (sluice_path_is_plain(p, end)) {
        return 1;
    }

    while (p < end) {
        c = *p++;

        if (c == '/' && sluice_path_is_dropped(p, end)) {
            return 0;
        }

        if (c == '%' && !sluice_path_is_kept(p, end)) {
            return 0;
        }
    }

    return 1;
}


/*
 * Nothing in it asks for a closer look: no percent sign, and no slash with a
 * slash or a dot behind it.  Eight pairs of bytes at a time, the last eight
 * pairs once more where they do not come out even.
 */

static int
sluice_path_is_plain(const uint8_t *p, const uint8_t *end)
{
    uint64_t        first, second, found;
    const uint8_t  *last;

    if (end - p < 9) {
        return 0;
    }

    last = end - 9;

    for ( ;; ) {
        memcpy(&first, p, 8);
        memcpy(&second, p + 1, 8);

        first ^= sluice_path_eight('/');
        found = sluice_path_zeros(second ^ sluice_path_eight('%'));

        /* a dot and a slash differ in the lowest bit */

        second = (second | sluice_path_eight(1)) ^ sluice_path_eight('/');
        found |= sluice_path_zeros(first) & sluice_path_zeros(second);

        if (found) {
            return 0;
        }

        if (p == last) {
            return 1;
        }

        p = (last - p < 8) ? last : p + 8;
    }
}


/* does a segment that goes begin here: "", ".", ".."? */

static int
sluice_path_is_dropped(const uint8_t *p, const uint8_t *end)
{
    if (p == end) {
        return 0;           /* the path's last slash stays */
    }

    if (*p == '.') {
        p++;
        p += (p < end && *p == '.');

        return p == end || *p == '/';
    }

    return *p == '/';
}


/* are these the digits, in upper case, of a triplet that stays? */

static int
sluice_path_is_kept(const uint8_t *p, const uint8_t *end)
{
    int  code;

    code = sluice_hex_byte(p, end);

    return code >= 0 && sluice_path_in(sluice_path_reserved, code)
           && p[0] < 'a' && p[1] < 'a';
}


/*
 * What a percent sign begins.  A stray one could become part of a triplet once
 * what follows is decoded ("%%32e", "%2e", "."): it stands for itself.
 */

static char *
sluice_path_decode(char *out, const uint8_t **in, const uint8_t *end)
{
    int             code;
    const uint8_t  *p;

    p = *in + 1;
    code = sluice_hex_byte(p, end);

    if (code < 0) {
        *in = p;
        return sluice_path_triplet(out, '%');
    }

    *in = p + 2;

    if (sluice_path_in(sluice_path_reserved, code)) {
        return sluice_path_triplet(out, code);
    }

    *out++ = (char) code;

    return out;
}


/*
 * Where writing goes on when the segment that began at segment is whole.  What
 * comes before a segment begins and ends with a slash, its first one.
 */

static char *
sluice_path_end_segment(char *out, char *segment, const char *buffer)
{
    if (out - segment == 1 && segment[0] == '.') {
        return segment;
    }

    if (out - segment != 2 || segment[0] != '.' || segment[1] != '.') {
        return out;
    }

    if (segment - buffer == 1) {
        return segment;     /* above the root is the root */
    }

    for (out = segment - 1; out[-1] != '/'; out--) { /* void */ }

    return out;
}


static char *
sluice_path_triplet(char *out, int code)
{
    static const char  digits[] = "0123456789ABCDEF";

    *out++ = '%';
    *out++ = digits[code >> 4];
    *out++ = digits[code & 0xf];

    return out;
}
