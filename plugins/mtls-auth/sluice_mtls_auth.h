
/*
 * The plugin mtls-auth: what it decides, and of whom it asks what only OpenSSL
 * knows.
 */


#ifndef SLUICE_MTLS_AUTH_H_INCLUDED
#define SLUICE_MTLS_AUTH_H_INCLUDED


#include "decision.h"


#define SLUICE_MTLS_AUTH_ID  16              /* bytes of a CA's */


typedef struct {
    uint32_t             depth;
    sluice_core_text_t   ids;                /* of CAs, one behind the other */
    sluice_core_text_t   crl;                /* PEM; data NULL: none */
} sluice_mtls_auth_t;


/* What a request's own are.  Each returns one of sluice_fact_e. */

typedef struct sluice_mtls_auth_own_s  sluice_mtls_auth_own_t;

struct sluice_mtls_auth_own_s {
    /* _NONE: the client has sent no certificate */
    int  (*certificate)(sluice_mtls_auth_own_t *own);

    /* _NONE: the connection is older than the lists that are live */
    int  (*fresh)(sluice_mtls_auth_own_t *own);

    /* _NONE: no CA of the configuration stands for the certificate */
    int  (*verify)(sluice_mtls_auth_own_t *own);

    /* As headers' values; _NONE: the subject is too long for one. */
    int  (*describe)(sluice_mtls_auth_own_t *own, sluice_core_text_t *subject,
                     sluice_core_text_t *fingerprint);
};


extern const sluice_decision_plugin_t  sluice_mtls_auth;


#endif /* SLUICE_MTLS_AUTH_H_INCLUDED */
