
/*
 * Hostile images: bits flipped, words replaced, ends cut off, with a checksum
 * that fits, so that the other checks are asked too.  What the checker passes
 * is read through and through, under ASan and UBSan.
 */


#include "make.h"

#include <stdlib.h>


#define FUZZ_MOST  (SLUICE_CORE_KINDS * MAKE_SLOTS)


static uint64_t               state;
static make_t                 make;
static sluice_core_entity_t   list[FUZZ_MOST];


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


int
main(void)
{
    int                     kind, i;
    double                  until;
    uint8_t                *image, *copy;
    uint64_t                size, cut, tries, passed, sum;
    sluice_core_view_t      view;
    sluice_core_regexes_t  *regexes;

    state = test_seed("fuzz");
    until = test_now() + (double) test_env("SECONDS", 20);
    regexes = sluice_core_regexes_create(16);
    tries = passed = sum = 0;

    while (test_now() < until) {
        make_start(&make, &state);

        for (i = (int) test_below(&state, 80); i > 0; i--) {
            kind = test_below(&state, 2) ? SLUICE_CORE_ROUTE
                   : (int) test_below(&state, SLUICE_CORE_KINDS);
            make_entity(&make, kind, (uint32_t) test_below(&state, MAKE_SLOTS),
                        1);
        }

        image = make_image(list, make_list(&make, list), 1, &size);

        for (i = 0; i < 300; i++) {
            cut = test_below(&state, 20) ? size : test_below(&state, size);
            copy = make_memory(cut);
            memcpy(copy, image, cut);

            if (cut >= sizeof(sluice_core_image_t)) {
                fuzz_break(copy, cut);

                if (test_below(&state, 50)) {
                    sluice_core_image_t  *head;

                    head = (sluice_core_image_t *) copy;
                    head->magic = SLUICE_CORE_MAGIC;
                    head->layout = SLUICE_CORE_LAYOUT;
                    head->size = cut;
                    head->checksum = sluice_core_checksum(copy, cut);
                }
            }

            tries++;

            if (sluice_core_check(copy, cut) == SLUICE_CORE_OK) {
                passed++;
                memset(&view, 0, sizeof(view));
                view.base.base = copy;
                view.base.size = cut;
                sum += make_read(&view, regexes, &state, 10);
            }

            free(copy);
        }

        free(image);
        make_end(&make);
    }

    sluice_core_regexes_destroy(regexes);

    printf("fuzz: %lu images, %lu passed the checker, sum %lu\n", tries,
           passed, sum);
    test_check(passed > 0 && passed < tries, "none of use");

    return 0;
}
