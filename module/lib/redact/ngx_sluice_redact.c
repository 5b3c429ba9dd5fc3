
/*
 * Long on purpose: all that is looked for in one pass over a text.
 *
 * Secrets in texts that are logged (ngx_sluice_redact.h).
 *
 * A text is passed over once.  Where a parameter may begin its name is decoded
 * and looked up, so the work is linear in the text however many names there
 * are.  In doubt more is taken out: a log that lacks something is better than
 * one with a key.
 */


#include "ngx_sluice_redact.h"


static u_char *ngx_sluice_redact_name_end(u_char *p, u_char *last);
static ngx_uint_t ngx_sluice_redact_is_parameter(u_char *p, u_char *last);
static u_char ngx_sluice_redact_letter(u_char **p, u_char *last);
static ngx_uint_t ngx_sluice_redact_find(u_char c, u_char *start, u_char **p,
    u_char *last, ngx_uint_t kind, u_char **end);
static ngx_uint_t ngx_sluice_redact_find_userinfo(u_char *p, u_char *last,
    ngx_uint_t is_bare, u_char **end);
static ngx_uint_t ngx_sluice_redact_find_segment(u_char **p, u_char *last,
    u_char **end);
static u_char *ngx_sluice_redact_pass(u_char *p, u_char *last, u_char *name,
    size_t *length);
static u_char *ngx_sluice_redact_segment_end(u_char *p, u_char *last);
static ngx_uint_t ngx_sluice_redact_find_request(u_char *start, u_char *p,
    u_char *last, u_char **end);
static ngx_uint_t ngx_sluice_redact_find_header(u_char *start, u_char **p,
    u_char *last, u_char **end);
static ngx_uint_t ngx_sluice_redact_is_name(u_char c);
static u_char *ngx_sluice_redact_line_end(u_char *p, u_char *last);
static u_char *ngx_sluice_redact_value_end(u_char *p, u_char *last,
    ngx_uint_t kind);
static ngx_uint_t ngx_sluice_redact_is_quote_end(u_char *p, u_char *last);


size_t
sluice_redact(u_char *dst, const u_char *text, size_t length, int kind)
{
    return ngx_sluice_redact(dst, (u_char *) text, length, kind);
}


size_t
ngx_sluice_redact(u_char *dst, u_char *text, size_t length, ngx_uint_t kind)
{
    u_char  c, *p, *end, *last, *copied, *out;

    p = text;
    last = text + length;
    copied = text;
    out = dst;
    c = kind == NGX_SLUICE_REDACT_QUERY ? '&' : '\0';

    if (kind == NGX_SLUICE_REDACT_REQUEST
        && length > 1
        && ngx_sluice_redact_method_end(text, last) == NULL)
    {
        return ngx_cpymem(dst, NGX_SLUICE_REDACTED,
                          sizeof(NGX_SLUICE_REDACTED) - 1)
               - dst;
    }

    for ( ;; ) {

        if (ngx_sluice_redact_find(c, text, &p, last, kind, &end)) {

            out = ngx_cpymem(out, copied, p - copied);
            out = ngx_cpymem(out, NGX_SLUICE_REDACTED,
                             sizeof(NGX_SLUICE_REDACTED) - 1);

            copied = end;
            p = end;
        }

        if (p == last) {
            break;
        }

        c = *p++;
    }

    out = ngx_cpymem(out, copied, last - copied);

    return out - dst;
}


/*
 * Whether a secret begins where c was read: then it is from *p to *end, and
 * not empty.
 */

static ngx_uint_t
ngx_sluice_redact_find(u_char c, u_char *start, u_char **p, u_char *last,
    ngx_uint_t kind, u_char **end)
{
    switch (c) {

    case '/':
        if (*p < last && **p == '/') {
            (*p)++;

            if (ngx_sluice_redact_find_userinfo(*p, last, 0, end)) {
                return 1;
            }
        }

        return ngx_sluice_redact_find_segment(p, last, end);

    case ' ':
        return ngx_sluice_redact_find_userinfo(*p, last, 1, end);

    case '"':
        if (kind != NGX_SLUICE_REDACT_LINE) {
            return 0;
        }

        if (ngx_sluice_redact_find_request(start, *p, last, end)
            || ngx_sluice_redact_find_header(start, p, last, end))
        {
            return 1;
        }

        /* fall through */

    case '?':
    case '&':
    case ';':
    case '#':
        if (!ngx_sluice_redact_is_parameter(*p, last)) {
            return 0;
        }

        *p = ngx_sluice_redact_name_end(*p, last) + 1;
        *end = ngx_sluice_redact_value_end(*p, last, kind);

        return *end != *p;

    default:
        return 0;
    }
}


static u_char *
ngx_sluice_redact_name_end(u_char *p, u_char *last)
{
    while (p < last && *p != '=' && *p != '&' && *p != '?' && *p != ';'
           && *p != '#' && *p != ' ' && *p != '"')
    {
        p++;
    }

    return p;
}


/* whether a parameter with a secret name and a value begins at p */

static ngx_uint_t
ngx_sluice_redact_is_parameter(u_char *p, u_char *last)
{
    u_char  *end, name[NGX_SLUICE_NAME_MAX + 1];
    size_t   length;

    end = ngx_sluice_redact_name_end(p, last);

    if (end == last || *end != '=') {
        return 0;
    }

    for (length = 0; p < end && length < sizeof(name); length++) {

        if (*p == '+') {
            name[length] = ' ';
            p++;
            continue;
        }

        name[length] = ngx_sluice_redact_letter(&p, end);
    }

    return ngx_sluice_redact_is_secret(name, length);
}


/* moves p behind one letter, percent-encoded or not, and returns it */

static u_char
ngx_sluice_redact_letter(u_char **p, u_char *last)
{
    ngx_int_t  c;

    if (**p == '%' && last - *p >= 3) {

        c = ngx_hextoi(*p + 1, 2);

        if (c != NGX_ERROR) {
            *p += 3;
            return (u_char) c;
        }
    }

    return *(*p)++;
}


/*
 * Whether an authority begins at p that has a user name or a password.  A bare
 * one, as in CONNECT, has both.
 */

static ngx_uint_t
ngx_sluice_redact_find_userinfo(u_char *p, u_char *last, ngx_uint_t is_bare,
    u_char **end)
{
    u_char      *from, *at;
    ngx_uint_t   has_colon, colon;

    at = NULL;
    from = p;
    colon = 0;
    has_colon = 0;

    last = ngx_sluice_redact_segment_end(p, last);

    for ( /* void */ ; p < last; p++) {

        if (*p == ':') {
            colon = 1;

        } else if (*p == '@') {
            at = p;
            has_colon = colon;
        }
    }

    *end = at;

    return at != NULL && at != from && (has_colon || !is_bare);
}


/*
 * Whether a path of the admin listener begins at *p that names a credential
 * by its secret: /<kind>/<secret> or /<parents>/<name>/<kind>/<secret>, where
 * "<kind>/" or "<parents>/<kind>/" is in the list.
 */

static ngx_uint_t
ngx_sluice_redact_find_segment(u_char **p, u_char *last, u_char **end)
{
    u_char  *at, *next, name[NGX_SLUICE_NAME_MAX + 1];
    size_t   length;

    length = 0;
    at = ngx_sluice_redact_pass(*p, last, name, &length);

    if (at == NULL) {
        return 0;
    }

    if (!ngx_sluice_redact_is_secret(name, length)) {
        next = ngx_sluice_redact_segment_end(at, last);
        at = next < last && *next == '/'
             ? ngx_sluice_redact_pass(next + 1, last, name, &length) : NULL;

        if (at == NULL || !ngx_sluice_redact_is_secret(name, length)) {
            return 0;
        }
    }

    *p = at;
    *end = ngx_sluice_redact_segment_end(at, last);

    return *end != *p;
}


/*
 * Adds a segment and the "/" behind it to a name, percent-encoded or not.
 * Moves p behind it; NULL: there is no "/", or the name is too long.
 */

static u_char *
ngx_sluice_redact_pass(u_char *p, u_char *last, u_char *name, size_t *length)
{
    u_char  *end;

    end = ngx_sluice_redact_segment_end(p, last);

    if (end == last || *end != '/') {
        return NULL;
    }

    while (p < end) {

        if (*length == NGX_SLUICE_NAME_MAX) {
            return NULL;
        }

        name[(*length)++] = ngx_sluice_redact_letter(&p, end);
    }

    name[(*length)++] = '/';

    return end + 1;
}


int
sluice_redact_has_segment(const u_char *text, size_t length)
{
    u_char  *p, *at, *end, *last;

    p = (u_char *) text;
    last = p + length;

    while (p < last) {

        if (*p++ != '/') {
            continue;
        }

        at = p;

        if (ngx_sluice_redact_find_segment(&at, last, &end)) {
            return 1;
        }
    }

    return 0;
}


/* the end of a path's segment, or of an authority */

static u_char *
ngx_sluice_redact_segment_end(u_char *p, u_char *last)
{
    while (p < last && *p != '/' && *p != '?' && *p != '#' && *p != ' '
           && *p != '"' && *p != CR && *p != LF)
    {
        p++;
    }

    return p;
}


u_char *
ngx_sluice_redact_method_end(u_char *p, u_char *last)
{
    u_char  *start, *end;

    start = p;

    while (p < last && ((*p >= 'A' && *p <= 'Z') || *p == '_' || *p == '-')) {
        p++;
    }

    end = p;

    while (p < last && *p == ' ') {
        p++;
    }

    if (end == start || p == end || p == last) {
        return NULL;
    }

    if (*p == '/'
        || (*p == '*' && (last - p == 1 || p[1] == ' '))
        || (end - start == 7 && ngx_memcmp(start, "CONNECT", 7) == 0))
    {
        return end;
    }

    start = p;

    while (p < last && ngx_tolower(*p) >= 'a' && ngx_tolower(*p) <= 'z') {
        p++;
    }

    return p != start && last - p > 2 && ngx_memcmp(p, "://", 3) == 0
           ? end : NULL;
}


/*
 * Whether this quote begins what nginx took for a request's first line, and is
 * none: it is the first in its line, since nothing of a client stands before.
 * nginx ends such a line with it, and it may have quotes of its own.
 */

static ngx_uint_t
ngx_sluice_redact_find_request(u_char *start, u_char *p, u_char *last,
    u_char **end)
{
    u_char       *quote;
    static char   before[] = ", request: ";

    quote = p - 1;

    if ((size_t) (quote - start) < sizeof(before) - 1
        || ngx_memcmp(quote - (sizeof(before) - 1), before,
                      sizeof(before) - 1)
           != 0
        || memchr(start, '"', quote - start) != NULL
        || ngx_sluice_redact_method_end(p, last) != NULL)
    {
        return 0;
    }

    *end = last[-1] == '"' ? last - 1 : last;

    return *end > p;
}


/*
 * Whether this quote begins a header that is a secret, as in nginx's
 * 'client sent too long header line: "Name: value"' and, on the level debug,
 * 'http header: "Name: value"'.
 */

static ngx_uint_t
ngx_sluice_redact_find_header(u_char *start, u_char **p, u_char *last,
    u_char **end)
{
    u_char       *quote, *colon;
    ngx_uint_t    i;
    static const ngx_str_t  before[] = {
        ngx_string("header line: "),
        ngx_string("header: "),
        ngx_string("previous value: "),
        ngx_null_string
    };

    quote = *p - 1;

    for (i = 0; before[i].len; i++) {

        if ((size_t) (quote - start) >= before[i].len
            && ngx_memcmp(quote - before[i].len, before[i].data,
                          before[i].len)
               == 0)
        {
            break;
        }
    }

    if (before[i].len == 0) {
        return 0;
    }

    *end = ngx_sluice_redact_line_end(*p, last);

    colon = *p;

    while (colon < *end && ngx_sluice_redact_is_name(*colon)) {
        colon++;
    }

    /* without a name it may be a line of a body: nobody knows what it is */

    if (colon < *end && *colon == ':') {

        if (!ngx_sluice_redact_is_secret(*p, colon - *p)) {
            return 0;
        }

        *p = colon + 1;
    }

    return *end != *p;
}


static ngx_uint_t
ngx_sluice_redact_is_name(u_char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'
           || (ngx_tolower(c) >= 'a' && ngx_tolower(c) <= 'z');
}


/*
 * The end of a header's line, which may have quotes of its own: nginx says
 * behind it what it was doing, or nothing.
 */

static u_char *
ngx_sluice_redact_line_end(u_char *p, u_char *last)
{
    u_char       *end;
    static char   behind[] = "\" while ";

    end = ngx_strlcasestrn(p, last, (u_char *) behind, sizeof(behind) - 2);

    return end ? end : (last > p && last[-1] == '"') ? last - 1 : last;
}


/* a value ends with the next one, or with the text that it stands in */

static u_char *
ngx_sluice_redact_value_end(u_char *p, u_char *last, ngx_uint_t kind)
{
    for ( /* void */ ; p < last && *p != '&'; p++) {

        if (*p == ' ' && last - p >= 6 && ngx_memcmp(p, " HTTP/", 6) == 0) {
            break;
        }

        if (kind == NGX_SLUICE_REDACT_LINE
            && (*p == CR || *p == LF
                || ngx_sluice_redact_is_quote_end(p, last)))
        {
            break;
        }
    }

    return p;
}


/* the end of a quoted text in a line: '", ', '" ' or '"' at its end */

static ngx_uint_t
ngx_sluice_redact_is_quote_end(u_char *p, u_char *last)
{
    if (*p != '"') {
        return 0;
    }

    return last - p < 3 || p[1] == LF || p[1] == ' '
           || (p[1] == ',' && p[2] == ' ');
}
