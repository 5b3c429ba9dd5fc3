
/*
 * What stands in an area of series; see series.h for what it means.  Private
 * to its files and to tests.
 */


#ifndef SLUICE_SERIES_LAYOUT_H_INCLUDED
#define SLUICE_SERIES_LAYOUT_H_INCLUDED


#include "series.h"


#define SLUICE_SERIES_MAGIC  0x5345495245534c53ull    /* "SLSERIES" */


typedef struct {
    uint64_t               magic;
    uint32_t               layout;
    uint32_t               zero;
    uint64_t               size;
    uint64_t               key[2];
    sluice_series_shape_t  shape;

    _Alignas(64)
    _Atomic uint64_t       text_used;
    _Atomic uint64_t       stripes;              /* bits: of those in use */
    _Atomic uint64_t       lacking;
    _Atomic uint32_t       used[SLUICE_SERIES_KINDS];
} sluice_series_head_t;


/* Values stand in texts one behind the other, each behind its length. */

typedef struct {
    _Atomic uint32_t       length;               /* of all; 0: none yet */
    _Atomic uint32_t       offset;               /* in texts */
} sluice_series_line_t;


typedef uint16_t  sluice_series_length_t;


_Static_assert(sizeof(sluice_series_head_t) == 192, "whole cache lines");
_Static_assert(SLUICE_SERIES_TEXT <= UINT16_MAX, "of a value, too");


#define sluice_series_head(series)                                            \
    ((sluice_series_head_t *) (series)->base)

#define sluice_series_line(series, kind, line)                                \
    (&((sluice_series_line_t *) ((series)->base                               \
                                 + (series)->kinds[kind].lines))[line])


/* A line's values; data NULL: it has none. */
sluice_core_text_t sluice_series_text(const sluice_series_t *series, int kind,
    uint32_t line);


#endif /* SLUICE_SERIES_LAYOUT_H_INCLUDED */
