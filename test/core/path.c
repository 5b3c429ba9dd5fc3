
/*
 * Paths: random ones and long ones, under ASan and UBSan, in memory that ends
 * where a text does and where a verb's bound does.  That the answers are those
 * of the Lua is what test/unit/core_path_spec.lua finds out.
 */


#include "path.h"
#include "support.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>


#define PATH_LONG    (128u << 10)   /* bytes: squared, minutes */
#define PATH_LIMIT   1.0            /* seconds of CPU time */
#define PATH_PIECES  8


static const char *const  pieces[] = {
    "/", "/", "/", "//", ".", "..", "/.", "/..", "/../", "a", "bcd", "%2e",
    "%2E", "%2f", "%2F", "%5c", "\\", ";", "%3B", "%", "%2", "%%32e", "%25",
    "%252f", "%41", "%00", "%0a", "\n", " ", "#", "%c0%af", "\xc0\xaf", "\x80",
    "\xff", "%f0%80", "?", "?a=1", "%zz", "!$&'()*+,=:@", "\"<>"
};


static uint64_t  state, same, made, refused;


static int
path_same(const sluice_core_text_t *a, const sluice_core_text_t *b)
{
    return a->length == b->length
           && memcmp(a->data, b->data, a->length) == 0;
}


/* No segment is "", "." or "..", and the first byte is a slash. */

static void
path_check_normal(const sluice_core_text_t *path)
{
    uint32_t  i, length;

    test_check(path->length && path->data[0] == '/', "no slash");

    for (i = 1, length = 0; i <= path->length; i++) {

        if (i < path->length && path->data[i] != '/') {
            length++;
            continue;
        }

        test_check(length || i == path->length, "an empty segment");
        test_check(length != 1 || path->data[i - 1] != '.', "a dot");
        test_check(length != 2 || memcmp(&path->data[i - 2], "..", 2) != 0,
                   "two dots");
        length = 0;
    }
}


static sluice_core_text_t
path_normalize(const sluice_core_text_t *raw, char *buffer)
{
    size_t              bound;
    sluice_core_text_t  path, again;

    bound = sluice_path_normalize_bound(raw);
    test_check(sluice_path_normalize(raw, buffer, bound, &path)
               == SLUICE_CORE_OK, "normalize");

    if (path.data == raw->data) {
        test_check(path.length == raw->length, "the input, but not all");
        test_check(sluice_path_normalize(raw, NULL, 0, &again)
                   == SLUICE_CORE_OK, "asks for room");
        same++;

    } else {
        test_check(!path_same(&path, raw), "written, and the same");
        test_check(sluice_path_normalize(raw, NULL, bound - 1, &again)
                   == SLUICE_CORE_FULL, "writes with less room");
        made++;
    }

    path_check_normal(&path);

    test_check(sluice_path_normalize(&path, NULL, 0, &again) == SLUICE_CORE_OK
               && again.data == path.data, "not at rest after one step");

    return path;
}


static void
path_escape(const sluice_core_text_t *path)
{
    char                *buffer;
    size_t               bound;
    sluice_core_text_t   escaped, again;

    bound = sluice_path_escape_bound(path);
    buffer = malloc(bound ? bound : 1);
    test_check(sluice_path_escape(path, buffer, bound, &escaped)
               == SLUICE_CORE_OK, "escape");

    test_check(escaped.data == path->data || !path_same(&escaped, path),
               "written, and the same");
    test_check(sluice_path_escape(&escaped, NULL, 0, &again)
               == SLUICE_CORE_OK, "not at rest after one step");

    free(buffer);
}


/* What a plugin has written as a query ends no request line. */

static void
path_args(const sluice_path_request_t *r, const sluice_core_text_t *uri)
{
    size_t  i;

    if (!(r->flags & SLUICE_PATH_ARGS)
        || r->args.length == 0
        || (r->query.length == r->args.length + 1
            && memcmp(r->query.data + 1, r->args.data, r->args.length) == 0))
    {
        return;
    }

    for (i = uri->length; i > 0 && uri->data[i - 1] != '?'; i--) {
        test_check((uint8_t) uri->data[i - 1] > 0x20
                   && uri->data[i - 1] != 0x7f, "args that are none");
    }
}


static void
path_upstream(sluice_path_request_t *r)
{
    int                  rc;
    char                *buffer;
    size_t               bound;
    sluice_core_text_t   uri, prefix;

    bound = sluice_path_upstream_bound(r);
    buffer = malloc(bound ? bound : 1);
    rc = sluice_path_upstream(r, buffer, bound, &uri);

    if (rc == SLUICE_CORE_TRAVERSAL) {
        refused++;

    } else {
        test_check(rc == SLUICE_CORE_OK, "upstream: %s", sluice_core_word(rc));
        test_check(uri.data == r->raw.data || uri.length <= bound, "too long");
        path_args(r, &uri);
    }

    if (rc == SLUICE_CORE_TRAVERSAL || uri.data != r->raw.data) {
        test_check(sluice_path_upstream(r, NULL, bound - 1, &uri)
                   == SLUICE_CORE_FULL, "writes with less room");
    }

    free(buffer);

    bound = 3 * (size_t) r->path.length;
    buffer = malloc(bound);
    test_check(sluice_path_stripped(r, buffer, bound, &prefix)
               == SLUICE_CORE_OK, "stripped");
    free(buffer);
}


/* A target as any client may send, all flags, and prefixes of any length. */

static void
path_ask(const char *data, size_t length, const char *base, const char *args)
{
    char                   *buffer;
    sluice_core_text_t      target;
    sluice_path_request_t   r;

    target = text_own(data, length);
    memset(&r, 0, sizeof(r));
    sluice_path_split(&target, &r.raw, &r.query);
    test_check(r.raw.length + r.query.length == target.length, "split");

    buffer = malloc(sluice_path_normalize_bound(&r.raw));
    r.path = path_normalize(&r.raw, buffer);
    path_escape(&r.raw);
    path_escape(&r.path);

    r.base = text_own(base, strlen(base));
    r.args = text_own(args, strlen(args));

    for (r.flags = 0; r.flags < 16; r.flags++) {
        r.prefix = (int32_t) test_below(&state, r.path.length + 2) - 1;
        path_upstream(&r);
    }

    text_free(&r.args);
    text_free(&r.base);
    free(buffer);
    text_free(&target);
}


static void
path_random(void)
{
    char                      text[256];
    size_t                    length, n;
    uint64_t                  i;
    const char               *piece;
    static const char *const  bases[] = { "/", "/s", "/s/", "/s;/t", "/a%2f" };
    static const char *const  args[] = { "", "a", "a=1", "a\r\nb: c\x7f" };

    length = 0;

    for (i = test_below(&state, PATH_PIECES); i > 0; i--) {
        piece = pieces[test_below(&state, sizeof(pieces) / sizeof(char *))];
        n = strlen(piece);
        memcpy(&text[length], piece, n);
        length += n;

        if (test_below(&state, 20) == 0) {
            text[length++] = (char) test_random(&state);
        }
    }

    path_ask(text, length, bases[test_below(&state, 5)],
             args[test_below(&state, 4)]);
}


/* The example of path.h. */

static void
path_example(void)
{
    int                     rc;
    char                    normal[64], buffer[64];
    sluice_core_text_t      target, uri;
    sluice_path_request_t   r;

    memset(&r, 0, sizeof(r));
    target.data = "/a/./b%7e?c";
    target.length = (uint32_t) strlen(target.data);
    r.base.data = "/s";
    r.base.length = 2;
    r.prefix = 2;
    r.flags = SLUICE_PATH_STRIP;

    sluice_path_split(&target, &r.raw, &r.query);
    rc = sluice_path_normalize(&r.raw, normal, sizeof(normal), &r.path);
    test_check(rc == SLUICE_CORE_OK && r.path.length == 5
               && memcmp(r.path.data, "/a/b~", 5) == 0, "path");

    rc = sluice_path_upstream(&r, buffer, sizeof(buffer), &uri);
    test_check(rc == SLUICE_CORE_OK && uri.length == 7
               && memcmp(uri.data, "/s/b~?c", 7) == 0, "uri");
}


/* head, then piece over and over, then tail over and over */

static void
path_long(const char *head, const char *piece, const char *tail)
{
    char    *text;
    size_t   length;
    clock_t  from;
    double   spent;

    text = malloc(PATH_LONG + 64);
    test_check(text != NULL, "no memory");
    length = (size_t) sprintf(text, "%s", head);

    while (length < PATH_LONG / 2) {
        length += (size_t) sprintf(&text[length], "%s", piece);
    }

    while (length < PATH_LONG) {
        length += (size_t) sprintf(&text[length], "%s", tail);
    }

    from = clock();
    path_ask(text, length, "/s", "");
    spent = (double) (clock() - from) / CLOCKS_PER_SEC;
    test_check(spent < PATH_LIMIT, "%.1f s for '%s', '%s', '%s'", spent, head,
               piece, tail);

    free(text);
}


int
main(void)
{
    size_t                    i;
    uint64_t                  cases;
    static const char *const  repeated[] = {
        "/", "a", "/a", "/.", "/..", "/a/..", "/a/b/../..", ".", "%", "%2",
        "%2e", "%2e%2e/", "%25", "25", "%2525", "/%2e%2e", ";/", "\\..",
        "\xf0", "%f0%80%25", "%c0", "\xe0\x80", " ", "?", "#"
    };

    state = test_seed("path");
    path_example();

    for (cases = test_env("CASES", 300000); cases > 0; cases--) {
        path_random();
    }

    for (i = 0; i < sizeof(repeated) / sizeof(char *); i++) {
        path_long("/", repeated[i], repeated[i]);
        path_long("/%", repeated[i], "/..");
        path_long("/a", repeated[i], "%25");
    }

    printf("path: %lu the same, %lu made, %lu refused\n", same, made, refused);
    test_check(same > made / 100 && refused, "cases of no use");

    return 0;
}
