
#include "compare.h"


static void
compare_records(const sluice_core_view_t *view,
    const sluice_core_view_t *other, int kind, uint32_t slot)
{
    int                          i;
    uint32_t                     n, number;
    sluice_core_text_t           ta, tb;
    sluice_core_found_t          a, b, same;
    const sluice_core_schema_t  *schema;

    a = sluice_core_by_slot(view, kind, slot);
    b = sluice_core_by_slot(other, kind, slot);

    test_check((a.record == NULL) == (b.record == NULL), "%d %u: %s there",
               kind, slot, a.record ? "still" : "not");

    if (a.record == NULL) {
        return;
    }

    test_check(memcmp(a.record, b.record,
                      offsetof(sluice_core_record_t, body)) == 0
               && a.record->slot == b.record->slot
               && a.record->generation == b.record->generation, "head");

    ta = sluice_core_body(&a);
    tb = sluice_core_body(&b);
    test_check(ta.length == tb.length
               && (ta.length == 0
                   || memcmp(ta.data, tb.data, ta.length) == 0), "body");

    schema = &sluice_core_schemas[kind];

    for (i = 0; i < SLUICE_CORE_FIELDS; i++) {

        if (schema->types[i] == SLUICE_CORE_TEXT
            || schema->types[i] == SLUICE_CORE_KEY)
        {
            ta = sluice_core_text(&a, i);
            tb = sluice_core_text(&b, i);
            test_check(ta.length == tb.length
                       && (ta.length == 0
                           || memcmp(ta.data, tb.data, ta.length) == 0),
                       "text");
        }

        for (n = 0; sluice_core_key(&b, i, n, &tb); n++) {
            same = sluice_core_by_key(view, kind, tb.data, tb.length);
            test_check(same.record && same.record->slot == slot, "key");
            test_check(sluice_core_key(&a, i, n, &ta)
                       && ta.length == tb.length
                       && memcmp(ta.data, tb.data, ta.length) == 0, "keys");
        }

        test_check(!sluice_core_key(&a, i, n, &ta), "more keys");
    }

    number = b.record->fields[SLUICE_CORE_CREDENTIAL_OF];
    same = sluice_core_of_kind(view, kind, number, b.record->id);
    test_check((same.record == a.record) == (kind == SLUICE_CORE_CREDENTIAL
                                             || kind == SLUICE_CORE_ENTITY),
               "of its kind");
    same = sluice_core_of_kind(view, kind, number + 1, b.record->id);
    test_check(same.record == NULL, "of another kind");

    same = sluice_core_by_id(view, kind, b.record->id);
    test_check((same.record != NULL) == (schema->by_id != 0), "id");
    test_check(same.record == NULL || same.record == a.record, "id's slot");
}


/* Keys and ids that an entity had before lead nowhere, or to their new one. */

static void
compare_keys(const sluice_core_view_t *view, const sluice_core_view_t *other)
{
    int                    kind, n;
    char                   key[64];
    uint32_t               slot;
    uint64_t               id[2];
    sluice_core_found_t    a, b;

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {

            for (n = 0; n < 3; n++) {
                memset(key, 'd', sizeof(key));
                (void) snprintf(key, 33, "%d-%u-%d", kind, slot, n);
                a = sluice_core_by_key(view, kind, key,
                                       kind == SLUICE_CORE_CREDENTIAL
                                       ? SLUICE_CORE_DIGEST
                                       : (uint32_t) strlen(key));
                b = sluice_core_by_key(other, kind, key,
                                       kind == SLUICE_CORE_CREDENTIAL
                                       ? SLUICE_CORE_DIGEST
                                       : (uint32_t) strlen(key));
                test_check((a.record == NULL) == (b.record == NULL), "key %s",
                           key);

                id[0] = (uint64_t) kind << 32 | slot;
                id[1] = (uint64_t) n;
                a = sluice_core_by_id(view, kind, (uint8_t *) id);
                b = sluice_core_by_id(other, kind, (uint8_t *) id);
                test_check((a.record == NULL) == (b.record == NULL), "id");
            }
        }
    }
}


static void
compare_children(const sluice_core_view_t *view,
    const sluice_core_view_t *other)
{
    int                  kind, child;
    uint32_t             slot, na, nb;
    const uint32_t      *a, *b;
    sluice_core_found_t  found;

    for (kind = 0; kind <= SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {

            for (child = 0; child < SLUICE_CORE_KINDS; child++) {
                na = sluice_core_children(view, child, kind, slot, &a);
                nb = sluice_core_children(other, child, kind, slot, &b);
                test_check(na == nb && (na == 0 || memcmp(a, b, 4 * na) == 0),
                           "children of %d %u: %u, not %u", kind, slot, na,
                           nb);

                found = sluice_core_by_slot(view, kind, slot);

                if (found.record) {
                    test_check(sluice_core_has_children(view, child, &found)
                               == (na > 0), "it says it has %u", na);
                }
            }
        }
    }
}


/* The list of slots has each that holds something, once. */

static void
compare_slots(const sluice_core_view_t *view)
{
    int        kind;
    uint32_t   slot, i, n, listed, held;
    uint32_t   slots[MAKE_SLOTS];

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {
        n = sluice_core_slots(view, kind, slots, MAKE_SLOTS);
        test_check(n <= MAKE_SLOTS, "%u slots of %d", n, kind);

        for (slot = 0; slot < MAKE_SLOTS; slot++) {
            held = sluice_core_by_slot(view, kind, slot).record != NULL;
            listed = 0;

            for (i = 0; i < n && i < MAKE_SLOTS; i++) {
                listed += slots[i] == slot;
            }

            test_check(listed == held, "slot %u of %d is listed %u times",
                       slot, kind, listed);
        }
    }
}


static void
compare_matches(const sluice_core_view_t *view,
    const sluice_core_view_t *other, uint64_t *state,
    sluice_core_regexes_t *regexes, int requests)
{
    int                   ra, rb;
    make_request_t        made;
    sluice_core_match_t   a, b;

    while (requests--) {
        make_request(state, &made);
        ra = sluice_core_match(view, &made.request, regexes, &a);
        rb = sluice_core_match(other, &made.request, regexes, &b);

        test_check(ra == rb && a.slot == b.slot && a.prefix == b.prefix
                   && a.generation == b.generation && a.service == b.service
                   && a.revision == b.revision
                   && a.pattern.length == b.pattern.length,
                   "%s %.*s: %s, slot %u; a full build: %s, slot %u",
                   made.request.host.data ? made.request.host.data : "-",
                   (int) made.request.path.length, made.path,
                   sluice_core_word(ra), a.slot, sluice_core_word(rb), b.slot);
    }
}


void
compare_views(const sluice_core_view_t *view, const sluice_core_view_t *other,
    uint64_t *state, sluice_core_regexes_t *regexes, int requests)
{
    int       kind;
    uint32_t  slot;

    for (kind = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (slot = 0; slot < MAKE_SLOTS; slot++) {
            compare_records(view, other, kind, slot);
        }
    }

    compare_keys(view, other);
    compare_children(view, other);
    compare_slots(view);
    compare_matches(view, other, state, regexes, requests);

    test_check((sluice_core_needs(other) & ~sluice_core_needs(view)) == 0,
               "needs");
}
