
/*
 * What stands in an area of counters; see meter.h for what it means.  Private
 * to its files and to tests.
 */


#ifndef SLUICE_CORE_METER_LAYOUT_H_INCLUDED
#define SLUICE_CORE_METER_LAYOUT_H_INCLUDED


#include "layout.h"
#include "meter.h"


#define SLUICE_CORE_METER_MAGIC  0x524554454d434c53ull    /* "SLCMETER" */
#define SLUICE_CORE_OWNERS       8           /* of a group */
#define SLUICE_CORE_BOTH         (2 * SLUICE_CORE_OWNERS)

/* Limits of loops that only others' work at the same word can prolong. */
#define SLUICE_CORE_METER_TRIES  100000


typedef struct {
    uint64_t          magic;
    uint32_t          layout;
    uint32_t          zero;
    uint64_t          size;
    uint64_t          key[2];
    uint64_t          zero2[3];
} sluice_core_meter_head_t;


typedef struct {
    _Atomic uint64_t  windows[SLUICE_CORE_PERIODS];
    _Atomic uint64_t  lines;               /* of a rule, in its longest */
    uint64_t          zero;
} sluice_core_counters_t;


typedef struct {
    _Atomic uint64_t        owners[SLUICE_CORE_OWNERS];
    sluice_core_counters_t  counters[SLUICE_CORE_OWNERS];
} sluice_core_group_t;


/* Where a line may stand. */

typedef struct {
    sluice_core_group_t  *groups[2];       /* two different ones */
    uint64_t              tag;             /* in its place, never 0 */
    uint32_t              first;           /* of a group, if it is free */
} sluice_core_place_t;


_Static_assert(sizeof(sluice_core_meter_head_t) == SLUICE_CORE_LINE, "head");
_Static_assert(sizeof(sluice_core_counters_t) == SLUICE_CORE_LINE, "counters");
_Static_assert(sizeof(sluice_core_group_t) == 9 * SLUICE_CORE_LINE, "group");
_Static_assert(SLUICE_CORE_METER_MIN == sizeof(sluice_core_meter_head_t)
               + 2 * sizeof(sluice_core_group_t), "min");


/* meter_line.c */

/* An identifier's, by a hash of it and of its rule. */
void sluice_core_place(const sluice_core_meter_t *meter, uint64_t hash,
    sluice_core_place_t *place);

/* The line, if it counts until then or longer; NULL. */
sluice_core_counters_t *sluice_core_line_find(
    const sluice_core_place_t *place, uint64_t until);

/*
 * The same, taken if need be, unless most or more of the others in both groups
 * are taken; NULL.  is_new: it was taken, or prolonged, by this call.
 */
sluice_core_counters_t *sluice_core_line_take(
    const sluice_core_place_t *place, uint64_t now, uint64_t until,
    uint32_t most, int *is_new);


#endif /* SLUICE_CORE_METER_LAYOUT_H_INCLUDED */
