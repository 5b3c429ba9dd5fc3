
/*
 * The memory of the spool (spool.h); for its own files and tests.
 */


#ifndef SLUICE_SPOOL_AREA_H_INCLUDED
#define SLUICE_SPOOL_AREA_H_INCLUDED


#include "spool.h"

#include <pthread.h>
#include <stdalign.h>


#define SLUICE_SPOOL_MAGIC    0x4c4f4f5053434c53ull      /* "SLCSPOOL" */
#define SLUICE_SPOOL_LAYOUT   1            /* grows with each change */
#define SLUICE_SPOOL_DATA     4096         /* where data begins */
#define SLUICE_SPOOL_ALIGN    8


/* What writers, the reader and both write is in lines of its own. */

struct sluice_spool_area_s {
    uint64_t                       magic;
    uint32_t                       layout;
    uint32_t                       mutex_size;
    uint64_t                       size;       /* of data */

    alignas(64) pthread_mutex_t    writers;
    alignas(64) _Atomic uint64_t   tail;
    _Atomic uint64_t               written;
    _Atomic uint64_t               full;
    _Atomic uint64_t               busy;
    _Atomic uint64_t               large;

    alignas(64) _Atomic uint64_t   head;
    _Atomic uint64_t               damaged;
    _Atomic uint64_t               lost;

    alignas(64) _Atomic uint32_t   asleep;     /* a futex: 1, the reader */
    _Atomic uint32_t               wanted;

    alignas(64) pthread_mutex_t    reader;
};


typedef struct {
    uint32_t                       length;
    uint32_t                       check;
    uint32_t                       texts[SLUICE_SPOOL_TEXTS];
    uint32_t                       zero;
} sluice_spool_head_t;


_Static_assert(sizeof(sluice_spool_area_t) <= SLUICE_SPOOL_DATA, "area");
_Static_assert(sizeof(sluice_spool_head_t) == 24, "head");


/* No bytes of an entry's text are taken for a head by chance alone. */

#define sluice_spool_check(position)                                          \
    ((uint32_t) ((position) ^ ((position) >> 32) ^ 0x5b001e37u))


#endif /* SLUICE_SPOOL_AREA_H_INCLUDED */
