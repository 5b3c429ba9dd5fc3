
/*
 * The plugin request-size-limiting: what its files share.
 */


#ifndef SLUICE_REQUEST_SIZE_LIMITING_H_INCLUDED
#define SLUICE_REQUEST_SIZE_LIMITING_H_INCLUDED


#include "decision.h"


typedef struct {
    double    bytes;                     /* as configured */
    int64_t   max;                       /* the same, whole */
    uint32_t  needs_length;
} sluice_request_size_limiting_t;


extern const sluice_decision_plugin_t  sluice_request_size_limiting;


#endif /* SLUICE_REQUEST_SIZE_LIMITING_H_INCLUDED */
