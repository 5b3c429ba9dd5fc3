
/*
 * The plugin redirect: what its files share.
 */


#ifndef SLUICE_REDIRECT_H_INCLUDED
#define SLUICE_REDIRECT_H_INCLUDED


#include "decision.h"


typedef struct {
    uint32_t             status;
    uint32_t             keeps_path;
    sluice_core_text_t   before;          /* the location, or what stands */
    sluice_core_text_t   behind;          /*   around the request's path */
} sluice_redirect_t;


extern const sluice_decision_plugin_t  sluice_redirect;


#endif /* SLUICE_REDIRECT_H_INCLUDED */
