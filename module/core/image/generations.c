
/*
 * Generations of keys (generations.h).
 */


#include "generations.h"

#include "hash.h"


uint32_t
sluice_core_generations_place(const char *key, size_t length)
{
    return (uint32_t) (sluice_core_hash(SLUICE_CORE_HASH_KEY, key, length)
                       % SLUICE_CORE_GENERATIONS);
}


uint32_t
sluice_core_generations_read(sluice_core_generations_t *all, uint32_t place)
{
    if (__atomic_load_n(&all->is_used, __ATOMIC_RELAXED) == 0) {
        (void) __atomic_exchange_n(&all->is_used, 1, __ATOMIC_SEQ_CST);
    }

    return __atomic_load_n(&all->words[place], __ATOMIC_SEQ_CST);
}


int
sluice_core_generations_are_used(sluice_core_generations_t *all)
{
    /*
     * A write, too: one of the two comes first.  Where it is this one, the
     * exchange above has what was published before it.
     */

    return __atomic_fetch_or(&all->is_used, 0, __ATOMIC_SEQ_CST) != 0;
}


uint32_t
sluice_core_generations_raise(sluice_core_generations_t *all, uint32_t place)
{
    return __atomic_add_fetch(&all->words[place], 1, __ATOMIC_SEQ_CST);
}


int
sluice_core_generations_raise_from(sluice_core_generations_t *all,
    uint32_t place, uint32_t word)
{
    return __atomic_compare_exchange_n(&all->words[place], &word, word + 1, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}


void
sluice_core_generations_raise_all(sluice_core_generations_t *all)
{
    uint32_t  i;

    for (i = 0; i < SLUICE_CORE_GENERATIONS; i++) {
        (void) sluice_core_generations_raise(all, i);
    }
}
