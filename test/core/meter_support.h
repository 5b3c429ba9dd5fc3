
/* What the tests of counters share. */


#ifndef TEST_CORE_METER_SUPPORT_H_INCLUDED
#define TEST_CORE_METER_SUPPORT_H_INCLUDED


#include "make.h"
#include "meter_layout.h"


#define BEGUN  1770000000ull               /* a moment */


/* An area in memory that ends where it does, with a key by chance. */
void *meter_make(uint64_t size, uint64_t *state, sluice_core_meter_t *meter);

/* A request by an identifier of this kind and number. */
int meter_ask(const sluice_core_meter_t *meter, sluice_core_rule_t *rule,
    const char *kind, uint64_t number, uint64_t now,
    sluice_core_taken_t *taken);


#endif /* TEST_CORE_METER_SUPPORT_H_INCLUDED */
