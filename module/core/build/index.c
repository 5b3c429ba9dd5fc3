
/*
 * The builder's second half: entries in their order, the lengths in use, the
 * slots.
 */


#include "build.h"
#include "hash.h"

#include <stdlib.h>


typedef struct {
    uint64_t  best[SLUICE_CORE_KEY_MAX + 1];    /* score plus 1; 0: none */
} core_best_t;


static size_t core_count_shared(const sluice_core_build_t *b);
static size_t core_next_key(const sluice_core_build_t *b, size_t i);
static int core_put_entries(sluice_core_build_t *b, size_t first, size_t next,
    sluice_core_entry_t **entries, uint32_t *ref);
static int core_build_wildcards(sluice_core_build_t *b, core_best_t *best,
    int direct);
static int core_put_lengths(sluice_core_build_t *b, const core_best_t *best,
    uint32_t *ref);
static int core_by_key(const void *a, const void *b, void *data);
static int core_by_host(const void *a, const void *b, void *data);
static int core_by_best(const void *a, const void *b);
static int core_compare_chars(const sluice_core_build_t *b, uint32_t a_ref,
    uint32_t b_ref, uint32_t limit);


#define core_note_best(best, score)                                           \
    do {                                                                      \
        if ((score) + 1 > (best)) {                                           \
            (best) = (score) + 1;                                             \
        }                                                                     \
    } while (0)


int
sluice_core_index_entries(sluice_core_build_t *b, sluice_core_image_t *image)
{
    int                   rc;
    size_t                i, n, next, shared;
    uint32_t              ref;
    sluice_core_draft_t  *drafts;
    sluice_core_entry_t  *entries;

    n = b->drafts.count;
    drafts = b->drafts.data;

    if (n > UINT32_MAX / 2) {
        return SLUICE_CORE_LARGE;
    }

    b->order = calloc(n + 1, sizeof(sluice_core_place_t));
    if (b->order == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < n; i++) {
        b->order[i].hash = drafts[i].hash;
        b->order[i].index = (uint32_t) i;
    }

    qsort_r(b->order, n, sizeof(sluice_core_place_t), core_by_key, b);

    shared = core_count_shared(b);

    entries = sluice_core_take(&b->arena, shared * sizeof(sluice_core_entry_t),
                               SLUICE_CORE_LINE, &ref);
    if (entries == NULL) {
        return SLUICE_CORE_FULL;
    }

    image->entries.offset = (uint64_t) ref * 8;
    image->entries.count = shared;

    for (i = 0; i < n; i = next) {
        next = core_next_key(b, i);

        rc = core_put_entries(b, i, next, &entries, &ref);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return SLUICE_CORE_OK;
}


/* How many entries share their key with others. */

static size_t
core_count_shared(const sluice_core_build_t *b)
{
    size_t  i, next, shared;

    for (i = 0, shared = 0; i < b->drafts.count; i = next) {
        next = core_next_key(b, i);
        shared += (next - i > 1) ? next - i : 0;
    }

    return shared;
}


/* Where, in their order, the entries of another key begin. */

static size_t
core_next_key(const sluice_core_build_t *b, size_t i)
{
    size_t                      first;
    const sluice_core_draft_t  *drafts;

    drafts = b->drafts.data;
    first = i;

    do {
        i++;
    } while (i < b->drafts.count
             && sluice_core_same_key(&b->space,
                                     &drafts[b->order[first].index].entry,
                                     &drafts[b->order[i].index].entry));

    return i;
}


/* One alone goes beside its route, several go one behind the other. */

static int
core_put_entries(sluice_core_build_t *b, size_t first, size_t next,
    sluice_core_entry_t **entries, uint32_t *ref)
{
    size_t                      i;
    uint32_t                    to;
    sluice_core_entry_t        *entry;
    const sluice_core_draft_t  *drafts, *draft;

    drafts = b->drafts.data;
    draft = &drafts[b->order[first].index];
    to = *ref;
    entry = *entries;

    if (next - first == 1) {
        to = draft->beside;
        entry = (sluice_core_entry_t *) (b->arena.base + 8 * (uint64_t) to);
        *entry = draft->entry;

    } else {
        *entries += next - first;
        *ref += (uint32_t) ((next - first) * sizeof(sluice_core_entry_t) / 8);

        for (i = first; i < next; i++) {
            entry[i - first] = drafts[b->order[i].index].entry;
        }

        entry += next - first - 1;
    }

    entry->flags |= SLUICE_CORE_LAST;

    return sluice_core_note_item(b, draft->hash, to, SLUICE_CORE_TO_ENTRY);
}


/* Which lengths are in use where. */

int
sluice_core_index_rooms(sluice_core_build_t *b, sluice_core_image_t *image)
{
    int                   rc, kind, direct;
    size_t                i;
    uint32_t              ref, length, lengths;
    core_best_t          *paths, *hosts;
    sluice_core_draft_t  *drafts;
    sluice_core_entry_t  *entry;

    drafts = b->drafts.data;
    image->rooms.offset = sluice_core_align(b->arena.used, 8);

    paths = calloc(2 * SLUICE_CORE_HOSTS, sizeof(core_best_t));
    if (paths == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    hosts = paths + SLUICE_CORE_HOSTS;

    for (i = 0; i < b->drafts.count; i++) {
        entry = &drafts[i].entry;
        core_note_best(paths[entry->host_kind].best[entry->key_length],
                       entry->score);

        if (entry->host_kind != SLUICE_CORE_ANY) {
            length = sluice_core_chars(&b->space, entry->host)->length;
            core_note_best(hosts[entry->host_kind].best[length],
                           entry->score);
        }
    }

    for (i = 0, lengths = 0; i <= SLUICE_CORE_KEY_MAX; i++) {
        lengths += (paths[SLUICE_CORE_EXACT].best[i] != 0);
    }

    direct = (lengths <= SLUICE_CORE_DIRECT);
    rc = SLUICE_CORE_OK;

    for (kind = SLUICE_CORE_ANY;
         kind <= SLUICE_CORE_EXACT && rc == SLUICE_CORE_OK;
         kind++)
    {
        if (kind == SLUICE_CORE_ANY || direct) {
            rc = core_put_lengths(b, &paths[kind], &ref);
            image->paths[kind] = ref;
        }
    }

    if (rc == SLUICE_CORE_OK) {
        rc = core_put_lengths(b, &hosts[SLUICE_CORE_TAIL], &image->tails);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = core_put_lengths(b, &hosts[SLUICE_CORE_HEAD], &image->heads);
    }

    if (rc == SLUICE_CORE_OK) {
        rc = core_build_wildcards(b, paths, direct);
    }

    free(paths);

    image->rooms.count = b->arena.used - image->rooms.offset;

    return rc;
}


/* A room for each wildcard, and each exact host unless they are direct. */

static int
core_build_wildcards(sluice_core_build_t *b, core_best_t *best, int direct)
{
    int                   rc, same;
    size_t                i, n;
    uint32_t              ref;
    sluice_core_draft_t  *drafts, *draft, *before;

    drafts = b->drafts.data;

    for (i = 0, n = 0; i < b->drafts.count; i++) {

        if (drafts[i].entry.host_kind > SLUICE_CORE_EXACT
            || (drafts[i].entry.host_kind == SLUICE_CORE_EXACT && !direct))
        {
            b->order[n].hash = drafts[i].host;
            b->order[n++].index = (uint32_t) i;
        }
    }

    qsort_r(b->order, n, sizeof(sluice_core_place_t), core_by_host, b);

    for (i = 0, before = NULL; i <= n; i++) {
        draft = (i < n) ? &drafts[b->order[i].index] : NULL;

        same = before && draft && core_by_host(&b->order[i - 1], &b->order[i],
                                               b) == 0;

        if (before && !same) {
            rc = core_put_lengths(b, best, &ref);

            if (rc == SLUICE_CORE_OK) {
                rc = sluice_core_note_item(b, before->host, ref,
                                    SLUICE_CORE_TO_ROOM);
            }

            if (rc != SLUICE_CORE_OK) {
                return rc;
            }
        }

        if (draft == NULL) {
            break;
        }

        if (!same) {
            memset(best, 0, sizeof(core_best_t));
        }

        core_note_best(best->best[draft->entry.key_length],
                       draft->entry.score);
        before = draft;
    }

    return SLUICE_CORE_OK;
}


static int
core_put_lengths(sluice_core_build_t *b, const core_best_t *best,
    uint32_t *ref)
{
    uint32_t                i, n;
    sluice_core_lengths_t  *lengths;

    for (i = 0, n = 0; i <= SLUICE_CORE_KEY_MAX; i++) {
        n += (best->best[i] != 0);
    }

    lengths = sluice_core_take(&b->arena,
                               offsetof(sluice_core_lengths_t, lengths)
                               + n * sizeof(sluice_core_length_t), 8, ref);
    if (lengths == NULL) {
        return SLUICE_CORE_FULL;
    }

    for (i = 0; i <= SLUICE_CORE_KEY_MAX; i++) {

        if (best->best[i]) {
            lengths->lengths[lengths->count].length = i;
            lengths->lengths[lengths->count++].best = best->best[i] - 1;
        }
    }

    qsort(lengths->lengths, n, sizeof(sluice_core_length_t), core_by_best);

    return SLUICE_CORE_OK;
}


int
sluice_core_index_slots(sluice_core_build_t *b, sluice_core_image_t *image,
    const sluice_core_entity_t **entities, size_t count, const uint32_t *refs)
{
    int       kind;
    size_t    i, last;
    uint32_t  ref, *slots;

    for (kind = 0, i = 0; kind < SLUICE_CORE_KINDS; kind++) {

        for (last = i; last < count && entities[last]->kind == kind; last++) {
            /* void */
        }

        image->slots[kind].count = (last > i) ? entities[last - 1]->slot + 1
                                              : 0;

        slots = sluice_core_take(&b->arena, 4 * image->slots[kind].count, 8,
                                 &ref);
        if (slots == NULL) {
            return SLUICE_CORE_FULL;
        }

        image->slots[kind].offset = (uint64_t) ref * 8;

        for ( /* void */ ; i < last; i++) {
            slots[entities[i]->slot] = refs[i];
        }
    }

    return sluice_core_take(&b->arena, 0, 8, NULL) ? SLUICE_CORE_OK
                                                   : SLUICE_CORE_FULL;
}


/* Entries of one key together, the best first. */

static int
core_by_key(const void *a, const void *b, void *data)
{
    int                   n;
    sluice_core_build_t  *build = data;

    const sluice_core_draft_t  *drafts;
    const sluice_core_place_t  *pa = a, *pb = b;
    const sluice_core_entry_t  *ea, *eb;

    if (pa->hash != pb->hash) {
        return sluice_core_compare(pa->hash, pb->hash);
    }

    drafts = build->drafts.data;
    ea = &drafts[pa->index].entry;
    eb = &drafts[pb->index].entry;

    if (!sluice_core_same_key(&build->space, ea, eb)) {
        n = sluice_core_compare(ea->host_kind, eb->host_kind);
        n = n ? n : core_compare_chars(build, ea->host, eb->host, UINT32_MAX);
        n = n ? n : sluice_core_compare(ea->key_length, eb->key_length);

        return n ? n : core_compare_chars(build, ea->path, eb->path,
                                          ea->key_length);
    }

    if (sluice_core_precedes(&build->space, ea, &build->space, eb)) {
        return -1;
    }

    if (sluice_core_precedes(&build->space, eb, &build->space, ea)) {
        return 1;
    }

    return sluice_core_compare(pa->index, pb->index);
}


/* The hash of a host is that of its kind, too. */

static int
core_by_host(const void *a, const void *b, void *data)
{
    sluice_core_build_t  *build = data;

    const sluice_core_draft_t  *drafts;
    const sluice_core_place_t  *pa = a, *pb = b;

    if (pa->hash != pb->hash) {
        return sluice_core_compare(pa->hash, pb->hash);
    }

    drafts = build->drafts.data;

    return core_compare_chars(build, drafts[pa->index].entry.host,
                              drafts[pb->index].entry.host, UINT32_MAX);
}


/* The longer of two that are as good. */

static int
core_by_best(const void *a, const void *b)
{
    const sluice_core_length_t  *la = a, *lb = b;

    return la->best != lb->best ? sluice_core_compare(lb->best, la->best)
                                : sluice_core_compare(lb->length, la->length);
}


static int
core_compare_chars(const sluice_core_build_t *b, uint32_t a_ref,
    uint32_t b_ref, uint32_t limit)
{
    int                         n;
    uint32_t                    length_a, length_b;
    const sluice_core_chars_t  *ca, *cb;

    if (a_ref == b_ref || a_ref == 0 || b_ref == 0) {
        return sluice_core_compare(a_ref != 0, b_ref != 0);
    }

    ca = sluice_core_chars(&b->space, a_ref);
    cb = sluice_core_chars(&b->space, b_ref);
    length_a = ca->length < limit ? ca->length : limit;
    length_b = cb->length < limit ? cb->length : limit;

    n = memcmp(ca->data, cb->data, length_a < length_b ? length_a : length_b);

    return n ? n : sluice_core_compare(length_a, length_b);
}
