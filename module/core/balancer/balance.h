
/*
 * Whose turn it is: weighted round robin, and whom a retry gets.
 *
 *
 * SYNOPSIS
 *
 *     whoever knows the targets, when they or their weights change:
 *         size = sluice_core_rotation_bound(count, slots);
 *         sluice_core_rotation_build(weights, count, slots, buffer, size,
 *                                    &used);
 *     a request, each try:
 *         target = sluice_core_balance(rotation, position, generation, down,
 *                                      tried);
 *
 *
 * A ROTATION
 *
 * is one cycle of turns, spread evenly: turn k of a target with w turns
 * stands at (k - 1/2) / w of it, equals in the order of the targets.  Weights
 * are taken in lowest terms; where that is more than slots turns in all, they
 * are scaled down to about so many, at least one each.  Weight 0 has none.
 *
 *     +--------+---------------------------------+----------------------+
 *     | header | a bit for each target that has  | u16 for each turn:   |
 *     |        | turns, in words of 64           | the target's number  |
 *     +--------+---------------------------------+----------------------+
 *
 * It has no pointers and never changes, so it can stand in a file.  Other
 * weights are another rotation.
 *
 *
 * A POSITION
 *
 * is a count of turns taken, in the upper 48 bits of a word whose lower 16
 * are those of the upstream's generation; a turn is one fetch-add.  In shared
 * memory all workers take turns together: so many turns as a cycle has, taken
 * one after the other by anybody, give each target exactly its share.  In a
 * worker's own memory the same holds of that worker.
 *
 * They stand in an array by the upstream's slot, as long as the caller likes:
 * an upstream behind its end takes turns in each worker's own memory.
 *
 * The count goes on when the rotation changes.  It never starts again at the
 * first target, which frequent changes would favour; exact is what is taken
 * between two changes.  Another generation starts at 0.  Any bytes are a
 * position, and nothing that a process leaves undone matters to another.
 *
 *
 * A TRY
 *
 * takes turns until one is of a target that is neither down nor tried: so
 * those that are up share the turns of the others by their own weights, and
 * in the same order.  After 16 turns in vain it looks at the bits of all, 64
 * at a time, from a place that moves on with the turns: 16 turns may divide
 * evenly among those in vain, and then would always end at the same one.
 *
 * A target that was tried does not come again.  Who wants to go on when all
 * that are up were tried begins with other bits; that takes no turn.
 *
 *
 * COSTS
 *
 * docs/core.md has what was measured.  A first try costs the same for any
 * number of targets; nothing is allocated.
 *
 *
 * SOURCES
 *
 * The even spread: the divisor method of Webster and Sainte-Lague, which gives
 * the next seat to the greatest w / (2k - 1).
 */


#ifndef SLUICE_CORE_BALANCE_H_INCLUDED
#define SLUICE_CORE_BALANCE_H_INCLUDED


#include "core.h"


#define SLUICE_CORE_TARGETS_MAX      65535
#define SLUICE_CORE_WEIGHT_MAX       65535
#define SLUICE_CORE_TURNS_MAX        65536     /* that slots may ask for */


typedef struct sluice_core_rotation_s  sluice_core_rotation_t;


/* A line, so that no two upstreams write to the same.  Zeroes are one. */

typedef struct {
    uint64_t  word;
    uint64_t  unused[7];
} sluice_core_position_t;


/* Bytes that a rotation of so many targets may need. */
uint64_t sluice_core_rotation_bound(uint32_t count, uint32_t slots);

/*
 * Builds a rotation into size bytes at buffer (aligned to 8), of which used
 * are it.  Allocates 8 bytes a turn meanwhile.  SLUICE_CORE_OK, _LARGE (more
 * than the limits above, or slots 0), _FULL, _MEMORY.
 */
int sluice_core_rotation_build(const uint32_t *weights, uint32_t count,
    uint32_t slots, void *buffer, uint64_t size, uint64_t *used);

/*
 * May this be used as a rotation, whoever made the bytes?  They begin at a
 * multiple of 8, size is what used was.  SLUICE_CORE_OK, _BAD.
 */
int sluice_core_rotation_check(const void *rotation, uint64_t size);

/* Turns of a cycle; 0: there is nobody to take one. */
uint32_t sluice_core_rotation_length(const sluice_core_rotation_t *rotation);

/* Words of 64 bits that hold a bit for each target. */
uint32_t sluice_core_rotation_words(const sluice_core_rotation_t *rotation);

/*
 * The number of the target to try, whose bit is set in tried; or
 * SLUICE_CORE_NONE: none is up, or all that are were tried.  down and tried
 * are as many words as sluice_core_rotation_words() says, or NULL: no bit is
 * set, or kept.  Others may change down meanwhile; tried is the request's own,
 * zeroes at its first try.
 */
int sluice_core_balance(const sluice_core_rotation_t *rotation,
    sluice_core_position_t *position, uint32_t generation,
    const uint64_t *down, uint64_t *tried);


#endif /* SLUICE_CORE_BALANCE_H_INCLUDED */
