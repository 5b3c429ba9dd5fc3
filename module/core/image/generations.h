
/*
 * Generations of keys: what a cache compares to learn that what it holds may
 * be wrong.
 *
 * Each key has a word, which others may share with it: a raise of one costs
 * the others a load, and no wrong value.  Who fills a cache reads the word,
 * then what the key stands for, and keeps both; what is kept holds while the
 * word is the same.  Who changes what a key stands for raises its word before
 * others can see the change, so that who sees the change sees the word; and
 * once more before the change is said to be made, since a reader may have had
 * the new word and the old value in between.
 *
 * 256 KiB of memory that processes share, zeroed at first.  Any process may
 * raise; nothing here waits.
 */


#ifndef SLUICE_CORE_GENERATIONS_H_INCLUDED
#define SLUICE_CORE_GENERATIONS_H_INCLUDED


#include <stddef.h>
#include <stdint.h>


/* FFI */

#define SLUICE_CORE_GENERATIONS  65536

typedef struct {
    uint32_t           is_used;      /* somebody keeps something */
    uint32_t           zero[15];
    volatile uint32_t  words[SLUICE_CORE_GENERATIONS];
} sluice_core_generations_t;

/* The number of a key's word. */
uint32_t sluice_core_generations_place(const char *key, size_t length);

/*
 * The word at a place, for who is about to read what its key stands for: that
 * is read after it.  Notes that somebody keeps something.
 */
uint32_t sluice_core_generations_read(sluice_core_generations_t *all,
    uint32_t place);

/*
 * Whether anybody keeps something; who has published a change before it asks
 * learns of all who may have read what was there before.
 */
int sluice_core_generations_are_used(sluice_core_generations_t *all);

/* Raises the word at a place; returns it. */
uint32_t sluice_core_generations_raise(sluice_core_generations_t *all,
    uint32_t place);

/*
 * Raises the word at a place if it is still the one that was read: nothing
 * has changed since.  Returns whether.
 */
int sluice_core_generations_raise_from(sluice_core_generations_t *all,
    uint32_t place, uint32_t word);

/* Raises each word. */
void sluice_core_generations_raise_all(sluice_core_generations_t *all);

/* FFI end */


#endif /* SLUICE_CORE_GENERATIONS_H_INCLUDED */
