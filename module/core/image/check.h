
/*
 * What the checks of images and deltas share.
 */


#ifndef SLUICE_CORE_CHECK_H_INCLUDED
#define SLUICE_CORE_CHECK_H_INCLUDED


#include "layout.h"


typedef struct {
    sluice_core_space_t  space;
    uint64_t             low;              /* references lead in between */
    uint64_t             high;
    uint64_t             bodies_low;       /* and those of bodies here */
    uint64_t             bodies_high;
    uint64_t             budget;           /* items of lists that may come */
} sluice_core_check_t;


/* check_record.c; each: 1, it may be read; 0 */

int sluice_core_check_record(sluice_core_check_t *c, uint32_t ref);
int sluice_core_check_entry(sluice_core_check_t *c,
    const sluice_core_entry_t *entry, uint32_t needs);
int sluice_core_check_children(const sluice_core_check_t *c, uint32_t ref);
int sluice_core_check_inside(const sluice_core_check_t *c, uint32_t ref,
    uint64_t size);


#endif /* SLUICE_CORE_CHECK_H_INCLUDED */
