
/*
 * What tells that a delta is as its writer has left it: no reader could tell
 * of a flipped bit in a text, which leads nowhere.
 */


#ifndef SLUICE_CORE_SEAL_H_INCLUDED
#define SLUICE_CORE_SEAL_H_INCLUDED


#include "layout.h"
#include "delta.h"


/* Plain values of a sluice_core_seal_t. */

typedef struct {
    uint64_t  used;
    uint64_t  nodes;
    uint64_t  sum;
} sluice_core_sealed_t;


/* The writer's, when all up to its tail is linked; so many nodes more. */
void sluice_core_seal(sluice_core_writer_t *writer, uint64_t nodes);

/* The last one, also while the writer goes on; 0: there is no sound one. */
int sluice_core_sealed(const sluice_core_delta_t *delta,
    sluice_core_sealed_t *sealed);

/* What it comes to, if the arena is what was sealed. */
uint64_t sluice_core_arena_sum(const sluice_core_delta_t *delta,
    uint64_t used);


#endif /* SLUICE_CORE_SEAL_H_INCLUDED */
