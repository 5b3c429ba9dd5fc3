
/* Long on purpose: what makes entities, and what reads all of them. */

#include "make.h"

#include <stdlib.h>
#include <string.h>


#define make_count(list)  (sizeof(list) / sizeof((list)[0]))


static sluice_core_text_t make_text(const char *text);
static sluice_core_text_t make_one_of(make_t *make, const char *const *list,
    size_t count);
static void make_list_of(make_t *make, sluice_core_value_t *value,
    const char *const *list, size_t count, uint32_t most);
static void make_body(make_t *make, sluice_core_entity_t *entity);
static void make_route(make_t *make, sluice_core_entity_t *entity);
static sluice_core_text_t make_path(make_t *make);
static uint32_t make_slot(make_t *make, int may_be_none);
static void make_keys(make_t *make, sluice_core_entity_t *entity,
    const char *name);
static void make_set(sluice_core_value_t *value, sluice_core_text_t text);


static const char *const  hosts[] = {
    "a.x", "b.x", "A.y", "a.b.x", "a.x:1", "a.x:2", "b.x:1", "*.x", "*.b.x",
    "*.y", "*.x:1", "a.*", "a.b.*", "b.*:2", "[::1]", "::1", "[::1]:1", "*"
};

static const char *const  request_hosts[] = {
    "a.x", "b.x", "a.y", "a.b.x", "b.b.x", "c.y", "c.z", "a.b.z", ".x",
    "[::1]", ""
};

static const char *const  patterns[] = {
    "~/a", "~/a/b", "~/a|/b", "~/(a|b)/?", "~/[ab]+$", "~/a\\.b", "~/ab?",
    "~/.*b", "~", "~/(?<n>a+)b*", "~/a(?i)B"
};

static const char *const  methods[] = { "GET", "POST", "PUT", "get", "X-Y" };

static const char *const  addresses[] = { "127.0.0.1", "[::1]", "10.0.0.7" };

static const char *const  snis[] = { "a.x", "b.x", "*.x", "a.*", "*" };

static const char *const  names[] = { "X-A", "x_b", "X-c-d" };

static const char *const  values[] = {
    "1", "one", "ONE", "2", "~*^o", "~*\\D$", ""
};


void
make_start(make_t *make, uint64_t *state)
{
    int       kind;
    uint32_t  slot;

    memset(make, 0, sizeof(make_t));
    make->state = state;

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {
            make->entities[kind][slot].kind = (uint8_t) kind;
            make->entities[kind][slot].slot = slot;
            make->entities[kind][slot].gone = 1;
        }
    }
}


void
make_end(make_t *make)
{
    sluice_core_scratch_free(make->scratch);
    make->scratch = NULL;
}


/* Up to three keys that no other entity has, of lengths of their own. */

static void
make_keys(make_t *make, sluice_core_entity_t *entity, const char *name)
{
    uint32_t             i, n;
    sluice_core_text_t  *keys;
    sluice_core_value_t  *value;

    n = (uint32_t) test_below(make->state, 4);

    entity->fields[SLUICE_CORE_CREDENTIAL_OF].number = entity->slot % 2;

    if (n == 0) {
        return;
    }

    keys = sluice_core_scratch_take(&make->scratch,
                                    n * sizeof(sluice_core_text_t));
    test_check(keys != NULL, "no memory");

    for (i = 0; i < n; i++) {
        keys[i].data = name;
        keys[i].length = SLUICE_CORE_DIGEST + 1 + i;
    }

    value = &entity->fields[SLUICE_CORE_CREDENTIAL_KEYS];
    value->data = keys;
    value->count = n;
}


void
make_entity(make_t *make, int kind, uint32_t slot, uint64_t revision)
{
    char                   *name;
    uint64_t                id[2];
    sluice_core_entity_t   *entity;

    entity = &make->entities[kind][slot];
    memset(entity, 0, sizeof(sluice_core_entity_t));

    id[0] = (uint64_t) kind << 32 | slot;
    id[1] = test_below(make->state, 3);
    memcpy(entity->id, id, 16);

    entity->kind = (uint8_t) kind;
    entity->slot = slot;
    entity->generation = (uint32_t) test_below(make->state, 5);
    entity->revision = revision;
    entity->created_at = (int64_t) test_below(make->state, 3);
    entity->sequence = ++make->sequence;
    make_body(make, entity);

    name = sluice_core_scratch_take(&make->scratch, 64);
    test_check(name != NULL, "no memory");
    memset(name, 'd', 64);
    (void) snprintf(name, 33, "%d-%u-%llu", kind, slot,
                    (unsigned long long) test_below(make->state, 2));

    switch (kind) {

    case SLUICE_CORE_ROUTE:
        make_route(make, entity);
        break;

    case SLUICE_CORE_SERVICE:
        make_set(&entity->fields[SLUICE_CORE_SERVICE_NAME], make_text(name));
        make_set(&entity->fields[SLUICE_CORE_SERVICE_HOST],
                 make_text("service.x"));
        entity->fields[SLUICE_CORE_SERVICE_PORT].number = 80u << 16 | 5;
        break;

    case SLUICE_CORE_NAME:
        make_list_of(make, &entity->fields[SLUICE_CORE_NAME_ADDRESSES],
                     addresses, make_count(addresses), 3);

        /* fall through */

    case SLUICE_CORE_UPSTREAM:
    case SLUICE_CORE_CONSUMER:
    case SLUICE_CORE_GROUP:
    case SLUICE_CORE_CERTIFICATE:
    case SLUICE_CORE_CA_CERTIFICATE:
        make_set(&entity->fields[0], make_text(name));
        break;

    case SLUICE_CORE_SNI:
        entity->fields[SLUICE_CORE_SNI_CERTIFICATE].number =
            make_slot(make, 0);
        make_set(&entity->fields[SLUICE_CORE_SNI_NAME], make_text(name));
        break;

    case SLUICE_CORE_TARGET:
        entity->fields[SLUICE_CORE_TARGET_UPSTREAM].number =
            make_slot(make, 0);
        make_set(&entity->fields[SLUICE_CORE_TARGET_TARGET],
                 make_text("127.0.0.1:80"));
        break;

    case SLUICE_CORE_ENTITY:
        make_keys(make, entity, name);
        entity->fields[SLUICE_CORE_CREDENTIAL_CONSUMER].number =
            make_slot(make, 1);
        break;

    case SLUICE_CORE_CREDENTIAL:
        make_keys(make, entity, name);
        entity->fields[SLUICE_CORE_CREDENTIAL_CONSUMER].number =
            make_slot(make, 0);
        entity->fields[SLUICE_CORE_CREDENTIAL_DIGEST].data = name;
        entity->fields[SLUICE_CORE_CREDENTIAL_DIGEST].count =
            SLUICE_CORE_DIGEST;
        entity->fields[SLUICE_CORE_CREDENTIAL_EXPIRES].number =
            (uint32_t) test_below(make->state, 2);
        entity->fields[SLUICE_CORE_CREDENTIAL_PACKED].data = name;
        entity->fields[SLUICE_CORE_CREDENTIAL_PACKED].count =
            (uint32_t) test_below(make->state, 33);
        break;

    case SLUICE_CORE_LABEL:
        entity->fields[SLUICE_CORE_LABEL_CONSUMER].number =
            make_slot(make, 0);
        make_set(&entity->fields[SLUICE_CORE_LABEL_KIND], make_text("acls"));
        make_set(&entity->fields[SLUICE_CORE_LABEL_NAME],
                 make_text("admins"));
        break;

    case SLUICE_CORE_MEMBERSHIP:
        entity->fields[SLUICE_CORE_MEMBERSHIP_CONSUMER].number =
            make_slot(make, 0);
        entity->fields[SLUICE_CORE_MEMBERSHIP_GROUP].number =
            make_slot(make, 0);
        break;

    case SLUICE_CORE_PLUGIN:
        entity->fields[SLUICE_CORE_PLUGIN_CONSUMER].number =
            make_slot(make, 1);
        entity->fields[SLUICE_CORE_PLUGIN_GROUP].number = make_slot(make, 1);
        entity->fields[SLUICE_CORE_PLUGIN_ROUTE].number = make_slot(make, 1);
        entity->fields[SLUICE_CORE_PLUGIN_SERVICE].number =
            make_slot(make, 1);
        make_set(&entity->fields[SLUICE_CORE_PLUGIN_NAME],
                 make_text("key-auth"));
        entity->fields[SLUICE_CORE_PLUGIN_PACKED].data = name;
        entity->fields[SLUICE_CORE_PLUGIN_PACKED].count =
            (uint32_t) test_below(make->state, 65);
        make_list_of(make, &entity->fields[SLUICE_CORE_PLUGIN_PATTERNS],
                     patterns, make_count(patterns), 3);
        entity->fields[SLUICE_CORE_PLUGIN_UNITS].number =
            entity->fields[SLUICE_CORE_PLUGIN_PATTERNS].count * 4;
        break;
    }
}


/* None, or of any length and any bytes. */

static void
make_body(make_t *make, sluice_core_entity_t *entity)
{
    char      *body;
    uint32_t   i, n;

    n = (uint32_t) test_below(make->state, 40);

    if (n == 0) {
        return;
    }

    body = sluice_core_scratch_take(&make->scratch, n);
    test_check(body != NULL, "no memory");

    for (i = 0; i < n; i++) {
        body[i] = (char) test_random(make->state);
    }

    entity->body = body;
    entity->body_length = n;
}


static void
make_route(make_t *make, sluice_core_entity_t *entity)
{
    uint32_t               i, n;
    sluice_core_text_t    *paths;
    sluice_core_value_t   *fields, value;
    sluice_core_header_t  *headers;

    fields = entity->fields;
    fields[SLUICE_CORE_ROUTE_SERVICE].number = make_slot(make, 1);
    fields[SLUICE_CORE_ROUTE_PRIORITY].number =
        (uint32_t) test_below(make->state, 3) - 1;

    if (test_below(make->state, 2)) {
        make_list_of(make, &fields[SLUICE_CORE_ROUTE_HOSTS], hosts,
                     make_count(hosts), 3);
    }

    if (test_below(make->state, 3) == 0) {
        make_list_of(make, &fields[SLUICE_CORE_ROUTE_METHODS], methods,
                     make_count(methods), 2);
    }

    if (test_below(make->state, 6) == 0) {
        make_list_of(make, &fields[SLUICE_CORE_ROUTE_SNIS], snis,
                     make_count(snis), 2);
    }

    if (test_below(make->state, 4)) {
        n = 1 + (uint32_t) test_below(make->state, 3);
        paths = sluice_core_scratch_take(&make->scratch, n * sizeof(*paths));

        for (i = 0; i < n; i++) {
            paths[i] = make_path(make);
        }

        fields[SLUICE_CORE_ROUTE_PATHS].data = paths;
        fields[SLUICE_CORE_ROUTE_PATHS].count = n;
    }

    if (test_below(make->state, 4) == 0) {
        n = 1 + (uint32_t) test_below(make->state, 2);
        headers = sluice_core_scratch_take(&make->scratch,
                                           n * sizeof(*headers));

        for (i = 0; i < n; i++) {
            headers[i].name = make_one_of(make, names, make_count(names));
            make_list_of(make, &value, values, make_count(values), 3);
            headers[i].values = value.data;
            headers[i].count = value.count;
        }

        fields[SLUICE_CORE_ROUTE_HEADERS].data = headers;
        fields[SLUICE_CORE_ROUTE_HEADERS].count = n;
    }
}


/* Of one letter, so that nearly each is a prefix of another. */

static sluice_core_text_t
make_path(make_t *make)
{
    char                *path;
    uint32_t             n;
    sluice_core_text_t   text;

    if (test_below(make->state, 3) == 0) {
        return make_one_of(make, patterns, make_count(patterns));
    }

    n = (uint32_t) test_below(make->state,
                              test_below(make->state, 10) ? 6 : 300);

    path = sluice_core_scratch_take(&make->scratch, n + 2);
    memset(path, 'a', n + 1);
    path[0] = '/';

    if (n > 1 && test_below(make->state, 3) == 0) {
        path[1 + test_below(make->state, n)] = 'b';
    }

    text.data = path;
    text.length = n + 1;

    return text;
}


static uint32_t
make_slot(make_t *make, int may_be_none)
{
    if (may_be_none && test_below(make->state, 2)) {
        return SLUICE_CORE_NOBODY;
    }

    return (uint32_t) test_below(make->state, 4);
}


static sluice_core_text_t
make_text(const char *text)
{
    sluice_core_text_t  made;

    made.data = text;
    made.length = (uint32_t) strlen(text);

    return made;
}


static void
make_set(sluice_core_value_t *value, sluice_core_text_t text)
{
    value->data = text.data;
    value->count = text.length;
}


static sluice_core_text_t
make_one_of(make_t *make, const char *const *list, size_t count)
{
    return make_text(list[test_below(make->state, count)]);
}


static void
make_list_of(make_t *make, sluice_core_value_t *value,
    const char *const *list, size_t count, uint32_t most)
{
    uint32_t             i, n;
    sluice_core_text_t  *texts;

    n = 1 + (uint32_t) test_below(make->state, most);
    texts = sluice_core_scratch_take(&make->scratch, n * sizeof(*texts));
    test_check(texts != NULL, "no memory");

    for (i = 0; i < n; i++) {
        texts[i] = make_one_of(make, list, count);
    }

    value->data = texts;
    value->count = n;
}


size_t
make_list(make_t *make, sluice_core_entity_t *list)
{
    int                    kind;
    size_t                 n, other;
    uint32_t               slot;
    sluice_core_entity_t   entity;

    for (kind = 0, n = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {

            if (make->entities[kind][slot].gone) {
                continue;
            }

            other = test_below(make->state, n + 1);
            entity = make->entities[kind][slot];
            list[n++] = list[other];
            list[other] = entity;
        }
    }

    return n;
}


void
make_request(uint64_t *state, make_request_t *made)
{
    uint32_t                i, n;
    static const char *const  lower[] = { "x-a", "x-b", "x-c-d" };
    static const char *const  sent[] = { "1", "one", "One", "twO", "" };

    memset(made, 0, sizeof(make_request_t));

    made->request.method = make_text(methods[test_below(state,
                                                        make_count(methods))]);
    made->request.port = (int32_t) test_below(state, 3);

    if (test_below(state, 12)) {
        n = (uint32_t) test_below(state, make_count(request_hosts));
        made->request.host = make_text(request_hosts[n]);
    }

    if (test_below(state, 3)) {
        n = (uint32_t) test_below(state, make_count(request_hosts));
        made->request.is_tls = 1;
        made->request.sni = make_text(request_hosts[n]);
    }

    n = (uint32_t) test_below(state, test_below(state, 10) ? 7 : 390);
    memset(made->path, 'a', n + 1);
    made->path[0] = '/';

    if (n > 1 && test_below(state, 3) == 0) {
        made->path[1 + test_below(state, n)] = test_below(state, 2) ? 'b'
                                                                    : '/';
    }

    made->request.path.data = made->path;
    made->request.path.length = n + 1;

    n = (uint32_t) test_below(state, 5);

    for (i = 0; i < n; i++) {
        made->headers[2 * i] = make_text(lower[test_below(state, 3)]);
        made->headers[2 * i + 1] = make_text(sent[test_below(state, 5)]);
    }

    made->request.headers = made->headers;
    made->request.headers_count = n;
}


void *
make_memory(uint64_t size)
{
    void  *p;

    test_check(posix_memalign(&p, SLUICE_CORE_LINE, size ? size : 1) == 0,
               "no memory");

    return p;
}


uint8_t *
make_image(const sluice_core_entity_t *list, size_t count, uint64_t revision,
    uint64_t *size)
{
    int                     rc;
    uint8_t                *whole, *image;
    uint64_t                bound;
    sluice_core_identity_t  identity;

    memset(&identity, 7, sizeof(identity));
    identity.revision = revision;

    bound = sluice_core_image_bound(list, count);
    whole = make_memory(bound);

    rc = sluice_core_image_build(&identity, list, count, whole, bound, size);
    test_check(rc == SLUICE_CORE_OK, "build: %s", sluice_core_word(rc));

    image = make_memory(*size);
    memcpy(image, whole, *size);
    free(whole);

    rc = sluice_core_check(image, *size);
    test_check(rc == SLUICE_CORE_OK, "check: %s", sluice_core_word(rc));

    return image;
}


static uint64_t
make_read_entity(const sluice_core_view_t *view,
    const sluice_core_found_t *found)
{
    int                          i;
    uint64_t                     sum;
    uint32_t                     j, n;
    sluice_core_text_t           text;
    sluice_core_entity_t         entity;
    sluice_core_scratch_t       *scratch;
    const sluice_core_schema_t  *schema;

    scratch = NULL;
    sum = 0;
    schema = &sluice_core_schemas[found->record->kind];

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        if (schema->types[i] == SLUICE_CORE_TEXT
            || schema->types[i] == SLUICE_CORE_KEY)
        {
            text = sluice_core_text(found, i);

            for (j = 0; j < text.length; j++) {
                sum += (uint8_t) text.data[j];
            }

            sum += (sluice_core_by_key(view, found->record->kind,
                                       text.data ? text.data : "",
                                       text.length).record != NULL);
        }

        if (schema->types[i] == SLUICE_CORE_LIST
            || schema->types[i] == SLUICE_CORE_KEYS)
        {
            n = sluice_core_list(found, i);

            for (j = 0; j < n; j++) {
                sum += sluice_core_list_item(found, i, j).length;
            }
        }

        for (j = 0; sluice_core_key(found, i, j, &text); j++) {
            sum += (sluice_core_by_key(view, found->record->kind, text.data,
                                       text.length).record != NULL);
        }
    }

    test_check(sluice_core_decode(found, &entity, &scratch) == SLUICE_CORE_OK,
               "decode");

    for (j = 0; j < entity.body_length; j++) {
        sum += (uint8_t) entity.body[j];
    }

    sum += sluice_core_bound_entity(&entity);
    sluice_core_scratch_free(scratch);

    return sum + (sluice_core_by_id(view, found->record->kind,
                                    found->record->id).record != NULL);
}


uint64_t
make_read(const sluice_core_view_t *view, sluice_core_regexes_t *regexes,
    uint64_t *state, int requests)
{
    int                   kind, child;
    uint32_t              slot, n, i;
    uint64_t              sum;
    make_request_t        made;
    const uint32_t       *slots;
    sluice_core_match_t   match;
    sluice_core_found_t   found;

    sum = sluice_core_needs(view);

    for (kind = 0; kind <= SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {
            found = sluice_core_by_slot(view, kind, slot);

            if (found.record) {
                sum += make_read_entity(view, &found);
            }

            for (child = 0; child < SLUICE_CORE_KINDS; child++) {
                n = sluice_core_children(view, child, kind, slot, &slots);

                for (i = 0; i < n; i++) {
                    sum += slots[i];
                }
            }
        }
    }

    while (requests--) {
        make_request(state, &made);

        if (sluice_core_match(view, &made.request, regexes, &match)
            == SLUICE_CORE_OK)
        {
            sum += match.slot + (uint64_t) match.prefix;

            for (i = 0; i < match.pattern.length; i++) {
                sum += (uint8_t) match.pattern.data[i];
            }
        }
    }

    return sum;
}
