
/*
 * A frame's header with the same byte changed in two of its words, in every
 * way: the check notices.  One that loses the highest or the lowest bytes
 * misses one change in 256 of theirs.
 */


#include "support.h"

#include <string.h>


static void
pairs_of_bytes(uint8_t *one, uint8_t *other, const sluice_ring_header_t *h)
{
    int       a, b;
    uint8_t   old_one, old_other;
    uint32_t  check;

    old_one = *one;
    old_other = *other;
    check = sluice_ring_frame_check(h, 0);

    for (a = 1; a < 256; a++) {
        *one = (uint8_t) (old_one ^ a);

        for (b = 1; b < 256; b++) {
            *other = (uint8_t) (old_other ^ b);

            test_check(sluice_ring_frame_check(h, 0) != check,
                       "bytes %ld and %ld may be %02x and %02x",
                       (long) (one - (uint8_t *) h),
                       (long) (other - (uint8_t *) h), *one, *other);
        }
    }

    *one = old_one;
    *other = old_other;
}


int
main(void)
{
    size_t                first, second, byte;
    uint8_t              *p;
    sluice_ring_header_t  h;

    memset(&h, 0x5a, sizeof(h));
    p = (uint8_t *) &h;

    /* the first word is the length, which is looked at, and the check */

    for (first = 8; first < sizeof(h); first += 8) {
        for (second = first + 8; second < sizeof(h); second += 8) {
            for (byte = 0; byte < 8; byte++) {
                pairs_of_bytes(p + first + byte, p + second + byte, &h);
            }
        }
    }

    printf("pairs: none unnoticed\n");

    return 0;
}
