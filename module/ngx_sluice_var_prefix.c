
/*
 * Readers of variables with a prefix: arguments, cookies, headers.  They find
 * what nginx's handlers find, but compare names by words and not by bytes, and
 * headers by the length of their names first.
 */


#include "ngx_sluice_var.h"


static ngx_inline ngx_uint_t ngx_sluice_var_is_name(const u_char *p,
    ngx_str_t *name, ngx_uint_t header);
static ngx_inline uint64_t ngx_sluice_var_word(const u_char *p, size_t len);
static ngx_inline uint64_t ngx_sluice_var_fold(uint64_t word,
    ngx_uint_t header);
static ngx_inline u_char *ngx_sluice_var_find_byte(u_char *first, u_char *p,
    u_char *last, u_char one, u_char other);

#if (nginx_version < 1023000)

static ngx_inline u_char *ngx_sluice_var_skip_spaces(u_char *p, u_char *last);
static ngx_inline ngx_str_t ngx_sluice_var_find_header(ngx_list_part_t *part,
    ngx_str_t *name);

#endif


/* ngx_http_arg(): the first one of the name, in any case, that has a "=". */

ngx_str_t
ngx_sluice_var_read_argument(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    size_t      len;
    u_char     *p, *last;
    ngx_str_t   value;

    len = v->suffix.len;
    p = r->args.data;
    last = p + r->args.len;

    if (len == 0 || r->args.len == 0) {
        return ngx_sluice_var_absent;
    }

    while ((size_t) (last - p) > len) {

        if (p[len] == '=' && ngx_sluice_var_is_name(p, &v->suffix, 0)) {
            value.data = p + len + 1;
            value.len = ngx_sluice_var_find_byte(r->args.data, value.data, last,
                                                 '&', '&')
                        - value.data;

            return value;
        }

        p = ngx_sluice_var_find_byte(r->args.data, p, last, '&', '&') + 1;

        if (p > last) {
            break;
        }
    }

    return ngx_sluice_var_absent;
}


/*
 * Whether the bytes, as many as the name has, are the name in any case; in a
 * header "-" is "_".  The name is in lower case.
 */

static ngx_inline ngx_uint_t
ngx_sluice_var_is_name(const u_char *p, ngx_str_t *name, ngx_uint_t header)
{
    size_t         i, len;
    u_char         differ;
    uint64_t       word, other;
    const u_char  *q;

    q = name->data;
    len = name->len;

    if (len == 0) {
        return 1;
    }

    /* most differ in the first byte by more than their case */

    differ = p[0] ^ q[0];

    if (differ & ~0x20 && !(header && p[0] == '-')) {
        return 0;
    }

    if (len < 8) {
        word = ngx_sluice_var_word(p, len);
        other = ngx_sluice_var_word(q, len);

        return word == other || ngx_sluice_var_fold(word, header) == other;
    }

    for (i = 0; /* void */ ; i += 8) {

        if (i + 8 > len) {
            i = len - 8;
        }

        memcpy(&word, p + i, 8);
        memcpy(&other, q + i, 8);

        if (word != other && ngx_sluice_var_fold(word, header) != other) {
            return 0;
        }

        if (i + 8 == len) {
            return 1;
        }
    }
}


/* One to seven bytes; some may be in the word twice. */

static ngx_inline uint64_t
ngx_sluice_var_word(const u_char *p, size_t len)
{
    uint32_t  begin, end;

    if (len >= 4) {
        memcpy(&begin, p, 4);
        memcpy(&end, p + len - 4, 4);

        return (uint64_t) begin << 32 | end;
    }

    return p[0] | p[len / 2] << 8 | p[len - 1] << 16;
}


/*
 * Eight bytes at once, as ngx_tolower() and "-" to "_" of each.  A byte of up
 * to 127 to which 128 - c is added has its highest bit set if it is c or more.
 */

static ngx_inline uint64_t
ngx_sluice_var_fold(uint64_t word, ngx_uint_t header)
{
    uint64_t  low, upper, dash;

    const uint64_t  each = 0x0101010101010101;
    const uint64_t  high = 0x80 * each;

    low = word & ~high;

    upper = (low + (128 - 'A') * each) & ~(low + (127 - 'Z') * each)
            & ~word & high;

    if (header) {
        dash = (low + (128 - '-') * each) & ~(low + (127 - '-') * each)
               & ~word & high;
        word ^= (dash >> 7) * ('-' ^ '_');
    }

    return word | upper >> 2;
}


/*
 * The first of two bytes from p on, or last; first is where memory may be read
 * from.  Of a word that is taken from one with a
 * zero in it, the lowest bit left is that of the first zero byte.
 */

static ngx_inline u_char *
ngx_sluice_var_find_byte(u_char *first, u_char *p, u_char *last, u_char one,
    u_char other)
{
#if (NGX_HAVE_LITTLE_ENDIAN)

    size_t    skip;
    uint64_t  word, a, b, found;

    const uint64_t  each = 0x0101010101010101;

    for ( /* void */ ; last - first >= 8 && p < last; p += 8) {

        /* the end is in the last word of all bytes, behind others */

        skip = last - p < 8 ? 8 - (last - p) : 0;

        memcpy(&word, p - skip, 8);
        word >>= 8 * skip;

        a = word ^ each * one;
        b = word ^ each * other;

        found = (((a - each) & ~a) | ((b - each) & ~b)) & each * 0x80;

        if (found) {
            return p + __builtin_ctzll(found) / 8;
        }

        if (last - p <= 8) {
            return last;
        }
    }

#endif

    while (p < last && *p != one && *p != other) {
        p++;
    }

    return p;
}


#if (nginx_version < 1023000)

/* ngx_http_parse_multi_header_lines() */

ngx_str_t
ngx_sluice_var_read_cookie(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    u_char            *p, *first, *last;
    ngx_str_t          value;
    ngx_uint_t         i;
    ngx_table_elt_t  **line;

    line = r->headers_in.cookies.elts;

    for (i = 0; i < r->headers_in.cookies.nelts; i++) {

        first = line[i]->value.data;
        last = first + line[i]->value.len;
        p = first;

        while ((size_t) (last - p) >= v->suffix.len && p < last) {

            if (ngx_sluice_var_is_name(p, &v->suffix, 0)) {

                p = ngx_sluice_var_skip_spaces(p + v->suffix.len, last);

                if (p < last && *p++ == '=') {
                    value.data = ngx_sluice_var_skip_spaces(p, last);
                    value.len = ngx_sluice_var_find_byte(first, value.data,
                                                         last, ';', ';')
                                - value.data;

                    return value;
                }
            }

            p = ngx_sluice_var_find_byte(first, p, last, ';', ',');

            if (p < last) {
                p = ngx_sluice_var_skip_spaces(p + 1, last);
            }
        }
    }

    return ngx_sluice_var_absent;
}


static ngx_inline u_char *
ngx_sluice_var_skip_spaces(u_char *p, u_char *last)
{
    while (p < last && *p == ' ') {
        p++;
    }

    return p;
}


ngx_str_t
ngx_sluice_var_read_header_in(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return ngx_sluice_var_find_header(&r->headers_in.headers.part,
                                      &v->suffix);
}


ngx_str_t
ngx_sluice_var_read_header_out(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    return ngx_sluice_var_find_header(&r->headers_out.headers.part,
                                      &v->suffix);
}


ngx_str_t
ngx_sluice_var_read_upstream_header(ngx_http_request_t *r, ngx_sluice_var_t *v)
{
    if (r->upstream == NULL) {
        return ngx_sluice_var_absent;
    }

    return ngx_sluice_var_find_header(&r->upstream->headers_in.headers.part,
                                      &v->suffix);
}


/*
 * ngx_http_variable_unknown_header(): the first one of the name, in any case
 * and with "-" for "_".  Nearly all others differ in their length.
 */

static ngx_inline ngx_str_t
ngx_sluice_var_find_header(ngx_list_part_t *part, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_table_elt_t  *header;

    for ( /* void */ ; part; part = part->next) {

        header = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (header[i].key.len == name->len
                && header[i].hash != 0
                && ngx_sluice_var_is_name(header[i].key.data, name, 1))
            {
                return header[i].value;
            }
        }
    }

    return ngx_sluice_var_absent;
}

#endif
