
/*
 * A bit that is flipped where an image or a delta is used: the check says so.
 * Of a delta's header and heads it may not, but then no look-up answers
 * otherwise.
 */


#include "make.h"
#include "compare.h"
#include "delta.h"
#include "seal.h"

#include <stdlib.h>


#define DAMAGE_TRANSACTIONS  12


static uint64_t                state, flips, passed;
static make_t                  make;
static sluice_core_entity_t    list[SLUICE_CORE_KINDS * MAKE_SLOTS];
static sluice_core_view_t      view;
static sluice_core_writer_t    writer;
static sluice_core_regexes_t  *regexes;


static void
change_delta(void)
{
    int                    kind;
    sluice_core_entity_t   change;

    kind = (int) test_below(&state, SLUICE_CORE_KINDS);
    make_entity(&make, kind, (uint32_t) test_below(&state, MAKE_SLOTS),
                view.revision + 1);
    change = make.entities[kind][test_below(&state, MAKE_SLOTS)];

    if (sluice_core_delta_stage(&writer, &view, &change, 1, view.revision + 1)
        != SLUICE_CORE_OK)
    {
        return;
    }

    /* what is left behind stands under what comes next */

    if (test_below(&state, 4) == 0) {
        sluice_core_delta_abandon(&writer);
        return;
    }

    sluice_core_delta_link(&writer);
    view.revision++;
}


static void
damage_image(uint8_t *image, uint64_t size)
{
    uint64_t  bit;

    bit = test_below(&state, size * 8);
    image[bit / 8] ^= (uint8_t) (1 << bit % 8);

    test_check(sluice_core_check(image, size) != SLUICE_CORE_OK,
               "bit %lu of an image", bit);

    image[bit / 8] ^= (uint8_t) (1 << bit % 8);
}


static void
damage_delta(uint8_t *delta, const sluice_core_view_t *good)
{
    uint64_t  bit;

    bit = test_below(&state, writer.linked * 8);
    delta[bit / 8] ^= (uint8_t) (1 << bit % 8);
    flips++;

    if (sluice_core_delta_check(delta, SLUICE_CORE_DELTA_MIN)
        == SLUICE_CORE_OK)
    {
        passed++;
        test_check(bit / 8 < ((sluice_core_delta_t *) delta)->arena,
                   "bit %lu of a delta", bit);
        compare_views(&view, good, &state, regexes, 2);
    }

    delta[bit / 8] ^= (uint8_t) (1 << bit % 8);
}


/* The writer does not go by what stands in a seal: not behind the file. */

static void
damage_seal(sluice_core_delta_t *delta)
{
    sluice_core_seal_t  *seal;

    seal = &delta->seals[delta->sealed % SLUICE_CORE_SEALS];
    seal->used = delta->size * 2;

    sluice_core_delta_abandon(&writer);
    sluice_core_seal(&writer, 0);

    test_check(sluice_core_delta_check(delta, SLUICE_CORE_DELTA_MIN)
               == SLUICE_CORE_OK, "a seal behind a damaged one");
}


static void
damage(void)
{
    int                      i;
    uint8_t                 *image, *delta, *copy;
    uint64_t                 size;
    sluice_core_view_t       good;
    sluice_core_identity_t   identity;

    memset(&identity, 0, sizeof(identity));

    image = make_image(list, make_list(&make, list), 1, &size);
    delta = make_memory(SLUICE_CORE_DELTA_MIN);
    memset(delta, 0, SLUICE_CORE_DELTA_MIN);
    test_check(sluice_core_delta_init(delta, SLUICE_CORE_DELTA_MIN, &identity,
                                      &writer) == SLUICE_CORE_OK, "init");

    memset(&view, 0, sizeof(view));
    view.base.base = image;
    view.base.size = size;
    view.delta = writer.space;
    view.revision = 1;

    for (i = 0; i < DAMAGE_TRANSACTIONS; i++) {
        change_delta();
    }

    copy = make_memory(SLUICE_CORE_DELTA_MIN);
    memcpy(copy, delta, SLUICE_CORE_DELTA_MIN);
    good = view;
    good.delta.base = copy;

    test_check(sluice_core_delta_check(delta, SLUICE_CORE_DELTA_MIN)
               == SLUICE_CORE_OK, "sound");

    for (i = 0; i < 500; i++) {
        damage_image(image, size);
        damage_delta(delta, &good);
    }

    damage_seal((sluice_core_delta_t *) delta);

    free(image);
    free(delta);
    free(copy);
}


int
main(void)
{
    uint64_t  i, j, n;

    state = test_seed("damage");
    n = test_env("OPS", 40);
    regexes = sluice_core_regexes_create(64);

    for (i = 0; i < n; i++) {
        make_start(&make, &state);

        for (j = test_below(&state, 40); j > 0; j--) {
            make_entity(&make, (int) test_below(&state, SLUICE_CORE_KINDS),
                        (uint32_t) test_below(&state, MAKE_SLOTS), 1);
        }

        damage();
        make_end(&make);
    }

    sluice_core_regexes_destroy(regexes);

    printf("damage: %lu flips of deltas, %lu that change no answer\n", flips,
           passed);
    return 0;
}
