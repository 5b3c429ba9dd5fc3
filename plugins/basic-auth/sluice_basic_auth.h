
/*
 * The plugin basic-auth: what its files share.
 */


#ifndef SLUICE_BASIC_AUTH_H_INCLUDED
#define SLUICE_BASIC_AUTH_H_INCLUDED


#include "decision.h"


typedef struct {
    uint32_t             hide_credentials;
    sluice_core_text_t   anonymous;       /* data NULL: none */
    sluice_core_text_t   challenge;       /* WWW-Authenticate */
} sluice_basic_auth_t;


extern const sluice_decision_plugin_t  sluice_basic_auth;


#endif /* SLUICE_BASIC_AUTH_H_INCLUDED */
