
/*
 * Readers of variables with a prefix: arguments, cookies, headers.  They find
 * what nginx's handlers find, with less looking at: names are compared by
 * words; headers by the length of their names first; and in a text only those
 * places are looked at where a name as long as this one stands, which are
 * worked out for 64 bytes at once.
 *
 * A name of no length, or of more than NGX_HTTP_SLUICE_VAR_NAME_MAX, and a
 * text in which anything is odd are left to nginx's handler.
 */


#include "ngx_http_sluice_var.h"
#include "ngx_http_sluice_var_marks.h"


_Static_assert(NGX_HTTP_SLUICE_VAR_NAME_MAX < NGX_HTTP_SLUICE_VAR_WINDOW / 2,
               "the windows of a text overlap by a name");


/* Of what is to be compiled for one way of ending a value. */
#define ngx_http_sluice_var_inline  ngx_inline __attribute__ ((always_inline))


static void ngx_http_sluice_var_prepare_word(ngx_http_sluice_var_word_t *word,
    u_char *p, size_t len, ngx_uint_t suffix);
static ngx_inline ngx_uint_t ngx_http_sluice_var_is_name(const u_char *p,
    ngx_http_sluice_var_t *v, ngx_uint_t header);
static ngx_inline ngx_uint_t ngx_http_sluice_var_is_word(const u_char *p,
    size_t len, ngx_http_sluice_var_word_t *word, ngx_uint_t header);
static ngx_http_sluice_var_inline ngx_str_t ngx_http_sluice_var_search(
    ngx_http_request_t *r, ngx_http_sluice_var_t *v, ngx_str_t *text,
    u_char end);
static ngx_str_t ngx_http_sluice_var_search_long(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, ngx_str_t *text, u_char end);
static ngx_http_sluice_var_inline ngx_str_t ngx_http_sluice_var_find(
    ngx_http_sluice_var_t *v, ngx_str_t *text, u_char *p, u_char end,
    ngx_uint_t whole);
static ngx_inline ngx_uint_t ngx_http_sluice_var_is_cookie(const u_char *first,
    const u_char *p, size_t len, const u_char *last);

#if (nginx_version < 1023000)

static ngx_inline ngx_str_t ngx_http_sluice_var_find_header(
    ngx_list_part_t *part, ngx_http_sluice_var_t *v);

#endif


static const ngx_str_t  ngx_http_sluice_var_odd = { (size_t) NGX_ABORT, NULL };


/*
 * What ngx_http_sluice_var_is_name() needs of a name; NGX_DECLINED if it is
 * none for the readers here.
 */

ngx_int_t
ngx_http_sluice_var_prepare(ngx_http_sluice_var_t *v, ngx_uint_t suffix)
{
    size_t  i, len;

    len = v->suffix.len;

    if (len == 0 || len > NGX_HTTP_SLUICE_VAR_NAME_MAX) {
        return NGX_DECLINED;
    }

    for (i = 0; i + 8 < len; i += 8) {
        ngx_http_sluice_var_prepare_word(&v->words[i / 8], v->suffix.data + i,
                                         8, suffix);
    }

    i = len < 8 ? 0 : len - 8;
    ngx_http_sluice_var_prepare_word(&v->last_word, v->suffix.data + i,
                                     len - i, suffix);

    return NGX_OK;
}


static void
ngx_http_sluice_var_prepare_word(ngx_http_sluice_var_word_t *word, u_char *p,
    size_t len, ngx_uint_t suffix)
{
    u_char  fold[8], dash[8];
    size_t  i;

    for (i = 0; i < len; i++) {
        fold[i] = p[i] >= 'a' && p[i] <= 'z' ? 0x20 : 0;
        dash[i] = p[i] == '_' && suffix == NGX_HTTP_SLUICE_VAR_HEADER;
    }

    word->text = ngx_http_sluice_var_word(p, len);
    word->fold = ngx_http_sluice_var_word(fold, len);
    word->dash = ngx_http_sluice_var_word(dash, len);
}


/*
 * Whether the bytes, as many as the name has, are the name in any case; in a
 * header, "-" is as good as "_".
 */

static ngx_inline ngx_uint_t
ngx_http_sluice_var_is_name(const u_char *p, ngx_http_sluice_var_t *v,
    ngx_uint_t header)
{
    size_t  len;

    len = v->suffix.len;

    if (len < 8) {
        return ngx_http_sluice_var_is_word(p, len, &v->last_word, header);
    }

    return ngx_http_sluice_var_is_word(p + len - 8, 8, &v->last_word, header)
           && (len <= 8
               || ngx_http_sluice_var_is_word(p, 8, &v->words[0], header))
           && (len <= 16
               || ngx_http_sluice_var_is_word(p + 8, 8, &v->words[1], header))
           && (len <= 24
               || ngx_http_sluice_var_is_word(p + 16, 8, &v->words[2],
                                              header));
}


/*
 * A letter of the name has the bit by which its cases differ.  Where the name
 * has "_", what makes it "-" has bit 1.
 */

static ngx_inline ngx_uint_t
ngx_http_sluice_var_is_word(const u_char *p, size_t len,
    ngx_http_sluice_var_word_t *word, ngx_uint_t header)
{
    uint64_t  differ;

    differ = (ngx_http_sluice_var_word(p, len) | word->fold) ^ word->text;

    if (header) {
        differ ^= (differ >> 1 & word->dash) * ('_' ^ '-');
    }

    return differ == 0;
}


/*
 * ngx_http_arg(): the first one of the name, in any case, that has a "=".
 * Nothing is odd there.
 */

ngx_str_t
ngx_http_sluice_var_read_argument(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    return ngx_http_sluice_var_search(r, v, &r->args, '&');
}


#if (nginx_version < 1023000)

/*
 * ngx_http_parse_multi_header_lines().  Odd are spaces at the "=", anything
 * but "; " between cookies, and a name without a value: behind that, nginx may
 * pass over another cookie.  More than one line is odd, too.
 */

ngx_str_t
ngx_http_sluice_var_read_cookie(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    ngx_array_t       *lines;
    ngx_table_elt_t  **line;

    lines = &r->headers_in.cookies;
    line = lines->elts;

    if (lines->nelts == 1) {
        return ngx_http_sluice_var_search(r, v, &line[0]->value, ';');
    }

    return lines->nelts ? ngx_http_sluice_var_read_handler(r, v)
                        : ngx_http_sluice_var_absent;
}

#endif


static ngx_http_sluice_var_inline ngx_str_t
ngx_http_sluice_var_search(ngx_http_request_t *r, ngx_http_sluice_var_t *v,
    ngx_str_t *text, u_char end)
{
    ngx_str_t  value;

    if (text->len >= NGX_HTTP_SLUICE_VAR_WINDOW) {
        return ngx_http_sluice_var_search_long(r, v, text, end);
    }

    value = ngx_http_sluice_var_find(v, text, text->data, end, 1);

    if (value.len == ngx_http_sluice_var_odd.len) {
        return ngx_http_sluice_var_read_handler(r, v);
    }

    return value;
}


/* On its own, with the calls and the registers that a short text needs not. */

static ngx_str_t __attribute__ ((noinline))
ngx_http_sluice_var_search_long(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v, ngx_str_t *text, u_char end)
{
    size_t      step;
    u_char     *p, *last;
    ngx_str_t   value;

    /* the last name that a window decides begins the next one */

    step = NGX_HTTP_SLUICE_VAR_WINDOW - 1 - v->suffix.len;
    last = text->data + text->len;

    for (p = text->data; /* void */ ; p += step) {

        value = ngx_http_sluice_var_find(v, text, p, end, 0);

        if (value.len == ngx_http_sluice_var_odd.len) {
            return ngx_http_sluice_var_read_handler(r, v);
        }

        if (value.data || last - p <= NGX_HTTP_SLUICE_VAR_WINDOW) {
            return value;
        }
    }
}


/*
 * In the window at p, or in a whole text of less than a window: the value, or
 * that there is none, or that what is around the name is odd.
 */

static ngx_http_sluice_var_inline ngx_str_t
ngx_http_sluice_var_find(ngx_http_sluice_var_t *v, ngx_str_t *text, u_char *p,
    u_char end, ngx_uint_t whole)
{
    size_t                        len;
    u_char                       *last, *tail;
    uint64_t                      begins, behind, found, breaks;
    ngx_str_t                     value;
    ngx_uint_t                    i;
    ngx_http_sluice_var_marks_t   marks;

    len = v->suffix.len;
    last = text->data + text->len;

    ngx_http_sluice_var_mark(p, last - p, end, &marks);

    begins = marks.breaks << 1 | (whole || p == text->data);
    behind = end == ';' ? marks.equals | marks.breaks : marks.equals;

    for (found = begins & behind >> len; found; found &= found - 1) {

        i = (unsigned) __builtin_ctzll(found);

        if (!ngx_http_sluice_var_is_name(p + i, v, 0)) {
            continue;
        }

        if (end == ';'
            && !ngx_http_sluice_var_is_cookie(text->data, p + i, len, last))
        {
            return ngx_http_sluice_var_odd;
        }

        value.data = p + i + len + 1;

        breaks = marks.breaks >> (i + len);

        for ( /* void */ ; whole || breaks; breaks &= breaks - 1) {

            value.len = (unsigned) __builtin_ctzll(breaks) - 1;
            tail = value.data + value.len;

            if (end == '&' || tail == last || *tail == end) {
                return value;
            }
        }

        tail = memchr(value.data, end, last - value.data);
        value.len = (tail ? tail : last) - value.data;

        return value;
    }

    return ngx_http_sluice_var_absent;
}


/* Whether what has the name is a cookie with a value, and nothing is odd. */

static ngx_inline ngx_uint_t
ngx_http_sluice_var_is_cookie(const u_char *first, const u_char *p, size_t len,
    const u_char *last)
{
    const u_char  *equals;

    equals = p + len;

    return equals < last && *equals == '='
           && (equals + 1 == last || equals[1] != ' ')
           && (p == first || (p - first >= 2 && memcmp(p - 2, "; ", 2) == 0));
}


#if (nginx_version < 1023000)

ngx_str_t
ngx_http_sluice_var_read_header_in(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    return ngx_http_sluice_var_find_header(&r->headers_in.headers.part, v);
}


ngx_str_t
ngx_http_sluice_var_read_header_out(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    return ngx_http_sluice_var_find_header(&r->headers_out.headers.part, v);
}


ngx_str_t
ngx_http_sluice_var_read_upstream_header(ngx_http_request_t *r,
    ngx_http_sluice_var_t *v)
{
    if (r->upstream == NULL) {
        return ngx_http_sluice_var_absent;
    }

    return ngx_http_sluice_var_find_header(
                                 &r->upstream->headers_in.headers.part, v);
}


/*
 * ngx_http_variable_unknown_header(): the first one of the name, in any case
 * and with "-" for "_".  Nearly all others differ in their length or in the
 * first letter.
 */

static ngx_inline ngx_str_t
ngx_http_sluice_var_find_header(ngx_list_part_t *part,
    ngx_http_sluice_var_t *v)
{
    size_t            len;
    u_char            first;
    ngx_table_elt_t  *header, *last;

    len = v->suffix.len;
    first = v->suffix.data[0];

    for ( /* void */ ; part; part = part->next) {

        header = part->elts;
        last = header + part->nelts;

        for ( /* void */ ; header < last; header++) {

            if (header->key.len == len
                && ((header->key.data[0] | 0x20) == first || first == '_')
                && header->hash != 0
                && ngx_http_sluice_var_is_name(header->key.data, v, 1))
            {
                return header->value;
            }
        }
    }

    return ngx_http_sluice_var_absent;
}

#endif
