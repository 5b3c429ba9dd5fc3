
/*
 * What the prometheus plugin decides: nothing, every request passes.
 */


#include "sluice_prometheus.h"


static const sluice_packed_field_t  sluice_prometheus_fields[] = {
    sluice_packed_field(NUMBER, sluice_prometheus_t, flags),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_prometheus = {
    "prometheus",
    sizeof(sluice_prometheus_t),
    sluice_prometheus_fields,
    NULL,
    NULL,
    NULL
};
