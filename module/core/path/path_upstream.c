
/*
 * What the upstream is asked: the path of the service (base), what is left of
 * the request's path (rest), and the query.  Where that is what came, the
 * request's own bytes go on.  Where an upstream could read it as a path
 * outside of the base, it is refused (traversal.h).
 *
 * Whether a slash stands between base and rest follows Kong's tables of
 * strip_path and path_handling, which are in test/unit/path_spec.lua.
 */


#include "path.h"
#include "traversal.h"

#include <string.h>


static int sluice_path_keeps_query(const sluice_path_request_t *r);
static char *sluice_path_join(const sluice_path_request_t *r, char *out);
static sluice_core_text_t sluice_path_rest(const sluice_path_request_t *r);
static char *sluice_path_put(const sluice_path_request_t *r, char *out,
    const sluice_core_text_t *text);
static int sluice_path_leaves(const sluice_path_request_t *r,
    const char *path, size_t length);
static int sluice_path_is_raw(const sluice_path_request_t *r);
static int sluice_path_is_root(const sluice_core_text_t *base);
static int sluice_path_strips(const sluice_path_request_t *r);


int
sluice_path_upstream(const sluice_path_request_t *r, char *buffer, size_t size,
    sluice_core_text_t *uri)
{
    int    keeps_query;
    char  *out;

    keeps_query = sluice_path_keeps_query(r);

    if (keeps_query
        && sluice_path_is_raw(r)
        && sluice_path_is_root(&r->base)
        && !sluice_path_strips(r))
    {
        uri->data = r->raw.data;
        uri->length = r->raw.length + r->query.length;

        return SLUICE_CORE_OK;
    }

    if (size < sluice_path_upstream_bound(r)) {
        return SLUICE_CORE_FULL;
    }

    out = sluice_path_join(r, buffer);

    if (sluice_path_leaves(r, buffer, (size_t) (out - buffer))) {
        return SLUICE_CORE_TRAVERSAL;
    }

    if (keeps_query) {
        out = sluice_core_copy(out, &r->query);

    } else if (r->args.length) {
        *out++ = '?';
        out = sluice_path_put_args(&r->args, out);
    }

    uri->data = buffer;
    uri->length = (uint32_t) (out - buffer);

    return SLUICE_CORE_OK;
}


/* the slash between base and rest is one of theirs */

size_t
sluice_path_upstream_bound(const sluice_path_request_t *r)
{
    size_t  path, query;

    path = (size_t) r->base.length + r->path.length;
    query = sluice_path_keeps_query(r)
            ? r->query.length : 1 + sluice_path_put_args_bound(&r->args);

    return (sluice_path_is_raw(r) ? path : 3 * path) + query;
}


int
sluice_path_stripped(const sluice_path_request_t *r, char *buffer, size_t size,
    sluice_core_text_t *prefix)
{
    sluice_core_text_t  stripped;

    stripped.data = r->path.data;
    stripped.length = sluice_path_strips(r) ? (uint32_t) r->prefix : 0;

    if (sluice_path_is_raw(r)) {
        *prefix = stripped;
        return SLUICE_CORE_OK;
    }

    return sluice_path_escape(&stripped, buffer, size, prefix);
}


/* nginx does not tell "/?" from "/": no args may be either */

static int
sluice_path_keeps_query(const sluice_path_request_t *r)
{
    if (!(r->flags & SLUICE_PATH_ARGS)) {
        return 1;
    }

    if (r->args.length == 0) {
        return r->query.length <= 1;
    }

    return r->query.length == r->args.length + 1
           && memcmp(r->query.data + 1, r->args.data, r->args.length) == 0;
}


/*
 * In v1 a slash stands between base and rest if one of them brings it.  In v0
 * it always does; but where nothing is left of the path, only if the path ends
 * with a slash.  Of "/" that says nothing, so there the base decides.
 */

static char *
sluice_path_join(const sluice_path_request_t *r, char *out)
{
    int                  base_slash, rest_slash, slash;
    sluice_core_text_t   base, rest;

    base = r->base;
    rest = sluice_path_rest(r);

    base_slash = sluice_path_is_root(&base)
                 || (base.length && base.data[base.length - 1] == '/');
    rest_slash = rest.length && rest.data[0] == '/';

    if (r->flags & SLUICE_PATH_V1) {
        slash = base_slash || rest_slash;

    } else if (rest.length) {
        slash = 1;

    } else if (r->path.length == 1 || sluice_path_is_root(&base)) {
        slash = base_slash;

    } else {
        slash = r->path.data[r->path.length - 1] == '/';
    }

    base.length -= (base_slash && base.length);
    rest.data += rest_slash;
    rest.length -= rest_slash;

    out = sluice_path_put(r, out, &base);

    if (slash) {
        *out++ = '/';
    }

    return sluice_path_put(r, out, &rest);
}


/*
 * The path without its first slash, which the base brings, or without the
 * prefix that is stripped.  That may cut a segment: of the dots in "/a../b"
 * the prefix "/a" must not leave a traversal.
 */

static sluice_core_text_t
sluice_path_rest(const sluice_path_request_t *r)
{
    uint32_t             cut, dots;
    sluice_core_text_t   rest;

    cut = (r->flags & SLUICE_PATH_STRIP) && r->prefix >= 0
          ? (uint32_t) r->prefix : 1;

    rest.data = r->path.data + cut;
    rest.length = r->path.length - cut;

    for (dots = 0; dots < rest.length && rest.data[dots] == '.'; dots++) {
        if (dots == 2) {
            return rest;
        }
    }

    if (dots && (dots == rest.length || rest.data[dots] == '/')) {
        cut = dots + (dots < rest.length);
        rest.data += cut;
        rest.length -= cut;
    }

    return rest;
}


/* a piece of the path, encoded; what is all as it came needs none */

static char *
sluice_path_put(const sluice_path_request_t *r, char *out,
    const sluice_core_text_t *text)
{
    sluice_core_text_t  escaped;

    if (sluice_path_is_raw(r)) {
        return sluice_core_copy(out, text);
    }

    (void) sluice_path_escape(text, out, sluice_path_escape_bound(text),
                              &escaped);

    return escaped.data == out ? out + escaped.length
                               : sluice_core_copy(out, text);
}


/*
 * May the upstream see a way out of the base?  Where traversal does not pass,
 * that is only where a strip cuts a segment, and leaves dots that nobody has
 * seen: "/public" takes "/public..%2fx" for its own.
 */

static int
sluice_path_leaves(const sluice_path_request_t *r, const char *path,
    size_t length)
{
    int  is_cut;

    is_cut = sluice_path_strips(r)
             && (uint32_t) r->prefix < r->path.length
             && r->path.data[r->prefix] != '/'
             && r->path.data[r->prefix - 1] != '/';

    if (!is_cut
        && (sluice_path_is_root(&r->base)
            || !(r->flags & SLUICE_PATH_TRAVERSAL)))
    {
        return 0;
    }

    return sluice_traversal_leaves((const unsigned char *) path, length,
                                   r->base.length);
}


/* nothing was decoded: the path as it came is the normal one */

static int
sluice_path_is_raw(const sluice_path_request_t *r)
{
    return r->path.data == r->raw.data;
}


static int
sluice_path_is_root(const sluice_core_text_t *base)
{
    return base->data == NULL || (base->length == 1 && base->data[0] == '/');
}


/* more than the first slash, which the base brings */

static int
sluice_path_strips(const sluice_path_request_t *r)
{
    return (r->flags & SLUICE_PATH_STRIP) && r->prefix > 1;
}
