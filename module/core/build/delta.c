
/*
 * The writer of a delta; delta.h says how it works.
 */


#include "chain.h"
#include "hash.h"
#include "delta.h"
#include "seal.h"

#include <stdlib.h>


/* A change to a list of children. */

typedef struct {
    uint32_t  child;               /* kind */
    uint32_t  kind;
    uint32_t  slot;                /* of the owner */
    uint32_t  of;                  /* slot of the child */
    uint32_t  is_added;
} core_move_t;


typedef struct {
    sluice_core_writer_t      *writer;
    const sluice_core_view_t  *view;
    sluice_core_arena_t        arena;
    uint64_t                   revision;
    uint64_t                   needs;
    core_move_t               *moves;
    size_t                     moves_count;
} core_stage_t;


static int core_stage(core_stage_t *s, const sluice_core_entity_t *changes,
    size_t count);
static int core_stage_change(core_stage_t *s,
    const sluice_core_entity_t *change);
static int core_stage_keys(core_stage_t *s, uint32_t ref);
static int core_stage_entry(void *data, const sluice_core_entry_t *entry);
static int core_stage_children(core_stage_t *s);
static int core_stage_list(core_stage_t *s, const core_move_t *moves,
    size_t count);
static int core_stage_node(core_stage_t *s, uint64_t hash, uint32_t to,
    uint32_t ref);
static void core_note_moves(core_stage_t *s, uint32_t ref);
static void core_note_move(core_stage_t *s, const sluice_core_record_t *record,
    uint32_t is_added);
static int core_by_owner(const void *a, const void *b);
static void core_set_bit(_Atomic uint64_t *bits, uint32_t n);


#define core_delta(space)                                                     \
    ((sluice_core_delta_t *) (uintptr_t) (space)->base)

#define core_compare(a, b)  (((a) > (b)) - ((a) < (b)))


uint64_t
sluice_core_delta_room(const sluice_core_writer_t *writer)
{
    return writer->space.size - writer->tail;
}


void
sluice_core_delta_abandon(sluice_core_writer_t *writer)
{
    writer->tail = writer->linked;
    writer->dependents = 0;
    writer->first = 0;
    writer->last = 0;
}


/* In the order of their places, so that each leads to one before it. */

void
sluice_core_delta_link(sluice_core_writer_t *writer)
{
    uint32_t              ref, next;
    uint64_t              nodes;
    _Atomic uint32_t     *heads;
    sluice_core_node_t   *node;

    nodes = 0;
    heads = sluice_core_delta_heads(&writer->space);

    if (writer->dependents) {
        atomic_store_explicit(&core_delta(&writer->space)->dependents,
                              writer->dependents, memory_order_release);
    }

    for (ref = writer->first; ref; ref = next) {
        node = (sluice_core_node_t *) (uintptr_t)
               sluice_core_at(&writer->space, ref);
        next = node->next;

        node->next = atomic_load_explicit(&heads[node->bucket],
                                          memory_order_relaxed);
        atomic_store_explicit(&heads[node->bucket], ref, memory_order_release);
        nodes++;
    }

    sluice_core_seal(writer, nodes);

    atomic_store_explicit(&core_delta(&writer->space)->used, writer->tail,
                          memory_order_release);

    writer->linked = writer->tail;
    writer->dependents = 0;
    writer->first = 0;
    writer->last = 0;
}


int
sluice_core_delta_stage(sluice_core_writer_t *writer,
    const sluice_core_view_t *view, const sluice_core_entity_t *changes,
    size_t count, uint64_t revision)
{
    int           rc;
    core_stage_t  s;

    if (writer->first || revision <= view->revision
        || view->delta.base != writer->space.base)
    {
        return SLUICE_CORE_STALE;
    }

    if (sluice_core_has_repeats(changes, count, &rc)) {
        return rc;
    }

    memset(&s, 0, sizeof(s));
    s.writer = writer;
    s.view = view;
    s.revision = revision;
    s.arena.base = (uint8_t *) (uintptr_t) writer->space.base;
    s.arena.size = writer->space.size;
    s.arena.used = writer->tail;

    s.moves = malloc((2 * count + 1) * sizeof(core_move_t));
    if (s.moves == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = core_stage(&s, changes, count);
    free(s.moves);

    if (rc != SLUICE_CORE_OK) {
        sluice_core_delta_abandon(writer);
        return rc;
    }

    (void) atomic_fetch_or_explicit(&core_delta(&writer->space)->needs,
                                    s.needs, memory_order_release);
    writer->tail = s.arena.used;

    return SLUICE_CORE_OK;
}


static int
core_stage(core_stage_t *s, const sluice_core_entity_t *changes, size_t count)
{
    int     rc;
    size_t  i;

    for (i = 0; i < count; i++) {
        rc = core_stage_change(s, &changes[i]);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return core_stage_children(s);
}


static int
core_stage_change(core_stage_t *s, const sluice_core_entity_t *change)
{
    int        rc;
    uint32_t   ref, key[2], needs;

    rc = sluice_core_put_entity(&s->arena, change, &ref);

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_put_body(&s->arena, change, ref);
    }

    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    if (sluice_core_schemas[change->kind].has_dependents) {
        s->writer->dependents = s->revision;
    }

    key[0] = change->kind;
    key[1] = change->slot;

    rc = core_stage_node(s, sluice_core_hash(SLUICE_CORE_HASH_SLOT, key,
                                             sizeof(key)),
                         SLUICE_CORE_TO_SLOT, ref);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    core_note_moves(s, ref);

    if (change->gone) {
        return SLUICE_CORE_OK;
    }

    rc = core_stage_keys(s, ref);

    if (rc == SLUICE_CORE_OK && change->kind == SLUICE_CORE_ROUTE) {
        needs = 0;
        rc = sluice_core_entries(&s->arena, ref, &needs, core_stage_entry, s);
        s->needs |= needs;
    }

    return rc;
}


static int
core_stage_keys(core_stage_t *s, uint32_t ref)
{
    int                  i, rc;
    uint32_t             n;
    sluice_core_text_t   text;
    sluice_core_found_t  found;

    found.space = s->writer->space;
    found.record = sluice_core_at(&found.space, ref);
    rc = SLUICE_CORE_OK;

    if (sluice_core_schemas[found.record->kind].by_id) {
        rc = core_stage_node(s, sluice_core_hash(SLUICE_CORE_HASH_ID
                                                 + found.record->kind,
                                                 found.record->id, 16),
                             SLUICE_CORE_TO_RECORD, ref);
    }

    for (i = 0, n = 0; i < SLUICE_CORE_FIELDS; i++, n = 0) {

        while (rc == SLUICE_CORE_OK
               && sluice_core_key(&found, i, n++, &text))
        {
            rc = core_stage_node(s, sluice_core_hash(SLUICE_CORE_HASH_KEY
                                                     + found.record->kind,
                                                     text.data, text.length),
                                 SLUICE_CORE_TO_RECORD, ref);
        }
    }

    return rc;
}


/* Bits before nodes: what they make readers look at is not there yet. */

static int
core_stage_entry(void *data, const sluice_core_entry_t *entry)
{
    core_stage_t  *s = data;

    int                   rc;
    uint32_t              ref;
    uint64_t              host;
    sluice_core_delta_t  *delta;
    sluice_core_space_t  *space;
    sluice_core_entry_t  *copy;

    space = &s->writer->space;
    delta = core_delta(space);

    copy = sluice_core_take(&s->arena, sizeof(sluice_core_entry_t),
                            SLUICE_CORE_LINE, &ref);
    if (copy == NULL) {
        return SLUICE_CORE_FULL;
    }

    *copy = *entry;
    copy->flags |= SLUICE_CORE_LAST;

    core_set_bit(delta->paths[entry->host_kind], entry->key_length);
    host = sluice_core_hash_host(space, entry);

    rc = core_stage_node(s, sluice_core_hash_entry(space, entry, host),
                         SLUICE_CORE_TO_ENTRY, ref);

    if (rc != SLUICE_CORE_OK || entry->host_kind == SLUICE_CORE_ANY) {
        return rc;
    }

    core_set_bit(delta->hosts[entry->host_kind],
                 sluice_core_chars(space, entry->host)->length);

    return core_stage_node(s, host, SLUICE_CORE_TO_ROOM, ref);
}


/* Each list of children that the transaction changes, once. */

static int
core_stage_children(core_stage_t *s)
{
    int           rc;
    size_t        i, j;
    core_move_t  *moves;

    moves = s->moves;
    qsort(moves, s->moves_count, sizeof(core_move_t), core_by_owner);

    for (i = 0; i < s->moves_count; i = j) {

        for (j = i + 1; j < s->moves_count
                        && moves[j].child == moves[i].child
                        && moves[j].kind == moves[i].kind
                        && moves[j].slot == moves[i].slot; j++) { /* void */ }

        rc = core_stage_list(s, &moves[i], j - i);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


/* The list as it was, ascending, with those that come and without the gone. */

static int
core_stage_list(core_stage_t *s, const core_move_t *moves, size_t count)
{
    size_t                         i, j, old_count;
    uint32_t                       ref;
    sluice_core_space_t            space;
    sluice_core_children_t        *children;
    const sluice_core_children_t  *old;

    old = sluice_core_find_children(s->view, moves->child, moves->kind,
                                    moves->slot, &space);
    old_count = old ? old->count : 0;

    children = sluice_core_take(&s->arena,
                                offsetof(sluice_core_children_t, slots)
                                + 4 * (old_count + count), 8, &ref);
    if (children == NULL) {
        return SLUICE_CORE_FULL;
    }

    children->child = moves->child;
    children->kind = moves->kind;
    children->slot = moves->slot;

    for (i = 0, j = 0; i < old_count || j < count; /* void */ ) {

        if (j == count || (i < old_count && old->slots[i] < moves[j].of)) {
            children->slots[children->count++] = old->slots[i++];
            continue;
        }

        if (i < old_count && old->slots[i] == moves[j].of) {
            i++;
        }

        if (moves[j].is_added) {
            children->slots[children->count++] = moves[j].of;
        }

        j++;
    }

    return core_stage_node(s, sluice_core_hash_children(moves->child,
                                                        moves->kind,
                                                        moves->slot),
                           SLUICE_CORE_TO_CHILDREN, ref);
}


static int
core_stage_node(core_stage_t *s, uint64_t hash, uint32_t to, uint32_t ref)
{
    uint32_t               place;
    sluice_core_node_t    *node, *last;
    sluice_core_writer_t  *writer;

    writer = s->writer;

    node = sluice_core_take(&s->arena, sizeof(sluice_core_node_t), 32, &place);
    if (node == NULL) {
        return SLUICE_CORE_FULL;
    }

    node->hash = hash;
    node->revision = s->revision;
    node->ref = ref;
    node->to = to;
    node->bucket = (uint32_t) (hash
                               & (core_delta(&writer->space)->buckets - 1));

    if (to != SLUICE_CORE_TO_RECORD) {
        core_set_bit(core_delta(&writer->space)->seen,
                     sluice_core_seen_bit(hash));
    }

    if (writer->first) {
        last = (sluice_core_node_t *) (uintptr_t)
               sluice_core_at(&writer->space, writer->last);
        last->next = place;

    } else {
        writer->first = place;
    }

    writer->last = place;

    return SLUICE_CORE_OK;
}


/* From the owner that it had to the one that it has. */

static void
core_note_moves(core_stage_t *s, uint32_t ref)
{
    int                          owner, old_owner;
    sluice_core_found_t          old;
    const sluice_core_record_t  *record;

    record = sluice_core_at(&s->writer->space, ref);
    old = sluice_core_by_slot(s->view, record->kind, record->slot);

    owner = record->gone ? SLUICE_CORE_NO_OWNER : sluice_core_owner(record);
    old_owner = old.record ? sluice_core_owner(old.record)
                           : SLUICE_CORE_NO_OWNER;

    if (owner == old_owner
        && (owner < 0 || record->fields[owner] == old.record->fields[owner]))
    {
        return;
    }

    if (old_owner != SLUICE_CORE_NO_OWNER) {
        core_note_move(s, old.record, 0);
    }

    if (owner != SLUICE_CORE_NO_OWNER) {
        core_note_move(s, record, 1);
    }
}


static void
core_note_move(core_stage_t *s, const sluice_core_record_t *record,
    uint32_t is_added)
{
    int           owner;
    core_move_t  *move;

    owner = sluice_core_owner(record);
    move = &s->moves[s->moves_count++];

    move->child = record->kind;
    move->kind = owner < 0 ? SLUICE_CORE_KINDS
                           : sluice_core_schemas[record->kind].refers[owner];
    move->slot = owner < 0 ? 0 : record->fields[owner];
    move->of = record->slot;
    move->is_added = is_added;
}


static int
core_by_owner(const void *a, const void *b)
{
    int                 n;
    const core_move_t  *ma = a, *mb = b;

    n = core_compare(ma->child, mb->child);
    n = n ? n : core_compare(ma->kind, mb->kind);
    n = n ? n : core_compare(ma->slot, mb->slot);

    return n ? n : core_compare(ma->of, mb->of);
}


static void
core_set_bit(_Atomic uint64_t *bits, uint32_t n)
{
    (void) atomic_fetch_or_explicit(&bits[n / 64], 1ull << n % 64,
                                    memory_order_release);
}
