
/*
 * A radix tree of ranges of addresses; plugins/ip-restriction/tree.lua says
 * what it is made of.
 */


#include "sluice_ip_restriction.h"


#define SLUICE_IP_RESTRICTION_LEAF    0x80000000u
#define SLUICE_IP_RESTRICTION_VALUES  16        /* of a digit */


static int sluice_ip_restriction_word(const sluice_core_text_t *tree,
    uint32_t place, uint32_t *word);
static int sluice_ip_restriction_leaf(const sluice_core_text_t *tree,
    uint32_t place, const unsigned char *address, uint32_t size);


int
sluice_ip_restriction_has(const sluice_core_text_t *tree,
    const unsigned char *address, uint32_t size)
{
    uint32_t  entry, node, depth, least, value, below;

    least = 0;

    if (!sluice_ip_restriction_word(tree, 0, &entry)) {
        return 0;
    }

    while (!(entry & SLUICE_IP_RESTRICTION_LEAF)) {

        if (!sluice_ip_restriction_word(tree, entry, &node)) {
            return 0;
        }

        depth = node >> SLUICE_IP_RESTRICTION_VALUES;

        if (depth < least || depth >= 2 * size) {
            return 0;
        }

        least = depth + 1;

        value = address[depth / 2];
        value = depth % 2 ? value & 0x0f : value >> 4;

        if (!(node & (1u << value))) {
            return 0;
        }

        below = node & ((1u << value) - 1);
        entry += 1 + (uint32_t) __builtin_popcount(below);

        if (!sluice_ip_restriction_word(tree, entry, &entry)) {
            return 0;
        }
    }

    return sluice_ip_restriction_leaf(tree,
                                      entry & ~SLUICE_IP_RESTRICTION_LEAF,
                                      address, size);
}


static int
sluice_ip_restriction_word(const sluice_core_text_t *tree, uint32_t place,
    uint32_t *word)
{
    if (place >= tree->length / sizeof(uint32_t)) {
        return 0;
    }

    memcpy(word, tree->data + place * sizeof(uint32_t), sizeof(uint32_t));

    return 1;
}


static int
sluice_ip_restriction_leaf(const sluice_core_text_t *tree, uint32_t place,
    const unsigned char *address, uint32_t size)
{
    uint32_t  bits, word, ours, i;

    if (!sluice_ip_restriction_word(tree, place, &bits) || bits > 8 * size) {
        return 0;
    }

    for (i = 0; bits; i += sizeof(uint32_t)) {

        if (!sluice_ip_restriction_word(tree, ++place, &word)) {
            return 0;
        }

        ours = (uint32_t) address[i] << 24 | (uint32_t) address[i + 1] << 16
               | (uint32_t) address[i + 2] << 8 | address[i + 3];

        if (bits < 32) {
            return (ours ^ word) >> (32 - bits) == 0;
        }

        if (ours != word) {
            return 0;
        }

        bits -= 32;
    }

    return 1;
}
