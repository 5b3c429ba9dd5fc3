
/*
 * Which target is picked: weighted round robin, and whom a retry gets.
 *
 *
 * SYNOPSIS
 *
 *     whoever knows the targets, when they or their weights change:
 *         size = sluice_balancer_bound(count, slots);
 *         sluice_balancer_build(weights, count, slots, buffer, size,
 *                                    &used);
 *     a request, each try:
 *         target = sluice_balancer_pick(balancer, position, generation, down,
 *                                      tried);
 *
 *
 * A BALANCER
 *
 * is one cycle of picks, spread evenly: pick k of a target with w picks
 * stands at (k - 1/2) / w of it, equals in the order of the targets.  Weights
 * are taken in lowest terms; where that is more than slots picks in all, they
 * are scaled down to about so many, at least one each.  Weight 0 has none.
 *
 *     +--------+---------------------------------+----------------------+
 *     | header | a bit for each target that has  | u16 for each pick:   |
 *     |        | picks, in words of 64           | the target's number  |
 *     +--------+---------------------------------+----------------------+
 *
 * It has no pointers and never changes, so it can stand in a file.  Other
 * weights are another balancer.
 *
 *
 * A POSITION
 *
 * is a count of picks, in the upper 48 bits of a word whose lower 16
 * are those of the upstream's generation; a pick is one fetch-add.  In shared
 * memory all workers count together: so many picks as a cycle has, made one
 * after the other by anybody, give each target exactly its share.  In a
 * worker's own memory the same holds of that worker.
 *
 * They stand in an array by the upstream's slot, as long as the caller likes:
 * an upstream behind its end is picked from in each worker's own memory.
 *
 * The count goes on when the balancer changes.  It never starts again at the
 * first target, which frequent changes would favour; exact is what is picked
 * between two changes.  Another generation starts at 0.  Any bytes are a
 * position, and nothing that a process leaves undone matters to another.
 *
 *
 * A TRY
 *
 * picks until one is of a target that is neither down nor tried: so those
 * that are up share the picks of the others by their own weights, and in the
 * same order.  After 16 picks in vain it looks at the bits of all, 64
 * at a time, from a place that moves on with the picks: 16 picks may divide
 * evenly among those in vain, and then would always end at the same one.
 *
 * A target that was tried does not come again.  Who wants to go on when all
 * that are up were tried begins with other bits; that costs no pick.
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


#ifndef SLUICE_BALANCER_H_INCLUDED
#define SLUICE_BALANCER_H_INCLUDED


#include "core.h"


/* FFI */

#define SLUICE_BALANCER_TARGETS_MAX  65535
#define SLUICE_BALANCER_WEIGHT_MAX   65535
#define SLUICE_BALANCER_PICKS_MAX    65536     /* that slots may ask for */


typedef struct sluice_balancer_s            sluice_balancer_t;


/* A line, so that no two upstreams write to the same.  Zeroes are one. */

typedef struct {
    uint64_t  word;
    uint64_t  unused[7];
} sluice_balancer_position_t;


/* Bytes that a balancer of so many targets may need. */
uint64_t sluice_balancer_bound(uint32_t count, uint32_t slots);

/*
 * Builds a balancer into size bytes at buffer (aligned to 8), of which used
 * are it.  Allocates 8 bytes a pick meanwhile.  SLUICE_CORE_OK, _LARGE (more
 * than the limits above, or slots 0), _FULL, _MEMORY.
 */
int sluice_balancer_build(const uint32_t *weights, uint32_t count,
    uint32_t slots, void *buffer, uint64_t size, uint64_t *used);

/*
 * May this be used as a balancer, whoever made the bytes?  They begin at a
 * multiple of 8, size is what used was.  SLUICE_CORE_OK, _BAD.
 */
int sluice_balancer_check(const void *balancer, uint64_t size);

/* Picks of a cycle; 0: there is nobody to pick. */
uint32_t sluice_balancer_length(const sluice_balancer_t *balancer);

/* Words of 64 bits that hold a bit for each target. */
uint32_t sluice_balancer_words(const sluice_balancer_t *balancer);

/*
 * The number of the target to try, whose bit is set in tried; or
 * SLUICE_CORE_NONE: none is up, or all that are were tried.  down and tried
 * are as many words as sluice_balancer_words() says, or NULL: no bit is
 * set, or kept.  Others may change down meanwhile; tried is the request's own,
 * zeroes at its first try.
 */
int sluice_balancer_pick(const sluice_balancer_t *balancer,
    sluice_balancer_position_t *position, uint32_t generation,
    const uint64_t *down, uint64_t *tried);

/* FFI end */


#endif /* SLUICE_BALANCER_H_INCLUDED */
