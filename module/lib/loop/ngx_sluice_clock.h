
/*
 * The time now, where the loop's is that of its turn.
 */


#ifndef NGX_SLUICE_CLOCK_H_INCLUDED
#define NGX_SLUICE_CLOCK_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


static inline uint64_t
ngx_sluice_clock_ns(clockid_t clock)
{
    struct timespec  now;

    (void) clock_gettime(clock, &now);

    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}


static inline uint64_t
ngx_sluice_clock_ms(clockid_t clock)
{
    return ngx_sluice_clock_ns(clock) / 1000000;
}


#endif /* NGX_SLUICE_CLOCK_H_INCLUDED */
