
/*
 * Conditions of an entry: host, port, method, SNI, path, headers, patterns.
 */


#include "search.h"


/* Units of a header that is looked for in all of the request's. */
#define CORE_HEADER_UNITS  64


static int core_is_met(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);
static int core_path_matches(const sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);
static int core_host_matches(const sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);
static int core_method_matches(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);
static int core_sni_matches(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);
static int core_headers_match(sluice_core_search_t *s,
    const sluice_core_space_t *space, uint32_t ref, int *reason);
static int core_header_matches(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_condition_t *wanted,
    int *reason);
static int core_header_is(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_condition_t *wanted);
static int core_line(sluice_core_search_t *s, const sluice_core_chars_t *name,
    uint32_t index, uint32_t *at, sluice_core_text_t *value);
static int core_sni_is(const sluice_core_chars_t *wanted,
    const sluice_core_text_t *name);
static int core_is_last_name(const sluice_core_search_t *s,
    const sluice_core_chars_t *name);
static int core_equal_lower(sluice_core_search_t *s,
    const sluice_core_chars_t *lower, const sluice_core_text_t *text);


/*
 * Does the request meet all conditions of an entry?  Then it is the best; also
 * if a pattern of it gave up, or there is no time to look: what it would have
 * kept from the request must not be passed over.
 */

int
sluice_core_try(sluice_core_search_t *s, const sluice_core_space_t *space,
    const sluice_core_entry_t *entry)
{
    int  met;

    met = !sluice_core_search_ends(s, 1) && core_is_met(s, space, entry);

    if (s->is_over) {
        s->gave_up = SLUICE_CORE_LIMIT;
        s->end = 0;
        s->best = entry;
        s->space = space;
    }

    return met || s->is_over;
}


static int
core_is_met(sluice_core_search_t *s, const sluice_core_space_t *space,
    const sluice_core_entry_t *entry)
{
    int                  rc, gave_up, reason;
    uint32_t             end;
    sluice_core_found_t  route;

    if ((entry->flags & SLUICE_CORE_HAS_PORT)
        && s->request->port != entry->port)
    {
        return 0;
    }

    if (entry->methods && !core_method_matches(s, space, entry)) {
        return 0;
    }

    if (!core_host_matches(s, space, entry)) {
        return 0;
    }

    if (entry->snis && !core_sni_matches(s, space, entry)) {
        return 0;
    }

    if (!core_path_matches(s, space, entry)) {
        return 0;
    }

    route.space = *space;
    route.record = sluice_core_at(space, entry->route);

    if (s->view->delta.base && !sluice_core_is_alive(s->view, &route)) {
        return 0;
    }

    gave_up = SLUICE_CORE_OK;
    reason = 0;
    end = 0;
    s->budget.route = route.record;

    if (entry->headers) {
        gave_up = core_headers_match(s, space, entry->headers, &reason);

        if (gave_up == SLUICE_CORE_NONE) {
            return 0;
        }
    }

    if (entry->regex) {
        rc = sluice_core_regex_match(s->regexes, &s->budget, space,
                                     entry->regex, &s->request->path, &end,
                                     &reason);

        if (rc == SLUICE_CORE_NONE) {
            return 0;
        }

        gave_up = (rc == SLUICE_CORE_OK) ? gave_up : rc;
    }

    s->gave_up = gave_up;
    s->reason = reason;
    s->end = end;
    s->best = entry;
    s->space = space;

    return 1;
}


/* The prefix, or the text that a regular expression begins with. */

static int
core_path_matches(const sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry)
{
    const sluice_core_text_t   *path;
    const sluice_core_chars_t  *prefix;

    if (!(entry->flags & SLUICE_CORE_HAS_PATH)) {
        return 1;
    }

    path = &s->request->path;
    prefix = sluice_core_chars(space, entry->path);

    return prefix->length <= path->length
           && (prefix->length == 0
               || memcmp(prefix->data, path->data, prefix->length) == 0);
}


static int
core_host_matches(const sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry)
{
    const char                 *data;
    const sluice_core_text_t   *host;
    const sluice_core_chars_t  *wanted;

    if (entry->host_kind == SLUICE_CORE_ANY) {
        return 1;
    }

    host = &s->request->host;
    wanted = sluice_core_chars(space, entry->host);

    if (host->data == NULL || wanted->length > host->length
        || (wanted->length == host->length)
           != (entry->host_kind == SLUICE_CORE_EXACT))
    {
        return 0;
    }

    data = host->data;

    if (entry->host_kind == SLUICE_CORE_TAIL) {
        data += host->length - wanted->length;
    }

    return memcmp(wanted->data, data, wanted->length) == 0;
}


static int
core_method_matches(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry)
{
    uint32_t                     i;
    const sluice_core_text_t    *method;
    const sluice_core_list_t    *list;
    const sluice_core_chars_t   *chars;
    const sluice_core_record_t  *route;

    if (s->method) {
        return (entry->methods & s->method) != 0;
    }

    if (!(entry->methods & SLUICE_CORE_OTHER_METHOD)) {
        return 0;
    }

    method = &s->request->method;
    route = sluice_core_at(space, entry->route);
    list = sluice_core_refs(space, route->fields[SLUICE_CORE_ROUTE_METHODS]);

    for (i = 0; i < list->count; i++) {
        chars = sluice_core_chars(space, list->items[i]);

        if (sluice_core_search_ends(s, 1)) {
            break;
        }

        if (chars->length == method->length && method->data
            && memcmp(chars->data, method->data, method->length) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* A request without TLS has no name that could differ: as in Kong. */

static int
core_sni_matches(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry)
{
    uint32_t                   i;
    const sluice_core_list_t  *list;

    if (!s->request->is_tls) {
        return 1;
    }

    list = sluice_core_refs(space, entry->snis);

    for (i = 0; i < list->count; i++) {

        if (sluice_core_search_ends(s, 1)) {
            break;
        }

        if (core_sni_is(sluice_core_chars(space, list->items[i]),
                        &s->request->sni))
        {
            return 1;
        }
    }

    return 0;
}


/* "a.x", "*.x", "x.*", "*" */

static int
core_sni_is(const sluice_core_chars_t *wanted, const sluice_core_text_t *name)
{
    uint32_t  n;

    n = wanted->length;

    if (n == 0 || name->length == 0) {
        return 0;
    }

    if (wanted->data[0] == '*') {
        return n - 1 < name->length
               && memcmp(wanted->data + 1, name->data + name->length - (n - 1),
                         n - 1) == 0;
    }

    if (wanted->data[n - 1] == '*') {
        return n - 1 < name->length
               && memcmp(wanted->data, name->data, n - 1) == 0;
    }

    return n == name->length && memcmp(wanted->data, name->data, n) == 0;
}


/*
 * SLUICE_CORE_OK: all conditions are met, _NONE: one is not.  Else a pattern
 * that gave up is all that keeps it from being known.
 */

static int
core_headers_match(sluice_core_search_t *s,
    const sluice_core_space_t *space, uint32_t ref, int *reason)
{
    int                              rc, all;
    uint32_t                         i;
    const sluice_core_conditions_t  *conditions;

    conditions = sluice_core_at(space, ref);
    all = SLUICE_CORE_OK;

    for (i = 0; i < conditions->count; i++) {
        rc = core_header_matches(s, space, &conditions->conditions[i], reason);

        if (rc == SLUICE_CORE_NONE) {
            return rc;
        }

        all = (rc == SLUICE_CORE_OK) ? all : rc;
    }

    return all;
}


/* One of the lines of a header has to be one of the values. */

static int
core_header_matches(sluice_core_search_t *s, const sluice_core_space_t *space,
    const sluice_core_condition_t *wanted, int *reason)
{
    int                         rc, any;
    uint32_t                    i, j, at, end;
    sluice_core_text_t          value;
    const sluice_core_list_t   *patterns;
    const sluice_core_chars_t  *name;

    if (core_header_is(s, space, wanted)) {
        return SLUICE_CORE_OK;
    }

    name = sluice_core_chars(space, wanted->name);
    patterns = sluice_core_refs(space, wanted->patterns);
    any = SLUICE_CORE_NONE;

    for (i = 0, at = 0; patterns->count && i < SLUICE_CORE_LINES_MAX
                        && core_line(s, name, i, &at, &value); i++)
    {
        for (j = 0; j < patterns->count; j++) {
            rc = sluice_core_regex_match(s->regexes, &s->budget, space,
                                         patterns->items[j], &value, &end,
                                         reason);

            if (rc == SLUICE_CORE_OK) {
                return rc;
            }

            any = (rc == SLUICE_CORE_NONE) ? any : rc;
        }
    }

    return any;
}


/* Of those that are no patterns. */

static int
core_header_is(sluice_core_search_t *s, const sluice_core_space_t *space,
    const sluice_core_condition_t *wanted)
{
    uint32_t                    i, j, at;
    sluice_core_text_t          value;
    const sluice_core_list_t   *values;
    const sluice_core_chars_t  *name;

    name = sluice_core_chars(space, wanted->name);
    values = sluice_core_refs(space, wanted->values);

    for (i = 0, at = 0; values->count && i < SLUICE_CORE_LINES_MAX
                        && core_line(s, name, i, &at, &value); i++)
    {
        if (sluice_core_search_ends(s, values->count)) {
            return 0;
        }

        for (j = 0; j < values->count && !s->is_over; j++) {

            if (core_equal_lower(s,
                                 sluice_core_chars(space, values->items[j]),
                                 &value))
            {
                return 1;
            }
        }
    }

    return 0;
}


/* The index-th line of a header; at: where in headers to go on. */

static int
core_line(sluice_core_search_t *s, const sluice_core_chars_t *name,
    uint32_t index, uint32_t *at, sluice_core_text_t *value)
{
    const sluice_core_text_t     *line;
    const sluice_core_request_t  *request;

    request = s->request;

    if (request->header) {

        if (!core_is_last_name(s, name)
            && sluice_core_search_ends(s, CORE_HEADER_UNITS))
        {
            return 0;
        }

        s->name = name;

        return request->header(request->data, name->data, name->length, index,
                               value);
    }

    while (*at < request->headers_count) {
        line = &request->headers[2 * (*at)++];

        if (sluice_core_search_ends(s, 1)) {
            return 0;
        }

        if (line->length == name->length
            && memcmp(line->data, name->data, name->length) == 0)
        {
            *value = line[1];
            return 1;
        }
    }

    return 0;
}


/* Whether it was this header that was asked for last: who has it, keeps it. */

static int
core_is_last_name(const sluice_core_search_t *s,
    const sluice_core_chars_t *name)
{
    return s->name && s->name->length == name->length
           && memcmp(s->name->data, name->data, name->length) == 0;
}


static int
core_equal_lower(sluice_core_search_t *s, const sluice_core_chars_t *lower,
    const sluice_core_text_t *text)
{
    uint32_t  i;

    if (lower->length != text->length
        || sluice_core_search_ends(s, text->length / SLUICE_CORE_UNIT_BYTES))
    {
        return 0;
    }

    for (i = 0; i < text->length; i++) {

        if (lower->data[i] != sluice_core_lower(text->data[i])) {
            return 0;
        }
    }

    return 1;
}
