
/*
 * The access-log plugin: which requests of a route, a service or all of them
 * the access log has.
 */


#ifndef SLUICE_ACCESS_LOG_H_INCLUDED
#define SLUICE_ACCESS_LOG_H_INCLUDED


#include "decision.h"


typedef struct {
    double      sample;         /* as it is configured: 0 to 1 */
    uint32_t    errors;         /* those are logged in any case */
    uint32_t    share;          /* of SLUICE_DECISION_ALL */
} sluice_access_log_t;


extern const sluice_decision_plugin_t  sluice_access_log;


#endif /* SLUICE_ACCESS_LOG_H_INCLUDED */
