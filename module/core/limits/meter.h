
/*
 * Rate limits: how often something was done in this second, minute, hour,
 * day, month and year, counted by all processes in one shared area.
 *
 *
 * SYNOPSIS
 *
 *     once, in zeroed memory that all will share:
 *         sluice_core_meter_init(memory, size, key);
 *     each process, also after a reload:
 *         sluice_core_meter_attach(&meter, memory, size);
 *         share = sluice_core_meter_share(&meter, rules);
 *         sluice_core_rule_set(&rule, slot, generation, limits, share);
 *     a request:
 *         full = sluice_core_meter_take(&meter, &rule, text, length, 0, now,
 *                                       &taken);
 *
 *
 * WHAT IS PROMISED
 *
 *   exact    Of requests made at once, in any number of processes, exactly as
 *            many pass in a window as its limit says.
 *   whole    A request is counted in all windows of its rule or in none: a
 *            refused one takes nothing from any.
 *   alive    No lock: a process that dies, or is stopped, at any instruction
 *            blocks nobody, and leaves at most its own request counted.
 *   kept     A counter that lives is never dropped to make room.  Whoever
 *            invents identifiers resets no limit and takes no other rule's
 *            share of the memory.
 *   alone    A rule is {slot, generation}: it never meets the counters of
 *            one that had its slot before.
 *   safe     Whatever the bytes of the area are, no verb leaves it or loops
 *            for ever.  They may count wrongly, until their windows end.
 *
 * Windows follow the calendar in UTC.  They have no timer: each word says
 * which window it counts, and a request that finds another begins anew.
 *
 *
 * THE AREA
 *
 * is a header and groups of nine lines of 64 bytes:
 *
 *     +--------+----------------+-----------------------------+ ...
 *     | header | owners of a    | counters, a line an owner:  |
 *     |        | group: 8 words | 6 windows, 2 words          |
 *     +--------+----------------+-----------------------------+ ...
 *
 *     owner    {tag 35, until 28, pending 1}: of whom, and where the last
 *              window that is counted there ends; enough for four years
 *     window   {which 17 to 32, count 32 to 47}
 *
 * An identifier's line is in one of two groups.  Tag and groups are parts of
 * one SipHash of rule and identifier, whose key the area keeps: clients cannot
 * aim at another's line.  By chance a new identifier meets another's line once
 * in 10^9 times; those two count together.
 *
 *
 * LINES
 *
 * A line is free when its time has passed by three seconds; the next who needs
 * one takes it by compare and exchange of its owner.  The counts that stand in
 * it are of windows that have ended, so they need no clearing.
 *
 * Two processes that meet a new identifier at once must not give it two lines,
 * also if each has found another place free.  So a line is first taken as
 * pending.  Whoever has seen a pending line and then, in a look at both groups
 * that began after that, no other line of this tag, makes it the owner's;
 * whoever sees two pending ones takes one of them away first.  If two lines
 * were made an owner's, each was pending before a look that did not find the
 * other: each would be the older one, which cannot be.  A line that was taken
 * away stays unused for three seconds, lest a slow process takes a new pending
 * line for the one that it has seen there.
 *
 *
 * SHARES
 *
 * A rule counts its new lines of a window, the longest, in a line of its own.
 * Up to its share it may take what is free in its two groups, down to an
 * eighth; beyond it only what is free down to half of them: the groups, which
 * the hash fills evenly, stand for the memory.  Who gets no line is counted in
 * the rule's own, together with all others who got none; the last eighth is
 * for those.
 *
 *
 * TIME
 *
 * The caller says what time it is.  Clocks of processes may differ by two
 * seconds: who is behind counts in the newer window.  A clock that is set
 * back, or forward, begins new windows.
 *
 *
 * COSTS
 *
 * docs/core.md has what was measured.  A request reads one or two lines of
 * owners and one of counters, and writes the latter; one that is refused by
 * the shortest window writes nothing.
 *
 *
 * SOURCES
 *
 * Two groups to choose from: M. Mitzenmacher, "The Power of Two Choices in
 * Randomized Load Balancing", 1996.  The calendar: H. Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms".
 */


#ifndef SLUICE_CORE_METER_H_INCLUDED
#define SLUICE_CORE_METER_H_INCLUDED


#include "core.h"


#define SLUICE_CORE_METER_LAYOUT  1          /* grows with each change */
#define SLUICE_CORE_METER_MIN     1216       /* bytes */
#define SLUICE_CORE_METER_MAX     (1ull << 35)

/* FFI */

#define SLUICE_CORE_METER_KEY     16         /* bytes */


typedef enum {
    SLUICE_CORE_SECOND = 0,
    SLUICE_CORE_MINUTE,
    SLUICE_CORE_HOUR,
    SLUICE_CORE_DAY,
    SLUICE_CORE_MONTH,
    SLUICE_CORE_YEAR,
    SLUICE_CORE_PERIODS
} sluice_core_period_e;


/* An area, as a process knows it: it believes no size that stands there. */

typedef struct {
    uint8_t   *base;
    uint64_t   groups;
    uint64_t   key[2];
} sluice_core_meter_t;


typedef struct {
    uint64_t   limit;
    uint64_t   start;                /* first second of the window in hand */
    uint64_t   finish;               /* and of the next */
    uint64_t   id;                   /* as words hold it */
    uint32_t   period;
    uint32_t   zero;
} sluice_core_window_t;


/* A rule, as one process knows it; its windows, the shortest first. */

typedef struct {
    uint32_t              slot;
    uint32_t              generation;
    uint32_t              share;     /* lines */
    uint32_t              count;
    sluice_core_window_t  windows[SLUICE_CORE_PERIODS];
} sluice_core_rule_t;


/* What a request has met, in the order of its rule's windows. */

typedef struct {
    uint64_t   used[SLUICE_CORE_PERIODS];
    uint32_t   is_shared;            /* with all who have no line */
    uint32_t   zero;
} sluice_core_taken_t;


/*
 * Where the window that holds a moment begins, and where the next does.
 * Seconds since 1970.
 */
void sluice_core_calendar(int period, uint64_t now, uint64_t *start,
    uint64_t *finish);

/*
 * Makes an area of zeroed memory, aligned to 64 bytes; by one process, before
 * any attaches.  key: random bytes.  SLUICE_CORE_OK, _LARGE (over 32 GB, or
 * less than SLUICE_CORE_METER_MIN).
 */
int sluice_core_meter_init(void *memory, uint64_t size, const uint8_t *key);

/* Is this an area of this layout and size?  SLUICE_CORE_OK, _BAD, _VERSION. */
int sluice_core_meter_attach(sluice_core_meter_t *meter, void *memory,
    uint64_t size);

/*
 * How many lines each of so many rules may have for itself: together a quarter
 * of all.  0: the memory is too small for them.
 */
uint32_t sluice_core_meter_share(const sluice_core_meter_t *meter,
    uint32_t rules);

/* limits: for each period how many may pass; 0: it has no limit. */
void sluice_core_rule_set(sluice_core_rule_t *rule, uint32_t slot,
    uint32_t generation, const uint64_t *limits, uint32_t share);

/*
 * Counts one, if every window has room.  is_fallback: the identifier stands
 * in for one that is missing, and shares no counter with an equal one proper.
 * now: seconds since 1970.
 *
 * 0: it may pass; n > 0: window n of the rule (from 1) is full; taken has what
 * is used, this one counted if it passed.  SLUICE_CORE_FULL: there is no line,
 * not even for the rule; counted nowhere.
 */
int sluice_core_meter_take(const sluice_core_meter_t *meter,
    sluice_core_rule_t *rule, const void *identifier, uint64_t length,
    int is_fallback, uint64_t now, sluice_core_taken_t *taken);

/* FFI end */


#endif /* SLUICE_CORE_METER_H_INCLUDED */
