
/*
 * Hostile images and deltas: bits flipped, words replaced, ends cut off, with
 * a checksum that fits, so that the other checks are asked too.  What the
 * checkers pass is read through and through, and merged, under ASan and UBSan.
 */


#include "make.h"
#include "delta.h"
#include "seal.h"

#include <stdlib.h>


#define FUZZ_MOST    (SLUICE_CORE_KINDS * MAKE_SLOTS)
#define FUZZ_ROUNDS  20               /* at least */


static uint64_t               state;
static make_t                 make;
static sluice_core_entity_t   list[FUZZ_MOST];
static sluice_core_regexes_t  *regexes;
static uint64_t               images, images_passed, deltas, deltas_passed;
static uint64_t               sum;


static void
fuzz_break(uint8_t *image, uint64_t size)
{
    uint64_t  at, word;
    uint32_t  n;

    for (n = 1 + (uint32_t) test_below(&state, 4); n > 0; n--) {
        at = test_below(&state, size / 4) * 4;

        switch (test_below(&state, 5)) {

        case 0:
            image[test_below(&state, size)] ^=
                (uint8_t) (1u << test_below(&state, 8));
            break;

        case 1:
            word = test_random(&state);
            memcpy(image + at, &word, 4);
            break;

        case 2:
            /* a reference into the image */
            word = test_below(&state, size / 8);
            memcpy(image + at, &word, 4);
            break;

        case 3:
            word = test_below(&state, 2) ? 0xffffffff : 0;
            memcpy(image + at, &word, 4);
            break;

        case 4:
            /* what stands elsewhere */
            memmove(image + at, image + test_below(&state, size / 4) * 4, 4);
            break;
        }
    }
}


static void
fuzz_image(const uint8_t *image, uint64_t size)
{
    uint8_t              *copy;
    uint64_t              cut;
    sluice_core_view_t    view;
    sluice_core_image_t  *head;

    cut = test_below(&state, 20) ? size : test_below(&state, size);
    copy = make_memory(cut);
    memcpy(copy, image, cut);

    if (cut >= sizeof(sluice_core_image_t)) {
        fuzz_break(copy, cut);

        if (test_below(&state, 50)) {
            head = (sluice_core_image_t *) copy;
            head->magic = SLUICE_CORE_MAGIC;
            head->layout = SLUICE_CORE_LAYOUT;
            head->size = cut;
            head->checksum = sluice_core_checksum(copy, cut);
        }
    }

    images++;

    if (sluice_core_check(copy, cut) == SLUICE_CORE_OK) {
        images_passed++;
        memset(&view, 0, sizeof(view));
        view.base.base = copy;
        view.base.size = cut;
        sum += make_read(&view, regexes, &state, 10);
    }

    free(copy);
}


/* So that more than the sum has to be looked at. */

static void
fuzz_seal(sluice_core_delta_t *delta)
{
    sluice_core_seal_t    *seal;
    sluice_core_sealed_t   sealed;

    if (sluice_core_delta_check_header(delta, SLUICE_CORE_DELTA_MIN)
        == SLUICE_CORE_OK
        && sluice_core_sealed(delta, &sealed))
    {
        seal = &delta->seals[delta->sealed % SLUICE_CORE_SEALS];
        seal->sum = sluice_core_arena_sum(delta, sealed.used);
    }
}


/* A delta on a good image: some transactions, then broken where it is used. */

static void
fuzz_delta(const uint8_t *image, uint64_t size)
{
    int                      i, n;
    uint8_t                 *memory, *broken;
    uint64_t                 bound, used;
    sluice_core_view_t       view;
    sluice_core_live_t       live;
    sluice_core_entity_t     change;
    sluice_core_writer_t     writer;
    sluice_core_identity_t   identity;

    memset(&view, 0, sizeof(view));
    memset(&identity, 0, sizeof(identity));
    view.base.base = image;
    view.base.size = size;
    view.revision = 1;

    memory = make_memory(SLUICE_CORE_DELTA_MIN);
    broken = make_memory(SLUICE_CORE_DELTA_MIN);
    memset(memory, 0, SLUICE_CORE_DELTA_MIN);
    test_check(sluice_core_delta_init(memory, SLUICE_CORE_DELTA_MIN, &identity,
                                      &writer) == SLUICE_CORE_OK, "init");
    view.delta = writer.space;

    for (i = 0; i < 20; i++) {
        make_entity(&make, (int) test_below(&state, SLUICE_CORE_KINDS),
                    (uint32_t) test_below(&state, MAKE_SLOTS), 2);
        n = (int) test_below(&state, SLUICE_CORE_KINDS);
        change = make.entities[n][test_below(&state, MAKE_SLOTS)];

        if (sluice_core_delta_stage(&writer, &view, &change, 1,
                                    view.revision + 1) == SLUICE_CORE_OK)
        {
            sluice_core_delta_link(&writer);
            view.revision++;
        }
    }

    for (i = 0; i < 40; i++) {
        memcpy(broken, memory, SLUICE_CORE_DELTA_MIN);
        fuzz_break(broken, writer.linked);

        if (test_below(&state, 50)) {
            fuzz_seal((sluice_core_delta_t *) broken);
        }

        deltas++;

        if (sluice_core_delta_check(broken, SLUICE_CORE_DELTA_MIN)
            != SLUICE_CORE_OK)
        {
            continue;
        }

        deltas_passed++;
        view.delta.base = broken;
        sum += make_read(&view, regexes, &state, 10);

        if (sluice_core_live(&view, NULL, 0, &live) == SLUICE_CORE_OK) {
            bound = sluice_core_image_bound(live.entities, live.count);

            if (bound < 16u << 20) {
                uint8_t  *merged = make_memory(bound);

                (void) sluice_core_image_build(&identity, live.entities,
                                               live.count, merged, bound,
                                               &used);
                free(merged);
            }

            sluice_core_live_free(&live);
        }
    }

    free(memory);
    free(broken);
}


int
main(void)
{
    int       kind, i;
    double    until;
    uint8_t  *image;
    uint64_t  size, rounds;

    state = test_seed("fuzz");
    until = test_now() + (double) test_env("SECONDS", 20);
    regexes = sluice_core_regexes_create(8192);

    for (rounds = 0; rounds < FUZZ_ROUNDS || test_now() < until; rounds++) {
        make_start(&make, &state);

        for (i = (int) test_below(&state, 80); i > 0; i--) {
            kind = test_below(&state, 2) ? SLUICE_CORE_ROUTE
                   : (int) test_below(&state, SLUICE_CORE_KINDS);
            make_entity(&make, kind, (uint32_t) test_below(&state, MAKE_SLOTS),
                        1);
        }

        image = make_image(list, make_list(&make, list), 1, &size);

        for (i = 0; i < 200; i++) {
            fuzz_image(image, size);
        }

        fuzz_delta(image, size);

        free(image);
        make_end(&make);
    }

    sluice_core_regexes_destroy(regexes);

    printf("fuzz: %lu images, %lu passed; %lu deltas, %lu passed; sum %lu\n",
           images, images_passed, deltas, deltas_passed, sum);
    test_check(images_passed && images_passed < images, "images of no use");
    test_check(deltas_passed && deltas_passed < deltas, "deltas of no use");

    return 0;
}
