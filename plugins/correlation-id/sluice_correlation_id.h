
/*
 * The plugin correlation-id: what it decides, and of whom it asks for a new
 * id.
 */


#ifndef SLUICE_CORRELATION_ID_H_INCLUDED
#define SLUICE_CORRELATION_ID_H_INCLUDED


#include "decision.h"


/* The plugin's pack() writes them. */

typedef enum {
    SLUICE_CORRELATION_ID_UUID = 0,
    SLUICE_CORRELATION_ID_COUNTER,       /* the worker's, and a number */
    SLUICE_CORRELATION_ID_TRACKER        /* where and when it came */
} sluice_correlation_id_e;


typedef struct {
    sluice_core_text_t   name;           /* of the header */
    sluice_core_text_t   lowcase;        /* behind the name */
    uint64_t             hash;
    uint32_t             generator;
    uint32_t             echoes;
} sluice_correlation_id_t;


typedef struct sluice_correlation_id_own_s  sluice_correlation_id_own_t;

struct sluice_correlation_id_own_s {
    /* A new one, in the request's memory.  One of sluice_fact_e. */
    int  (*make)(sluice_correlation_id_own_t *own, uint32_t generator,
                 sluice_core_text_t *id);
};


extern const sluice_decision_plugin_t  sluice_correlation_id;


#endif /* SLUICE_CORRELATION_ID_H_INCLUDED */
