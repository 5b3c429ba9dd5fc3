
/*
 * The checker of deltas: each chain leads backwards, and what its nodes lead
 * to may be read.  Records come first, so that entries may name them.
 */


#include "chain.h"
#include "check.h"
#include "delta.h"

#include <stdlib.h>


typedef struct {
    sluice_core_check_t         common;
    const sluice_core_delta_t  *delta;
    uint64_t                   *records;   /* bits: checked, by reference */
} core_check_t;


static int core_check_chain(core_check_t *c, uint64_t bucket, int of_records);
static int core_check_node(core_check_t *c, const sluice_core_node_t *node,
    int of_records);


int
sluice_core_delta_check(const void *delta, uint64_t size)
{
    int           rc, pass;
    uint64_t      i;
    core_check_t  c;

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

    c.records = calloc(size / 8 / 64 + 1, sizeof(uint64_t));
    if (c.records == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (pass = 0; pass < 2 && rc == SLUICE_CORE_OK; pass++) {

        for (i = 0; i < c.delta->buckets && rc == SLUICE_CORE_OK; i++) {

            if (!core_check_chain(&c, i, pass == 0)) {
                rc = SLUICE_CORE_BAD;
            }
        }
    }

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
        || head.arena < heads + 4 * head.buckets || head.arena > size)
    {
        return SLUICE_CORE_BAD;
    }

    return SLUICE_CORE_OK;
}


static int
core_check_chain(core_check_t *c, uint64_t bucket, int of_records)
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
            || !core_check_node(c, node, of_records))
        {
            return 0;
        }

        ref = node->next;
    }

    return 1;
}


static int
core_check_node(core_check_t *c, const sluice_core_node_t *node,
    int of_records)
{
    uint32_t                     needs;
    sluice_core_delta_t         *delta;
    const sluice_core_entry_t   *entry;

    switch (node->to) {

    case SLUICE_CORE_TO_RECORD:
    case SLUICE_CORE_TO_SLOT:

        if (!of_records) {
            return 1;
        }

        if (!sluice_core_check_record(&c->common, node->ref)) {
            return 0;
        }

        c->records[node->ref / 64] |= 1ull << node->ref % 64;

        return 1;

    case SLUICE_CORE_TO_ENTRY:

        if (of_records) {
            return 1;
        }

        if (!sluice_core_check_inside(&c->common, node->ref,
                                      sizeof(sluice_core_entry_t)))
        {
            return 0;
        }

        entry = sluice_core_at(&c->common.space, node->ref);
        delta = (sluice_core_delta_t *) (uintptr_t) c->delta;
        needs = (uint32_t) atomic_load_explicit(&delta->needs,
                                                memory_order_acquire);

        return entry->route / 64 <= c->common.space.size / 8 / 64
               && (c->records[entry->route / 64] >> entry->route % 64 & 1)
               && sluice_core_check_entry(&c->common, entry, needs);

    case SLUICE_CORE_TO_CHILDREN:
        return sluice_core_check_children(&c->common, node->ref);

    case SLUICE_CORE_TO_ROOM:
        return 1;

    default:
        return 0;
    }
}
