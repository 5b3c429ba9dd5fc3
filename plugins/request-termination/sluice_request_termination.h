
/*
 * The plugin request-termination: what its files share, and what an echo says
 * that only the gateway's process knows.
 */


#ifndef SLUICE_REQUEST_TERMINATION_H_INCLUDED
#define SLUICE_REQUEST_TERMINATION_H_INCLUDED


#include "decision.h"


typedef struct {
    uint32_t             status;
    uint32_t             is_echo;
    sluice_core_text_t   type;            /* length 0: none */
    sluice_core_text_t   body;
    sluice_core_text_t   message;         /* of an echo; data NULL: none */
    sluice_core_text_t   trigger;         /* data NULL: every request */
    sluice_core_text_t   header;          /* the trigger in lower case */
    sluice_core_text_t   dashed;          /* and with "-" for "_" */
} sluice_request_termination_t;


/* What a request's own are. */

typedef struct sluice_request_termination_own_s
    sluice_request_termination_own_t;

struct sluice_request_termination_own_s {
    /* The index-th line of the head.  SLUICE_FACT_OK, _NONE: no more. */
    int                 (*line)(sluice_request_termination_own_t *own,
                                uint32_t index, sluice_core_text_t *name,
                                sluice_core_text_t *value);

    /*
     * The JSON of SLUICE_CORE_ROUTE, _SERVICE, good until the next call.
     * SLUICE_FACT_OK, _NONE: there is none, or no more.
     */
    int                 (*entity)(sluice_request_termination_own_t *own,
                                  int kind, sluice_core_text_t *text);

    sluice_core_text_t    node_id;
    sluice_core_text_t    hostname;
    uint32_t              pid;
    uint32_t              port;           /* that the request came to */
};


extern const sluice_decision_plugin_t  sluice_request_termination;


/* sluice_request_termination_echo.c; sluice_decision_e */
int sluice_request_termination_echo(const sluice_request_termination_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


#endif /* SLUICE_REQUEST_TERMINATION_H_INCLUDED */
