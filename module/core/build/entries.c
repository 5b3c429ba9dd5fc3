
/*
 * From a route to its entries, one for each pair of a host and a path, with
 * their place in the precedence.  docs/router.md has the rules.
 */


#include "layout.h"
#include "hash.h"

#include <stdlib.h>


#define core_is_digit(c)  ((c) >= '0' && (c) <= '9')


typedef struct {
    uint32_t  text;
    uint16_t  port;
    uint8_t   has_port;
    uint8_t   kind;
} core_host_t;


static int core_parse_host(sluice_core_arena_t *arena, uint32_t ref,
    core_host_t *host);
static int core_split_port(const char *name, uint32_t *length,
    core_host_t *host);
static int core_put_host(sluice_core_arena_t *arena, uint32_t ref,
    uint32_t skip, uint32_t length, int brackets, core_host_t *host);
static int core_parse_path(sluice_core_arena_t *arena,
    const sluice_core_record_t *route, uint32_t ref,
    sluice_core_entry_t *entry, uint64_t *place);
static const sluice_core_list_t *core_list(const sluice_core_space_t *space,
    uint32_t ref);
static void core_set_host(sluice_core_entry_t *entry,
    const core_host_t *host);
static uint32_t core_needs(const sluice_core_entry_t *entry);
static uint32_t core_method_bits(const sluice_core_space_t *space,
    uint32_t ref);
static uint64_t core_route_score(const sluice_core_space_t *space,
    const sluice_core_record_t *route, const core_host_t *hosts,
    uint32_t count);


/*
 * Hands each entry to emit, which may keep it by value.  Texts that are not in
 * the route's own lists go into the arena.
 */

int
sluice_core_entries(sluice_core_arena_t *arena, uint32_t route,
    uint32_t *needs, sluice_core_entry_pt emit, void *data)
{
    int                          rc;
    uint32_t                     i, j, paths_count, hosts_count;
    uint64_t                     score, place;
    core_host_t                 *hosts;
    sluice_core_space_t          space;
    sluice_core_entry_t          entry;
    const sluice_core_list_t    *list, *paths;
    const sluice_core_record_t  *record;

    space.base = arena->base;
    space.size = arena->size;
    record = sluice_core_at(&space, route);

    list = core_list(&space, record->fields[SLUICE_CORE_ROUTE_HOSTS]);
    paths = core_list(&space, record->fields[SLUICE_CORE_ROUTE_PATHS]);
    hosts_count = list ? list->count : 1;
    paths_count = paths ? paths->count : 1;

    hosts = calloc(hosts_count, sizeof(core_host_t));
    if (hosts == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = SLUICE_CORE_OK;

    for (i = 0; list && i < hosts_count && rc == SLUICE_CORE_OK; i++) {
        rc = core_parse_host(arena, list->items[i], &hosts[i]);
    }

    score = core_route_score(&space, record, hosts, list ? hosts_count : 0);

    for (i = 0; i < paths_count && rc == SLUICE_CORE_OK; i++) {
        memset(&entry, 0, sizeof(entry));
        entry.flags = paths ? SLUICE_CORE_HAS_PATH : 0;
        place = 0;

        if (paths) {
            rc = core_parse_path(arena, record, paths->items[i], &entry,
                                 &place);
        }

        entry.route = route;
        entry.slot = record->slot;
        entry.headers = record->fields[SLUICE_CORE_ROUTE_HEADERS];
        entry.snis = record->fields[SLUICE_CORE_ROUTE_SNIS];
        entry.methods = core_method_bits(&space,
                                   record->fields[SLUICE_CORE_ROUTE_METHODS]);
        entry.order = (uint16_t) i;

        for (j = 0; j < hosts_count && rc == SLUICE_CORE_OK; j++) {
            core_set_host(&entry, &hosts[j]);
            entry.score = score + (place << SLUICE_CORE_PATH_BIT)
                          + hosts[j].has_port;
            *needs |= core_needs(&entry);

            rc = emit(data, &entry);
        }
    }

    free(hosts);

    return rc;
}


static const sluice_core_list_t *
core_list(const sluice_core_space_t *space, uint32_t ref)
{
    return ref ? sluice_core_refs(space, ref) : NULL;
}


static void
core_set_host(sluice_core_entry_t *entry, const core_host_t *host)
{
    entry->host = host->text;
    entry->host_kind = host->kind;
    entry->port = host->port;
    entry->flags &= ~SLUICE_CORE_HAS_PORT;
    entry->flags |= host->has_port ? SLUICE_CORE_HAS_PORT : 0;
}


/* What a request has to say, so that an entry can be compared with it. */

static uint32_t
core_needs(const sluice_core_entry_t *entry)
{
    return (entry->host_kind ? SLUICE_CORE_NEEDS_HOST : 0)
           | ((entry->flags & SLUICE_CORE_HAS_PORT) ? SLUICE_CORE_NEEDS_PORT
                                                    : 0)
           | (entry->methods ? SLUICE_CORE_NEEDS_METHOD : 0)
           | (entry->headers ? SLUICE_CORE_NEEDS_HEADERS : 0)
           | (entry->snis ? SLUICE_CORE_NEEDS_SNI : 0);
}


/*
 * Lower case, the port off, brackets around IPv6, the star off: "A.b:80",
 * "[::1]:80", "::1", "*.x", "x.*".
 */

static int
core_parse_host(sluice_core_arena_t *arena, uint32_t ref, core_host_t *host)
{
    int                         depth;
    uint32_t                    i, length, end;
    const char                 *name;
    const sluice_core_chars_t  *chars;

    chars = (const sluice_core_chars_t *) (arena->base + (uint64_t) ref * 8);
    name = chars->data;
    length = chars->length;

    if (length > SLUICE_CORE_HOST_MAX) {
        return SLUICE_CORE_LARGE;
    }

    if (length && name[0] == '[') {

        for (i = 0, depth = 0, end = 0; i < length && end == 0; i++) {
            depth += (name[i] == '[') - (name[i] == ']');
            end = (depth == 0) ? i + 1 : 0;
        }

        if (end) {
            i = length - end;

            if (i && core_split_port(name + end, &i, host) == SLUICE_CORE_OK
                && i != 0)
            {
                host->has_port = 0;
                host->port = 0;
            }

            return core_put_host(arena, ref, 0, end, 0, host);
        }
    }

    if (core_split_port(name, &length, host) != SLUICE_CORE_OK
        && memchr(name, ':', length) != NULL)
    {
        return core_put_host(arena, ref, 0, length, 1, host);
    }

    host->kind = SLUICE_CORE_EXACT;

    if (length && name[0] == '*') {
        host->kind = SLUICE_CORE_TAIL;
        return core_put_host(arena, ref, 1, length - 1, 0, host);
    }

    if (length && name[length - 1] == '*') {
        host->kind = SLUICE_CORE_HEAD;
        length--;
    }

    return core_put_host(arena, ref, 0, length, 0, host);
}


/* Takes ":" and digits off the end, if that is the only colon. */

static int
core_split_port(const char *name, uint32_t *length, core_host_t *host)
{
    uint32_t     i, port;
    const char  *colon;

    colon = memchr(name, ':', *length);

    if (colon == NULL || colon == name + *length - 1) {
        return SLUICE_CORE_NONE;
    }

    port = 0;

    for (i = (uint32_t) (colon - name) + 1; i < *length; i++) {

        if (!core_is_digit(name[i])) {
            return SLUICE_CORE_NONE;
        }

        port = port * 10 + (uint32_t) (name[i] - '0');

        if (port > 65535) {
            return SLUICE_CORE_NONE;
        }
    }

    *length = (uint32_t) (colon - name);
    host->has_port = 1;
    host->port = (uint16_t) port;

    return SLUICE_CORE_OK;
}


/* A part of a text; the text itself where that is the same. */

static int
core_put_host(sluice_core_arena_t *arena, uint32_t ref, uint32_t skip,
    uint32_t length, int brackets, core_host_t *host)
{
    int                         rc;
    char                        name[SLUICE_CORE_HOST_MAX + 2];
    uint32_t                    i, n;
    const sluice_core_chars_t  *chars;

    chars = (const sluice_core_chars_t *) (arena->base + (uint64_t) ref * 8);
    n = 0;

    if (brackets) {
        name[n++] = '[';
    }

    for (i = 0; i < length; i++) {
        name[n++] = sluice_core_lower(chars->data[skip + i]);
    }

    if (brackets) {
        name[n++] = ']';
    }

    if (host->kind == SLUICE_CORE_ANY) {
        host->kind = SLUICE_CORE_EXACT;
    }

    if (n > SLUICE_CORE_HOST_MAX) {
        return SLUICE_CORE_LARGE;
    }

    if (n == chars->length && memcmp(name, chars->data, n) == 0) {
        host->text = ref;
        return SLUICE_CORE_OK;
    }

    rc = sluice_core_put_text(arena, name, n, &host->text);

    return rc;
}


static int
core_parse_path(sluice_core_arena_t *arena, const sluice_core_record_t *route,
    uint32_t ref, sluice_core_entry_t *entry, uint64_t *place)
{
    int                         rc;
    char                       *head;
    int64_t                     priority;
    uint32_t                    n;
    sluice_core_regex_t        *regex;
    const sluice_core_chars_t  *chars;

    chars = (const sluice_core_chars_t *) (arena->base + (uint64_t) ref * 8);

    if (chars->length == 0 || chars->data[0] != '~') {
        n = chars->length;
        entry->path = ref;
        entry->key_length = (uint8_t) (n < SLUICE_CORE_KEY_MAX
                                       ? n : SLUICE_CORE_KEY_MAX);
        *place = n < SLUICE_CORE_LENGTH_MAX ? n : SLUICE_CORE_LENGTH_MAX;

        return SLUICE_CORE_OK;
    }

    head = malloc(chars->length);
    if (head == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    n = sluice_core_literal_head(chars->data + 1, chars->length - 1, head);
    rc = sluice_core_put_text(arena, head, n, &entry->path);
    free(head);

    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    entry->key_length = (uint8_t) (n < SLUICE_CORE_KEY_MAX
                                   ? n : SLUICE_CORE_KEY_MAX);

    regex = sluice_core_take(arena, sizeof(sluice_core_regex_t), 8,
                             &entry->regex);
    if (regex == NULL) {
        return SLUICE_CORE_FULL;
    }

    regex->text = ref;
    regex->skip = 1;
    regex->is_path = 1;

    priority = (int32_t) route->fields[SLUICE_CORE_ROUTE_PRIORITY];

    if (priority < -SLUICE_CORE_PRIORITY_MAX) {
        priority = -SLUICE_CORE_PRIORITY_MAX;
    }

    *place = SLUICE_CORE_REGEX_BASE
             + (uint64_t) (SLUICE_CORE_PRIORITY_MAX + priority);

    return SLUICE_CORE_OK;
}


static uint32_t
core_method_bits(const sluice_core_space_t *space, uint32_t ref)
{
    uint32_t                    i, bit, bits;
    const sluice_core_list_t   *list;
    const sluice_core_chars_t  *chars;

    if (ref == 0) {
        return 0;
    }

    list = sluice_core_refs(space, ref);

    for (i = 0, bits = 0; i < list->count; i++) {
        chars = sluice_core_chars(space, list->items[i]);

        if (sluice_core_method_bit(chars->data, chars->length, &bit)
            != SLUICE_CORE_OK)
        {
            bit = SLUICE_CORE_OTHER_METHOD;
        }

        bits |= bit;
    }

    return bits;
}


/* The part of the precedence that all entries of a route share. */

static uint64_t
core_route_score(const sluice_core_space_t *space,
    const sluice_core_record_t *route, const core_host_t *hosts,
    uint32_t count)
{
    uint32_t                         i, headers;
    uint64_t                         weight, plain;
    const sluice_core_conditions_t  *conditions;

    weight = (route->fields[SLUICE_CORE_ROUTE_METHODS] != 0)
             + (route->fields[SLUICE_CORE_ROUTE_HEADERS] != 0)
             + (route->fields[SLUICE_CORE_ROUTE_PATHS] != 0)
             + (route->fields[SLUICE_CORE_ROUTE_SNIS] != 0)
             + (count != 0);

    for (i = 0, plain = (count != 0); i < count; i++) {

        if (hosts[i].kind != SLUICE_CORE_EXACT) {
            plain = 0;
        }
    }

    headers = 0;

    if (route->fields[SLUICE_CORE_ROUTE_HEADERS]) {
        conditions = sluice_core_at(space,
                                    route->fields[SLUICE_CORE_ROUTE_HEADERS]);
        headers = conditions->count < SLUICE_CORE_HEADERS_MAX
                  ? conditions->count : SLUICE_CORE_HEADERS_MAX;
    }

    return weight << SLUICE_CORE_WEIGHT_BIT | plain << SLUICE_CORE_PLAIN_BIT
           | (uint64_t) headers << SLUICE_CORE_HEADERS_BIT;
}
