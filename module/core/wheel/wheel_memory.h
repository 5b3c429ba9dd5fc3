
/*
 * What the files of the timers know of each other; wheel_timers.h is for
 * everybody.
 */


#ifndef SLUICE_WHEEL_MEMORY_H_INCLUDED
#define SLUICE_WHEEL_MEMORY_H_INCLUDED


#include "wheel_timers.h"


/* wheel_memory.c */

/* All zeroes but for index and serial; NULL: no more. */
sluice_timer_t *sluice_timers_alloc(sluice_timers_t *ts);
void sluice_timers_free(sluice_timers_t *ts, sluice_timer_t *t);

/* wheel_stats.c */

void sluice_timers_measure(sluice_timers_spread_t *s, uint64_t ns);
void sluice_timers_count(sluice_timers_t *ts, sluice_timer_t *t, uint64_t ns,
    int failed);
void sluice_timers_account_free(sluice_timers_t *ts, uint32_t account);


#endif /* SLUICE_WHEEL_MEMORY_H_INCLUDED */
