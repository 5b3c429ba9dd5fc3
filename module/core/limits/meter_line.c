
/*
 * Lines of counters: found, taken, prolonged.  meter.h says why no identifier
 * gets two.
 */


#include "meter_layout.h"
#include "hash.h"


/* A line is used again so many seconds behind its time. */

#define CORE_GRACE       3

#define CORE_PENDING     1ull
#define CORE_TIME_BITS   28                /* four years either way */
#define CORE_TAG_BIT     (CORE_TIME_BITS + 1)
#define CORE_TAG_MASK    (~0ull << CORE_TAG_BIT)


typedef struct {
    _Atomic uint64_t        *word;         /* NULL: there is none */
    uint64_t                 seen;
    sluice_core_counters_t  *counters;
} core_owner_t;


/* A look at both groups. */

typedef struct {
    core_owner_t  own;
    core_owner_t  pending;
    core_owner_t  second;                  /* one more that is pending */
    core_owner_t  room;
    uint32_t      taken;                   /* by others */
} core_look_t;


static void core_look(const sluice_core_place_t *place, uint64_t now,
    core_look_t *look);
static int core_is_free(uint64_t owner, uint64_t now);
static int64_t core_time_left(uint64_t owner, uint64_t now);
static uint64_t core_owner(uint64_t tag, uint64_t until);
static int core_swap(const core_owner_t *owner, uint64_t word);


void
sluice_core_place(const sluice_core_meter_t *meter, uint64_t hash,
    sluice_core_place_t *place)
{
    uint64_t              first, second;
    sluice_core_group_t  *groups;

    groups = (sluice_core_group_t *) (meter->base
                                      + sizeof(sluice_core_meter_head_t));

    /* what is not in the tag chooses the first group, all of it the second */

    first = (hash >> (64 - CORE_TAG_BIT)) * meter->groups >> CORE_TAG_BIT;
    second = (sluice_core_fold(hash, SLUICE_CORE_K3) >> 32)
             * (meter->groups - 1) >> 32;
    second += first + 1;

    if (second >= meter->groups) {
        second -= meter->groups;
    }

    place->groups[0] = &groups[first];
    place->groups[1] = &groups[second];
    place->tag = hash << CORE_TAG_BIT;

    if (place->tag == 0) {
        place->tag = 1ull << CORE_TAG_BIT;
    }

    /* its counters are fetched with the owners, which say whether it is it */

    place->first = (uint32_t) (hash % SLUICE_CORE_OWNERS);

    __builtin_prefetch(place->groups[0]);
    __builtin_prefetch(&place->groups[0]->counters[place->first], 1);
    __builtin_prefetch(place->groups[1]);
}


sluice_core_counters_t *
sluice_core_line_find(const sluice_core_place_t *place, uint64_t until)
{
    uint32_t              i, n;
    uint64_t              owner;
    sluice_core_group_t  *group;

    for (n = 0; n < 2; n++) {
        group = place->groups[n];

        for (i = 0; i < SLUICE_CORE_OWNERS; i++) {
            owner = atomic_load_explicit(&group->owners[i],
                                         memory_order_relaxed);

            if ((owner & (CORE_TAG_MASK | CORE_PENDING)) == place->tag) {
                return core_time_left(owner, until) >= 0 ? &group->counters[i]
                                                         : NULL;
            }
        }
    }

    return NULL;
}


sluice_core_counters_t *
sluice_core_line_take(const sluice_core_place_t *place, uint64_t now,
    uint64_t until, uint32_t most, int *is_new)
{
    uint32_t      i;
    core_look_t   look;
    core_owner_t  before;                  /* pending, before this look */

    *is_new = 0;
    memset(&before, 0, sizeof(before));

    for (i = 0; i < SLUICE_CORE_METER_TRIES; i++) {
        core_look(place, now, &look);

        if (look.own.word) {

            if (core_time_left(look.own.seen, until) >= 0) {
                return look.own.counters;
            }

            if (look.taken >= most) {
                return NULL;
            }

            if (core_swap(&look.own, core_owner(place->tag, until))) {
                *is_new = 1;
                return look.own.counters;
            }

        } else if (look.second.word) {

            /* nobody's, until its time has passed */

            (void) core_swap(&look.second, core_owner(0, now) | CORE_PENDING);

        } else if (look.pending.word == NULL) {

            if (look.taken >= most || look.room.word == NULL) {
                return NULL;
            }

            before = look.room;
            before.seen = core_owner(place->tag, now) | CORE_PENDING;

            if (!core_swap(&look.room, before.seen)) {
                before.word = NULL;
            }

        } else if (look.pending.word != before.word
                   || look.pending.seen != before.seen)
        {
            before = look.pending;

        } else if (core_swap(&look.pending, core_owner(place->tag, until))) {
            *is_new = 1;
            return look.pending.counters;
        }
    }

    return NULL;
}


/*
 * All loads and exchanges of owners here are sequentially consistent: who has
 * written a pending line looks behind that, for all to agree.
 */

static void
core_look(const sluice_core_place_t *place, uint64_t now, core_look_t *look)
{
    uint32_t              i, n, taken, fewest;
    core_owner_t          owner, room;
    sluice_core_group_t  *group;

    memset(look, 0, sizeof(*look));
    fewest = SLUICE_CORE_OWNERS;

    for (n = 0; n < 2; n++) {
        group = place->groups[n];
        room.word = NULL;
        taken = 0;

        for (i = 0; i < SLUICE_CORE_OWNERS; i++) {
            owner.word = &group->owners[i];
            owner.seen = atomic_load(owner.word);
            owner.counters = &group->counters[i];

            if ((owner.seen & CORE_TAG_MASK) != place->tag) {

                if (core_is_free(owner.seen, now)) {

                    if (room.word == NULL || i <= place->first) {
                        room = owner;
                    }

                } else {
                    taken++;
                }

            } else if (!(owner.seen & CORE_PENDING)) {
                look->own = owner;

            } else if (look->pending.word == NULL) {
                look->pending = owner;

            } else {
                look->second = owner;
            }
        }

        /* the emptier group: so both fill evenly */

        if (taken < fewest && room.word) {
            fewest = taken;
            look->room = room;
        }

        look->taken += taken;
    }
}


static int
core_is_free(uint64_t owner, uint64_t now)
{
    return owner == 0 || core_time_left(owner, now) + CORE_GRACE <= 0;
}


static int64_t
core_time_left(uint64_t owner, uint64_t now)
{
    uint64_t  left;

    left = (owner >> 1) - now;

    return (int64_t) (left << (64 - CORE_TIME_BITS)) >> (64 - CORE_TIME_BITS);
}


static uint64_t
core_owner(uint64_t tag, uint64_t until)
{
    return tag | (until << (64 - CORE_TIME_BITS) >> (63 - CORE_TIME_BITS));
}


static int
core_swap(const core_owner_t *owner, uint64_t word)
{
    uint64_t  seen;

    seen = owner->seen;

    return atomic_compare_exchange_strong(owner->word, &seen, word);
}
