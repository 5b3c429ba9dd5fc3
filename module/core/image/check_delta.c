
/*
 * The checker of deltas: each chain leads backwards, what its nodes lead to
 * may be read, and all that was sealed is there, unchanged.
 */


#include "chain.h"
#include "check.h"
#include "delta.h"
#include "seal.h"

#include <stdlib.h>


typedef struct {
    sluice_core_check_t         common;
    const sluice_core_delta_t  *delta;
    uint64_t                   *records;   /* bits: checked, by reference */
    uint64_t                    end;       /* reference: sealed before it */
    uint64_t                    nodes;     /* that are */
    uint64_t                    dependents;
} core_check_t;


static int core_check_nodes(core_check_t *c);
static int core_check_chain(core_check_t *c, uint64_t bucket);
static int core_check_node(core_check_t *c, const sluice_core_node_t *node,
    int is_sealed);
static int core_check_entry(core_check_t *c, uint32_t ref);
static int core_check_record(core_check_t *c, uint32_t ref);
static int core_has_bit(const _Atomic uint64_t *bits, uint32_t n);


int
sluice_core_delta_check(const void *delta, uint64_t size)
{
    int                   rc;
    core_check_t          c;
    sluice_core_sealed_t  sealed;

    rc = sluice_core_delta_check_header(delta, size);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    c.delta = delta;
    c.common.space.base = delta;
    c.common.space.size = size;
    c.common.low = c.delta->arena;
    c.common.high = size;
    c.common.bodies_low = c.delta->arena;
    c.common.bodies_high = size;

    /* a record may be led to by its slot, its id and keys */

    c.common.budget = size;

    if (!sluice_core_sealed(delta, &sealed)
        || sluice_core_arena_sum(delta, sealed.used) != sealed.sum)
    {
        return SLUICE_CORE_BAD;
    }

    c.end = sealed.used / 8;
    c.nodes = 0;
    c.dependents = 0;

    c.records = calloc(size / 8 / 64 + 1, sizeof(uint64_t));
    if (c.records == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = core_check_nodes(&c) && c.nodes == sealed.nodes ? SLUICE_CORE_OK
                                                         : SLUICE_CORE_BAD;

    free(c.records);

    return rc;
}


int
sluice_core_delta_check_header(const void *delta, uint64_t size)
{
    uint64_t             heads;
    sluice_core_delta_t  head;

    if (size < SLUICE_CORE_DELTA_MIN || size > SLUICE_CORE_DELTA_MAX
        || size % SLUICE_CORE_LINE || (uintptr_t) delta % SLUICE_CORE_LINE)
    {
        return SLUICE_CORE_BAD;
    }

    memcpy(&head, delta, sizeof(head));

    if (head.magic != SLUICE_CORE_DELTA_MAGIC) {
        return SLUICE_CORE_BAD;
    }

    if (head.layout != SLUICE_CORE_LAYOUT) {
        return SLUICE_CORE_VERSION;
    }

    heads = sizeof(sluice_core_delta_t);

    if (head.size != size || head.buckets == 0
        || (head.buckets & (head.buckets - 1))
        || head.buckets > (size - heads) / 4
        || head.arena != sluice_core_align(heads + 4 * head.buckets,
                                           SLUICE_CORE_LINE)
        || head.arena > size)
    {
        return SLUICE_CORE_BAD;
    }

    return SLUICE_CORE_OK;
}


/* Each, and what they tell of the bits that look-ups ask first. */

static int
core_check_nodes(core_check_t *c)
{
    uint64_t              i;
    sluice_core_delta_t  *delta;

    for (i = 0; i < c->delta->buckets; i++) {

        if (!core_check_chain(c, i)) {
            return 0;
        }
    }

    delta = (sluice_core_delta_t *) (uintptr_t) c->delta;

    return atomic_load_explicit(&delta->dependents, memory_order_acquire)
           >= c->dependents;
}


static int
core_check_chain(core_check_t *c, uint64_t bucket)
{
    uint32_t                   ref;
    _Atomic uint32_t          *heads;
    const sluice_core_node_t  *node;

    heads = sluice_core_delta_heads(&c->common.space);
    ref = atomic_load_explicit(&heads[bucket], memory_order_acquire);

    while (ref) {

        if (!sluice_core_check_inside(&c->common, ref,
                                      sizeof(sluice_core_node_t)))
        {
            return 0;
        }

        node = sluice_core_at(&c->common.space, ref);

        if (node->next >= ref
            || (node->hash & (c->delta->buckets - 1)) != bucket
            || (node->to != SLUICE_CORE_TO_RECORD
                && !sluice_core_is_seen(c->delta, node->hash))
            || !core_check_node(c, node, ref < c->end))
        {
            return 0;
        }

        c->nodes += ref < c->end;
        ref = node->next;
    }

    return 1;
}


static int
core_check_node(core_check_t *c, const sluice_core_node_t *node,
    int is_sealed)
{
    const sluice_core_record_t  *record;

    switch (node->to) {

    case SLUICE_CORE_TO_RECORD:
    case SLUICE_CORE_TO_SLOT:

        if (!core_check_record(c, node->ref)) {
            return 0;
        }

        record = sluice_core_at(&c->common.space, node->ref);

        if (is_sealed && sluice_core_schemas[record->kind].has_dependents
            && node->revision > c->dependents)
        {
            c->dependents = node->revision;
        }

        return 1;

    case SLUICE_CORE_TO_ENTRY:
        return core_check_entry(c, node->ref);

    case SLUICE_CORE_TO_CHILDREN:
        return sluice_core_check_children(&c->common, node->ref);

    case SLUICE_CORE_TO_ROOM:
        return 1;

    default:
        return 0;
    }
}


/* And that look-ups know of its lengths. */

static int
core_check_entry(core_check_t *c, uint32_t ref)
{
    uint32_t                    needs, length;
    sluice_core_delta_t        *delta;
    const sluice_core_entry_t  *entry;

    if (!sluice_core_check_inside(&c->common, ref,
                                  sizeof(sluice_core_entry_t)))
    {
        return 0;
    }

    entry = sluice_core_at(&c->common.space, ref);
    delta = (sluice_core_delta_t *) (uintptr_t) c->delta;
    needs = (uint32_t) atomic_load_explicit(&delta->needs,
                                            memory_order_acquire);

    if (!core_check_record(c, entry->route)
        || !sluice_core_check_entry(&c->common, entry, needs)
        || !core_has_bit(delta->paths[entry->host_kind], entry->key_length))
    {
        return 0;
    }

    if (entry->host_kind == SLUICE_CORE_ANY) {
        return 1;
    }

    length = sluice_core_chars(&c->common.space, entry->host)->length;

    return core_has_bit(delta->hosts[entry->host_kind], length);
}


/* Once: many nodes may lead to it. */

static int
core_check_record(core_check_t *c, uint32_t ref)
{
    uint64_t  *word, bit;

    if (ref / 64 > c->common.space.size / 8 / 64) {
        return 0;
    }

    word = &c->records[ref / 64];
    bit = 1ull << ref % 64;

    if (*word & bit) {
        return 1;
    }

    if (!sluice_core_check_record(&c->common, ref)) {
        return 0;
    }

    *word |= bit;

    return 1;
}


static int
core_has_bit(const _Atomic uint64_t *bits, uint32_t n)
{
    return atomic_load_explicit((_Atomic uint64_t *) (uintptr_t) &bits[n / 64],
                                memory_order_acquire)
           >> n % 64 & 1;
}
