
/*
 * Mutexes that outlive their holders (ring_mutex.h).
 */


#include "ring.h"
#include "ring_mutex.h"

#include <errno.h>
#include <sched.h>
#include <time.h>


static uint64_t sluice_ring_mutex_now_ns(void);


int
sluice_ring_mutex_init(pthread_mutex_t *mutex)
{
    int                  rc;
    pthread_mutexattr_t  attr;

    rc = pthread_mutexattr_init(&attr);
    if (rc != 0) {
        errno = rc;
        return SLUICE_SYSTEM;
    }

    (void) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    (void) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);

    rc = pthread_mutex_init(mutex, &attr);

    (void) pthread_mutexattr_destroy(&attr);

    if (rc != 0) {
        errno = rc;
        return SLUICE_SYSTEM;
    }

    return SLUICE_OK;
}


/*
 * After the time of some publications it gives up the processor between
 * attempts, since the holder may be waiting for this very one.
 */

int
sluice_ring_mutex_try(pthread_mutex_t *mutex, uint32_t patience_us)
{
    int       rc, i, spin;
    uint64_t  end;

    rc = pthread_mutex_trylock(mutex);

    if (rc != EBUSY || patience_us == 0) {
        return rc;
    }

    end = sluice_ring_mutex_now_ns() + patience_us * 1000ull;

    for (i = 0; /* bounded by time */; i++) {

        if (i < 32) {
            for (spin = 0; spin < 16; spin++) {
#if defined(__x86_64__)
                __builtin_ia32_pause();
#else
                atomic_signal_fence(memory_order_seq_cst);
#endif
            }

        } else {
            (void) sched_yield();
        }

        rc = pthread_mutex_trylock(mutex);

        if (rc != EBUSY || sluice_ring_mutex_now_ns() >= end) {
            return rc;
        }
    }
}


static uint64_t
sluice_ring_mutex_now_ns(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}
