
/*
 * Robust mutexes in memory that processes share, for who must not sleep: the
 * holder may be stopped for as long as it likes.  One that has died hands its
 * mutex on (EOWNERDEAD).
 */


#ifndef SLUICE_RING_MUTEX_H_INCLUDED
#define SLUICE_RING_MUTEX_H_INCLUDED


#include <pthread.h>
#include <stdint.h>


/* SLUICE_OK, SLUICE_SYSTEM. */
int sluice_ring_mutex_init(pthread_mutex_t *mutex);

/*
 * What pthread_mutex_trylock() returns, which is asked again and again for a
 * while; 0 us: once.
 */
int sluice_ring_mutex_try(pthread_mutex_t *mutex, uint32_t patience_us);


#endif /* SLUICE_RING_MUTEX_H_INCLUDED */
