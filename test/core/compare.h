
/* Two views that have to give the same answers. */


#ifndef TEST_CORE_COMPARE_H_INCLUDED
#define TEST_CORE_COMPARE_H_INCLUDED


#include "make.h"


/* Every slot, key, id, list of children; and requests at random. */
void compare_views(const sluice_core_view_t *view,
    const sluice_core_view_t *other, uint64_t *state,
    sluice_core_regexes_t *regexes, int requests);


#endif /* TEST_CORE_COMPARE_H_INCLUDED */
