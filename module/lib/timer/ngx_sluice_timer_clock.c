
/*
 * The clock of a core: the monotonic one, less the time for which the core
 * was frozen.
 *
 * Each run needs the time, and a look at the clock was a fifth of what a run
 * costs.  The processor's counter of ticks takes a third as long.  So the time
 * is that of the last look plus the ticks since then.  A look is used for a
 * millisecond at most: whatever a counter does (another processor, a machine
 * that moves), the error is less than that, mostly less than a microsecond.
 */


#include "ngx_sluice_clock.h"
#include "ngx_sluice_timer.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif


/* Ticks that a look at the clock may take: else it was interrupted. */
#define NGX_SLUICE_TIMER_LOOK   8192
/* How long a look is used; how far apart two have to be to measure a tick. */
#define NGX_SLUICE_TIMER_GOOD   1000000     /* ns */
#define NGX_SLUICE_TIMER_APART  50000000


#ifdef __x86_64__

/* Of this process, whatever its cores. */

static struct {
    uint64_t  ns;           /* the last look */
    uint64_t  ticks;
    uint64_t  good;         /* ticks; 0: the counter says nothing yet */
    uint64_t  scale;        /* ns of a tick, in units of 2^-32 */
    uint64_t  first_ns;     /* an earlier look; 0: none */
    uint64_t  first_ticks;
} ngx_sluice_timer_ticks;


/* Whether ticks are equally long and go on in a processor that sleeps. */

static ngx_uint_t
ngx_sluice_timer_steady(void)
{
    unsigned           a, b, c, d;
    static ngx_uint_t  known, steady;

    if (!known) {
        known = 1;
        steady = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
    }

    return steady;
}


static uint64_t SLUICE_WHEEL_RARE
ngx_sluice_timer_look(void)
{
    uint64_t  ns, before, took;

    if (!ngx_sluice_timer_steady()) {
        return ngx_sluice_clock_ns(CLOCK_MONOTONIC);
    }

    before = __rdtsc();
    ns = ngx_sluice_clock_ns(CLOCK_MONOTONIC);
    took = __rdtsc() - before;

    if (took > NGX_SLUICE_TIMER_LOOK) {
        ngx_sluice_timer_ticks.good = 0;
        return ns;
    }

    before += took / 2;

    if (ngx_sluice_timer_ticks.first_ns == 0
        || before <= ngx_sluice_timer_ticks.first_ticks)
    {
        ngx_sluice_timer_ticks.first_ns = ns;
        ngx_sluice_timer_ticks.first_ticks = before;
        ngx_sluice_timer_ticks.scale = 0;

    } else if (ns - ngx_sluice_timer_ticks.first_ns > NGX_SLUICE_TIMER_APART) {
        ngx_sluice_timer_ticks.scale = (uint64_t)
            (4294967296.0 * (double) (ns - ngx_sluice_timer_ticks.first_ns)
             / (double) (before - ngx_sluice_timer_ticks.first_ticks));
        ngx_sluice_timer_ticks.first_ns = ns;
        ngx_sluice_timer_ticks.first_ticks = before;
    }

    ngx_sluice_timer_ticks.ns = ns;
    ngx_sluice_timer_ticks.ticks = before;
    ngx_sluice_timer_ticks.good = ngx_sluice_timer_ticks.scale
        ? ((uint64_t) NGX_SLUICE_TIMER_GOOD << 32)
          / ngx_sluice_timer_ticks.scale
        : 0;

    return ns;
}

#endif


uint64_t
ngx_sluice_timer_now(sluice_timer_core_t *core)
{
    if (core->frozen) {
        return core->frozen_ns;
    }

    return ngx_sluice_clock_ns(CLOCK_MONOTONIC) - core->behind_ns;
}


uint64_t
ngx_sluice_timer_about(sluice_timer_core_t *core)
{
#ifdef __x86_64__

    uint64_t  ticks;

    if (core->frozen) {
        return core->frozen_ns;
    }

    ticks = __rdtsc() - ngx_sluice_timer_ticks.ticks;

    if (ticks < ngx_sluice_timer_ticks.good) {
        return ngx_sluice_timer_ticks.ns - core->behind_ns
               + (ticks * ngx_sluice_timer_ticks.scale >> 32);
    }

    return ngx_sluice_timer_look() - core->behind_ns;

#else

    return ngx_sluice_timer_now(core);

#endif
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
