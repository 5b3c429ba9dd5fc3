
/*
 * Long on purpose: what one image is asked, and what is broken in it.
 *
 * Images: what goes in comes out, the same entities make the same bytes, and
 * what is wrong is refused.  Under ASan and UBSan, in memory that ends where
 * the image does.
 */


#include "make.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>


#define IMAGE_MOST  (SLUICE_CORE_KINDS * MAKE_SLOTS)


static uint64_t               state;
static make_t                 make;
static sluice_core_entity_t   list[IMAGE_MOST];
static sluice_core_entity_t   again[IMAGE_MOST];


/* Each field of each entity, by its slot, id and key. */

static void
check_fields(const sluice_core_view_t *view, const sluice_core_entity_t *want)
{
    int                         i;
    uint32_t                    j;
    sluice_core_text_t          text;
    sluice_core_found_t         found, same;
    const sluice_core_text_t   *texts;
    const sluice_core_value_t  *value;

    found = sluice_core_by_slot(view, want->kind, want->slot);
    test_check(found.record != NULL, "kind %d, slot %u", want->kind,
               want->slot);
    test_check(memcmp(found.record->id, want->id, 16) == 0
               && found.record->generation == want->generation
               && found.record->revision == want->revision
               && found.record->created_at == want->created_at
               && found.record->sequence == want->sequence, "head");

    text = sluice_core_body(&found);
    test_check(text.length == want->body_length
               && (text.data != NULL) == (want->body != NULL)
               && (text.length == 0
                   || memcmp(text.data, want->body, text.length) == 0),
               "body");

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {
        value = &want->fields[i];

        switch (sluice_core_schemas[want->kind].types[i]) {

        case SLUICE_CORE_NUMBER:
        case SLUICE_CORE_SLOT:
        case SLUICE_CORE_OWNER:
            test_check(sluice_core_number(&found, i) == value->number,
                       "number");
            break;

        case SLUICE_CORE_KEY:
            same = sluice_core_by_key(view, want->kind, value->data,
                                      value->count);
            test_check(value->data == NULL || same.record != NULL,
                       "no such key");

            /* fall through */

        case SLUICE_CORE_TEXT:
            text = sluice_core_text(&found, i);
            test_check((text.data == NULL) == (value->data == NULL)
                       && text.length == value->count
                       && (text.length == 0
                           || memcmp(text.data, value->data, text.length)
                              == 0), "text");
            break;

        case SLUICE_CORE_LIST:
        case SLUICE_CORE_KEYS:
            test_check(sluice_core_list(&found, i) == value->count, "list");
            texts = value->data;

            for (j = 0; j < value->count; j++) {
                text = sluice_core_list_item(&found, i, j);
                test_check(text.length == texts[j].length
                           && memcmp(text.data, texts[j].data, text.length)
                              == 0, "item");
            }

            break;
        }
    }

    same = sluice_core_by_id(view, want->kind, want->id);
    test_check((same.record == found.record)
               == (sluice_core_schemas[want->kind].by_id != 0), "by id");
}


static uint32_t
owner_of(const sluice_core_entity_t *entity, int *kind)
{
    int                          i;
    const sluice_core_schema_t  *schema;

    schema = &sluice_core_schemas[entity->kind];

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        if (schema->types[i] == SLUICE_CORE_OWNER
            && entity->fields[i].number != SLUICE_CORE_NOBODY)
        {
            *kind = schema->refers[i];
            return entity->fields[i].number;
        }
    }

    *kind = schema->owned ? SLUICE_CORE_KINDS : -1;

    return 0;
}


/* Of each owner exactly those that name it, ascending. */

static void
check_children(const sluice_core_view_t *view, size_t count)
{
    int                   kind, child, owner;
    size_t                i;
    uint32_t              slot, n, j, found, seen;
    const uint32_t       *slots;
    sluice_core_found_t   entity;

    for (kind = 0; kind <= SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {

            for (child = 0; child < SLUICE_CORE_KINDS; child++) {
                n = sluice_core_children(view, child, kind, slot, &slots);

                for (i = 0, found = 0; i < count; i++) {

                    if (list[i].kind != child
                        || owner_of(&list[i], &owner) != slot
                        || owner != kind)
                    {
                        continue;
                    }

                    found++;

                    for (j = 0, seen = 0; j < n; j++) {
                        seen += (slots[j] == list[i].slot);
                    }

                    test_check(seen == 1, "child %u of %d %u", list[i].slot,
                               kind, slot);
                }

                test_check(found == n, "%u children, not %u", n, found);

                entity = sluice_core_by_slot(view, kind, slot);

                if (entity.record) {
                    test_check(sluice_core_has_children(view, child, &entity)
                               == (n > 0), "it says it has %u", n);
                }

                for (j = 1; j < n; j++) {
                    test_check(slots[j - 1] < slots[j], "order");
                }
            }
        }
    }
}


static void
check_random(void)
{
    int                      kind, rc;
    size_t                   i, count;
    uint8_t                 *image, *other, *small;
    uint32_t                 slot;
    uint64_t                 size, other_size, less, used;
    sluice_core_view_t       view;
    sluice_core_found_t      found;
    sluice_core_scratch_t   *scratch;
    sluice_core_identity_t   identity;

    make_start(&make, &state);

    for (i = test_below(&state, 60); i > 0; i--) {
        kind = (int) test_below(&state, SLUICE_CORE_KINDS);
        make_entity(&make, kind, (uint32_t) test_below(&state, MAKE_SLOTS), i);
    }

    count = make_list(&make, list);
    image = make_image(list, count, 9, &size);

    memset(&view, 0, sizeof(view));
    view.base.base = image;
    view.base.size = size;

    for (i = 0; i < count; i++) {
        check_fields(&view, &list[i]);
    }

    check_children(&view, count);

    /* another order; what was read back */

    count = make_list(&make, again);
    other = make_image(again, count, 9, &other_size);
    test_check(size == other_size && memcmp(image, other, size) == 0,
               "another order, other bytes");
    free(other);

    scratch = NULL;

    for (kind = 0, count = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {
            found = sluice_core_by_slot(&view, kind, slot);
            test_check((found.record == NULL)
                       == make.entities[kind][slot].gone, "slot");

            if (found.record) {
                test_check(sluice_core_decode(&found, &again[count++],
                                              &scratch) == SLUICE_CORE_OK,
                           "decode");
            }
        }
    }

    other = make_image(again, count, 9, &other_size);
    test_check(size == other_size && memcmp(image, other, size) == 0,
               "built from what was built, other bytes");
    free(other);
    sluice_core_scratch_free(scratch);

    /* a buffer that is too small is not left */

    less = test_below(&state, size);
    small = make_memory(less);
    identity.revision = 9;
    rc = sluice_core_image_build(&identity, list, count, small, less, &used);
    test_check(rc == SLUICE_CORE_FULL, "build: %s", sluice_core_word(rc));
    free(small);

    free(image);
    make_end(&make);
}


static int
build_one(const sluice_core_entity_t *entities, size_t count)
{
    int                      rc;
    void                    *memory;
    uint64_t                 bound, used;
    sluice_core_identity_t   identity;

    memset(&identity, 0, sizeof(identity));
    bound = sluice_core_image_bound(entities, count);
    memory = make_memory(bound);
    rc = sluice_core_image_build(&identity, entities, count, memory, bound,
                                 &used);
    free(memory);

    return rc;
}


static void
check_refusals(void)
{
    static char           big[SLUICE_CORE_TEXT_MAX + 1];
    sluice_core_text_t    text;
    sluice_core_entity_t  entities[2];

    memset(entities, 0, sizeof(entities));
    memset(big, 'a', sizeof(big));
    entities[0].kind = SLUICE_CORE_ROUTE;
    entities[1].kind = SLUICE_CORE_ROUTE;
    entities[1].slot = 1;
    test_check(build_one(entities, 2) == SLUICE_CORE_OK, "two routes");
    test_check(build_one(entities, 0) == SLUICE_CORE_OK, "nothing");

    entities[1].slot = 0;
    test_check(build_one(entities, 2) == SLUICE_CORE_REPEAT, "one slot");

    entities[1].slot = SLUICE_CORE_SLOTS_MAX;
    test_check(build_one(entities, 2) == SLUICE_CORE_LARGE, "large slot");

    entities[1].slot = 1;
    entities[1].gone = 1;
    test_check(build_one(entities, 2) == SLUICE_CORE_BAD, "one is gone");

    entities[1].gone = 0;
    entities[1].kind = SLUICE_CORE_KINDS;
    test_check(build_one(entities, 2) == SLUICE_CORE_LARGE, "unknown kind");

    entities[1].kind = SLUICE_CORE_ROUTE;
    text.data = big;
    text.length = SLUICE_CORE_HOST_MAX + 1;
    entities[1].fields[SLUICE_CORE_ROUTE_HOSTS].data = &text;
    entities[1].fields[SLUICE_CORE_ROUTE_HOSTS].count = 1;
    test_check(build_one(entities, 2) == SLUICE_CORE_LARGE, "long host");

    text.length--;
    test_check(build_one(entities, 2) == SLUICE_CORE_OK, "host");

    text.length = sizeof(big);
    entities[1].fields[SLUICE_CORE_ROUTE_HOSTS].count = 0;
    entities[1].fields[SLUICE_CORE_ROUTE_PATHS].data = &text;
    entities[1].fields[SLUICE_CORE_ROUTE_PATHS].count = 1;
    test_check(build_one(entities, 2) == SLUICE_CORE_LARGE, "long path");
}


/* What is opened has to be ours, plain, private, whole, of this layout. */

static void
check_files(void)
{
    int                   fd, rc;
    char                  folder[] = "/tmp/sluice-core-XXXXXX";
    uint8_t              *image;
    uint32_t              uid;
    uint64_t              size;
    struct rlimit         limit, old;
    sluice_core_space_t   space;

    test_check(mkdtemp(folder) != NULL && chdir(folder) == 0, "folder");
    uid = (uint32_t) geteuid();
    image = make_image(NULL, 0, 3, &size);

    rc = sluice_core_file_write("image", image, size, 1);
    test_check(rc == SLUICE_CORE_OK, "write: %s", sluice_core_word(rc));

    rc = sluice_core_file_open("image", uid, SLUICE_CORE_CHECK, &space);
    test_check(rc == SLUICE_CORE_OK && space.size == size
               && memcmp(space.base, image, size) == 0, "open: %s",
               sluice_core_word(rc));
    sluice_core_file_close(&space);

#define refused(what, code)                                                   \
    rc = sluice_core_file_open("image", uid, SLUICE_CORE_HEADER_ONLY,         \
                               &space);                                       \
    test_check(rc == (code) && space.base == NULL, "%s: %s", what,            \
               sluice_core_word(rc))

    uid++;
    refused("another's", SLUICE_CORE_FOREIGN);
    uid--;

    test_check(chmod("image", 0640) == 0, "chmod");
    refused("the group reads it", SLUICE_CORE_FOREIGN);
    test_check(chmod("image", 0600) == 0, "chmod");

    test_check(truncate("image", (off_t) size - 8) == 0, "truncate");
    refused("cut", SLUICE_CORE_BAD);
    test_check(truncate("image", 100) == 0, "truncate");
    refused("cut short", SLUICE_CORE_BAD);

    test_check(rename("image", "other") == 0 && symlink("other", "image") == 0,
               "link");
    refused("a link", SLUICE_CORE_SYSTEM);
    test_check(errno == ELOOP, "errno %d", errno);

    test_check(unlink("image") == 0 && mkfifo("image", 0600) == 0, "fifo");
    refused("a fifo", SLUICE_CORE_FOREIGN);
    test_check(unlink("image") == 0, "unlink");
    refused("nothing", SLUICE_CORE_SYSTEM);

    ((sluice_core_image_t *) image)->layout++;
    rc = sluice_core_file_write("image", image, size, 0);
    test_check(rc == SLUICE_CORE_OK, "write");
    refused("another layout", SLUICE_CORE_VERSION);
    ((sluice_core_image_t *) image)->layout--;

    /* no room: the old one stays, and nothing else */

    rc = sluice_core_file_write("image", image, size, 0);
    test_check(rc == SLUICE_CORE_OK, "write");

    signal(SIGXFSZ, SIG_IGN);
    test_check(getrlimit(RLIMIT_FSIZE, &old) == 0, "limit");
    limit = old;
    limit.rlim_cur = size / 2;
    test_check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    rc = sluice_core_file_write("image", image, size, 0);
    test_check(rc == SLUICE_CORE_SYSTEM && errno == EFBIG, "no room: %s",
               sluice_core_word(rc));
    test_check(setrlimit(RLIMIT_FSIZE, &old) == 0, "limit");

    rc = sluice_core_file_open("image", uid, SLUICE_CORE_CHECK, &space);
    test_check(rc == SLUICE_CORE_OK, "the old one: %s", sluice_core_word(rc));
    sluice_core_file_close(&space);

    test_check(unlink("image") == 0 && unlink("other") == 0, "unlink");
    fd = open("/", O_RDONLY|O_DIRECTORY);
    test_check(rmdir(folder) == 0, "something was left behind");
    test_check(fchdir(fd) == 0, "chdir");
    close(fd);
    free(image);
}


/* A pattern that runs for ever is no "no match"; the cache is bounded. */

static void
check_patterns(void)
{
    int                     rc, i;
    char                    path[64], pattern[16];
    uint8_t                *image;
    uint64_t                size, compiled;
    sluice_core_text_t      text;
    sluice_core_view_t      view;
    sluice_core_match_t     match;
    sluice_core_entity_t    routes[2];
    sluice_core_request_t   request;
    sluice_core_regexes_t  *regexes;

    regexes = sluice_core_regexes_create(2048);
    memset(&view, 0, sizeof(view));
    memset(&request, 0, sizeof(request));
    memset(routes, 0, sizeof(routes));
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[63] = '!';
    request.path.data = path;
    request.path.length = sizeof(path);

    routes[0].kind = SLUICE_CORE_ROUTE;
    routes[0].fields[SLUICE_CORE_ROUTE_PATHS].data = &text;
    routes[0].fields[SLUICE_CORE_ROUTE_PATHS].count = 1;

    for (i = 0; i < 20; i++) {
        text.length = (uint32_t) snprintf(pattern, sizeof(pattern), "~/a{%d}$",
                                          i % 10);
        text.data = pattern;
        image = make_image(routes, 1, 1, &size);
        view.base.base = image;
        view.base.size = size;
        rc = sluice_core_match(&view, &request, regexes, &match);
        test_check(rc == SLUICE_CORE_NONE, "%s", sluice_core_word(rc));
        test_check(sluice_core_regexes_count(regexes, &compiled) <= 8,
                   "more than it may take");
        test_check(compiled == (uint64_t) i + 1, "%lu compiled", compiled);
        rc = sluice_core_match(&view, &request, regexes, &match);
        (void) sluice_core_regexes_count(regexes, &compiled);
        test_check(compiled == (uint64_t) i + 1, "compiled again");
        free(image);
    }

    text.data = "~/(a|aa)+$";
    text.length = 10;
    image = make_image(routes, 1, 1, &size);
    view.base.base = image;
    view.base.size = size;
    rc = sluice_core_match(&view, &request, regexes, &match);
    test_check(rc == SLUICE_CORE_LIMIT, "for ever: %s", sluice_core_word(rc));
    free(image);

    text.data = "~/(a";
    text.length = 4;
    image = make_image(routes, 1, 1, &size);
    view.base.base = image;
    view.base.size = size;
    rc = sluice_core_match(&view, &request, regexes, &match);
    test_check(rc == SLUICE_CORE_PATTERN, "broken: %s", sluice_core_word(rc));
    free(image);

    sluice_core_regexes_destroy(regexes);
}


/* What is wrong with an entry that stands beside its route. */

static void
check_beside(void)
{
    uint8_t                 *image;
    uint32_t                 ref;
    uint64_t                 i, size;
    sluice_core_item_t      *item;
    sluice_core_line_t      *lines;
    sluice_core_entry_t     *entry, good;
    sluice_core_image_t     *head;
    sluice_core_entity_t     route;

    memset(&route, 0, sizeof(route));
    route.kind = SLUICE_CORE_ROUTE;

    image = make_image(&route, 1, 1, &size);
    head = (sluice_core_image_t *) image;
    test_check(head->entries.count == 0, "it is not alone");

    lines = (sluice_core_line_t *) (image + head->lines[0].offset);
    item = &lines[0].items[0];

    for (i = 0; i < head->lines[0].count && item->ref == 0; i++) {
        item = &lines[i].items[0];
    }

    ref = item->ref;
    test_check(ref && (item->tag & SLUICE_CORE_TO_MASK)
                      == SLUICE_CORE_TO_ENTRY, "no entry");
    entry = (sluice_core_entry_t *) (image + 8ull * ref);
    good = *entry;

    for (i = 0; i < 5; i++) {

        switch (i) {

        case 0:
            entry->flags &= (uint8_t) ~SLUICE_CORE_LAST;
            break;

        case 1:
            entry->slot++;
            break;

        case 2:
            entry->route++;
            break;

        case 3:
            item->ref = (uint32_t) (head->arena_end / 8) - 1;
            break;

        case 4:
            item->tag |= SLUICE_CORE_TO_CHILDREN;
            break;
        }

        head->checksum = sluice_core_checksum(image, size);
        test_check(sluice_core_check(image, size) == SLUICE_CORE_BAD,
                   "%lu passes", i);

        *entry = good;
        item->ref = ref;
        item->tag &= ~SLUICE_CORE_TO_MASK;
    }

    head->checksum = sluice_core_checksum(image, size);
    test_check(sluice_core_check(image, size) == SLUICE_CORE_OK, "good");

    free(image);
}


int
main(void)
{
    uint64_t  i, n;

    state = test_seed("image");
    n = test_env("OPS", 3000);

    check_refusals();
    check_beside();
    check_patterns();
    check_files();

    for (i = 0; i < n; i++) {
        check_random();
    }

    return 0;
}
