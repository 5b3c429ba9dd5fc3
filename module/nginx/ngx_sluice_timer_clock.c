
/*
 * The clock of a core: the monotonic one, less the time for which the core
 * was frozen.
 */


#include "ngx_sluice_timer.h"


uint64_t
ngx_sluice_timer_now(sluice_timer_core_t *core)
{
    struct timespec  ts;

    if (core->frozen) {
        return core->frozen_ns;
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec
           - core->behind_ns;
}


void
ngx_sluice_timer_freeze(sluice_timer_core_t *core)
{
    core->frozen_ns = ngx_sluice_timer_now(core);
    core->frozen = 1;
}


/* To be followed by a poke: what is due was not looked at. */

void
ngx_sluice_timer_thaw(sluice_timer_core_t *core)
{
    if (core->frozen) {
        core->frozen = 0;
        core->behind_ns += ngx_sluice_timer_now(core) - core->frozen_ns;

        /* what the timerfd is set to is another time now */
        core->armed = SLUICE_WHEEL_NEVER;
    }
}
