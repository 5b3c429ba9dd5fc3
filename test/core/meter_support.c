
#include "meter_support.h"


void *
meter_make(uint64_t size, uint64_t *state, sluice_core_meter_t *meter)
{
    void      *memory;
    uint64_t   key[2];

    key[0] = test_random(state);
    key[1] = test_random(state);
    memory = make_memory(size);
    memset(memory, 0, size);
    test_check(sluice_core_meter_init(memory, size, (uint8_t *) key)
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(meter, memory, size)
               == SLUICE_CORE_OK, "attach");

    return memory;
}


int
meter_ask(const sluice_core_meter_t *meter, sluice_core_rule_t *rule,
    const char *kind, uint64_t number, uint64_t now,
    sluice_core_taken_t *taken)
{
    int   length;
    char  name[80];

    length = snprintf(name, sizeof(name), "%s-%lu", kind, number);

    return sluice_core_meter_take(meter, rule, name, (uint64_t) length, 0, now,
                                  taken);
}
