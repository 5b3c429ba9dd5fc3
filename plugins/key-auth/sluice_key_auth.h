
/*
 * The plugin key-auth: what its files share.
 */


#ifndef SLUICE_KEY_AUTH_H_INCLUDED
#define SLUICE_KEY_AUTH_H_INCLUDED


#include "decision.h"


/* Flags of a configuration, as the plugin's pack() writes them. */

#define SLUICE_KEY_AUTH_HIDE       0x01
#define SLUICE_KEY_AUTH_HEADER     0x02
#define SLUICE_KEY_AUTH_QUERY      0x04
#define SLUICE_KEY_AUTH_BODY       0x08
#define SLUICE_KEY_AUTH_PREFLIGHT  0x10


typedef struct {
    sluice_core_text_t  plain;          /* of fields */
    sluice_core_text_t  lowcase;        /* of headers */
    sluice_core_text_t  dashed;         /* the same; of length 0: no "_" */
    sluice_header_t     header;
} sluice_key_auth_name_t;


typedef struct {
    uint32_t                 flags;
    sluice_core_text_t       anonymous;    /* data NULL: none */
    sluice_core_text_t       challenge;    /* WWW-Authenticate */
    sluice_packed_list_t     key_names;
    sluice_key_auth_name_t  *names;        /* of these */
} sluice_key_auth_t;


/* sluice_key_auth.c */

extern const sluice_decision_plugin_t  sluice_key_auth;

/* sluice_key_auth_find.c */

/*
 * Finds the request's key.  SLUICE_FACT_OK; _NONE: there is none, words say
 * why; else what sluice_decision_without() takes.
 */
int sluice_key_auth_find(const sluice_key_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *key,
    const char **words);

/*
 * Takes all that may be a key, or a copy of one, out of a request that passes,
 * where that is configured: each of the names, in headers, in the query and in
 * a body that keys are read from.  SLUICE_FACT_OK, _LATER, _MEMORY.
 */
int sluice_key_auth_hide(const sluice_key_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);


#endif /* SLUICE_KEY_AUTH_H_INCLUDED */
