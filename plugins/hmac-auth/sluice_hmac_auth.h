
/*
 * The plugin hmac-auth: what its files share.
 */


#ifndef SLUICE_HMAC_AUTH_H_INCLUDED
#define SLUICE_HMAC_AUTH_H_INCLUDED


#include "decision.h"


/* Flags of a configuration, as the plugin's pack() writes them. */

#define SLUICE_HMAC_AUTH_HIDE  0x01
#define SLUICE_HMAC_AUTH_BODY  0x02


/* Headers that a signature can cover: each may be long, and named often. */

#define SLUICE_HMAC_AUTH_NAMES  100


typedef struct {
    uint32_t               flags;
    double                 clock_skew;      /* s */
    sluice_core_text_t     anonymous;       /* data NULL: none */
    sluice_core_text_t     challenge;       /* WWW-Authenticate */
    sluice_packed_list_t   enforced;        /* names of headers */
    sluice_packed_list_t   algorithms;
} sluice_hmac_auth_t;


/* What a header of authorization says. */

typedef struct {
    sluice_core_text_t  username;
    sluice_core_text_t  algorithm;
    sluice_core_text_t  headers;            /* names, between single blanks */
    sluice_core_text_t  signature;          /* base64 */
} sluice_hmac_auth_parameters_t;


/*
 * The secret as a key of each hash, none longer than a block of that: else it
 * would be hashed at each request, and told by the time that this takes.  data
 * NULL: the same as the first.
 */

typedef struct {
    sluice_core_text_t  sha1;
    sluice_core_text_t  sha256;
    sluice_core_text_t  sha384;
    sluice_core_text_t  sha512;
} sluice_hmac_auth_keys_t;


/* What else the plugin asks for. */

typedef struct {
    /* Seconds since 1970 of a header's date; -1: it is none. */
    int64_t  (*date)(const sluice_core_text_t *text);
} sluice_hmac_auth_own_t;


/* sluice_hmac_auth.c */

extern const sluice_decision_plugin_t  sluice_hmac_auth;

/* sluice_hmac_auth_sign.c */

/* SLUICE_FACT_OK; _NONE: it is not of this form. */
int sluice_hmac_auth_parse(const sluice_core_text_t *value,
    sluice_hmac_auth_parameters_t *parameters);

/* The next name of a list; 0: there is none.  Start with next 0. */
int sluice_hmac_auth_name(const sluice_core_text_t *list, uint32_t *next,
    sluice_core_text_t *name);

/*
 * Whether the request is signed by the secret.  SLUICE_FACT_OK; _NONE: the
 * signature is another one; else what sluice_decision_without() takes.
 */
int sluice_hmac_auth_verify(const sluice_decision_request_t *request,
    const sluice_hmac_auth_parameters_t *parameters,
    const sluice_core_text_t *secret);

/* The same of the body: by its digest in the header Digest. */
int sluice_hmac_auth_verify_body(const sluice_decision_request_t *request);


#endif /* SLUICE_HMAC_AUTH_H_INCLUDED */
