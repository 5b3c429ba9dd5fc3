
/*
 * OpenSSL for what plugins decide.
 */


#ifndef NGX_SLUICE_CRYPTO_H_INCLUDED
#define NGX_SLUICE_CRYPTO_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "decision.h"


/* sluice_decision_calls_t; data is nothing to it. */
int ngx_sluice_crypto_digest(void *data, const char *name,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out);


#endif /* NGX_SLUICE_CRYPTO_H_INCLUDED */
