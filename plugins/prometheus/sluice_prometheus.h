
/*
 * The prometheus plugin: what is counted of the requests of a route, a service
 * or all of them.
 */


#ifndef SLUICE_PROMETHEUS_H_INCLUDED
#define SLUICE_PROMETHEUS_H_INCLUDED


#include "decision.h"


/* handler.lua has the same */

#define SLUICE_PROMETHEUS_CONSUMER   0x01
#define SLUICE_PROMETHEUS_STATUS     0x02
#define SLUICE_PROMETHEUS_LATENCY    0x04
#define SLUICE_PROMETHEUS_BANDWIDTH  0x08


typedef struct {
    uint32_t    flags;
} sluice_prometheus_t;


/* Buckets beside the last, which has no bound; metrics.lua has the same. */

#define SLUICE_PROMETHEUS_KONG_BOUNDS      17
#define SLUICE_PROMETHEUS_UPSTREAM_BOUNDS  13

/* Where a histogram begins among a line's numbers; behind buckets its sum. */

#define SLUICE_PROMETHEUS_KONG       0
#define SLUICE_PROMETHEUS_UPSTREAM                                            \
    (SLUICE_PROMETHEUS_KONG + SLUICE_PROMETHEUS_KONG_BOUNDS + 2)
#define SLUICE_PROMETHEUS_REQUEST                                             \
    (SLUICE_PROMETHEUS_UPSTREAM + SLUICE_PROMETHEUS_UPSTREAM_BOUNDS + 2)
#define SLUICE_PROMETHEUS_TIMES                                               \
    (SLUICE_PROMETHEUS_REQUEST + SLUICE_PROMETHEUS_UPSTREAM_BOUNDS + 2)


extern const sluice_decision_plugin_t  sluice_prometheus;


#endif /* SLUICE_PROMETHEUS_H_INCLUDED */
