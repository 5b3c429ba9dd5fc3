
/*
 * What authenticators have in common: of whom a credential is asked, who the
 * request comes from then, and what becomes of one without.
 *
 *
 * SYNOPSIS
 *
 *     rc = sluice_authenticate_exempt(request, &conf->anonymous, 1);
 *
 *     if (rc == SLUICE_FACT_NONE) {
 *         rc = find the credential in the request: kind, key;
 *     }
 *
 *     if (rc == SLUICE_FACT_OK) {
 *         rc = sluice_authenticate_find(request, &kind, &key, result);
 *     }
 *
 *     if (rc == SLUICE_FACT_OK && what it proves is right) {
 *         return sluice_authenticate_pass(result);
 *     }
 *
 *     return sluice_authenticate_without(request, &conf->anonymous,
 *                                        &conf->challenge, words, result);
 *
 * Several such plugins on one request: each has to be passed.  Where all have
 * an anonymous consumer, one that is passed is enough: of the others none asks
 * any more, and if none is passed, the last one's consumer counts.
 */


#ifndef SLUICE_AUTHENTICATE_H_INCLUDED
#define SLUICE_AUTHENTICATE_H_INCLUDED


#include "decision.h"


/*
 * SLUICE_FACT_OK: no credential is asked for, since another plugin has found
 * one and this one has an anonymous consumer (data NULL: none), or since the
 * request is a preflight and those need none; _NONE: one is; else what
 * sluice_decision_without() takes.
 */
int sluice_authenticate_exempt(const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, int run_on_preflight);

/*
 * Finds whose a credential is: result->who, which is nobody until
 * sluice_authenticate_pass().  SLUICE_FACT_OK, _NONE, _UNKNOWN and so on.
 */
int sluice_authenticate_find(const sluice_decision_request_t *request,
    const sluice_core_text_t *kind, const sluice_core_text_t *key,
    sluice_decision_result_t *result);

/* What the plugin reads of the credential that was found; data NULL: none. */
sluice_core_text_t sluice_authenticate_packed(
    const sluice_decision_result_t *result);

/* The request comes from who was found. */
int sluice_authenticate_pass(sluice_decision_result_t *result);

/*
 * The request has nothing that counts: it comes from the anonymous consumer,
 * or is refused: 401 with the challenge (WWW-Authenticate) and words.
 */
int sluice_authenticate_without(const sluice_decision_request_t *request,
    const sluice_core_text_t *anonymous, const sluice_core_text_t *challenge,
    const char *words, sluice_decision_result_t *result);

#endif /* SLUICE_AUTHENTICATE_H_INCLUDED */
