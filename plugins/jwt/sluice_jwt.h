
/*
 * The plugin jwt: what its files share.
 */


#ifndef SLUICE_JWT_H_INCLUDED
#define SLUICE_JWT_H_INCLUDED


#include "decision.h"
#include "fields.h"


/* FFI */

/* What is wrong with a token. */

typedef enum {
    SLUICE_JWT_OK = 0,
    SLUICE_JWT_BAD_JSON,             /* of the header or the claims */
    SLUICE_JWT_BAD_ALG,              /* unknown, "none", or given twice */
    SLUICE_JWT_BAD_SIGNATURE         /* not base64url */
} sluice_jwt_code_e;


/* Parts of a token in the compact form (RFC 7515, section 7.1), decoded. */

typedef struct {
    sluice_core_text_t  header;      /* a JSON object */
    sluice_core_text_t  claims;      /* the same */
    sluice_core_text_t  signature;
} sluice_jwt_parts_t;


/*
 * Decodes the parts into a room as long as the token; verifies nothing.
 * sluice_jwt_code_e.
 */
int sluice_jwt_split(const sluice_core_text_t *text, char *room,
    sluice_jwt_parts_t *parts);

/* FFI end */


/* Flags of a configuration, as the plugin's pack() writes them. */

#define SLUICE_JWT_BASE64     0x01     /* secrets are */
#define SLUICE_JWT_PREFLIGHT  0x02
#define SLUICE_JWT_EXP        0x04     /* claims to verify */
#define SLUICE_JWT_NBF        0x08


typedef struct {
    uint32_t               flags;
    double                 maximum_expiration;   /* s; 0: none */
    sluice_core_text_t     anonymous;            /* data NULL: none */
    sluice_core_text_t     challenge;            /* WWW-Authenticate */
    sluice_core_text_t     bad_challenge;        /* of a token that is bad */
    sluice_core_text_t     key_claim;
    sluice_packed_list_t   parameters;
    sluice_packed_list_t   cookies;
    sluice_packed_list_t   headers;              /* in lower case */
} sluice_jwt_t;


/* How a token is signed (RFC 7518, section 3.1; RFC 8037). */

typedef enum {
    SLUICE_JWT_HS = 0,
    SLUICE_JWT_RS,
    SLUICE_JWT_PS,
    SLUICE_JWT_ES,
    SLUICE_JWT_ED
} sluice_jwt_family_e;


typedef struct {
    const char  *name;               /* "RS256" */
    const char  *digest;             /* NULL: the signature has its own */
    int          family;
    uint32_t     size;               /* of ES: bytes of a signature */
} sluice_jwt_algorithm_t;


/* A claim that is to be a number. */

typedef struct {
    double  value;
    int     is_one;                  /* it is there once, and is a number */
} sluice_jwt_number_t;


/* What the plugin needs of a token. */

typedef struct {
    sluice_core_text_t             text;
    sluice_core_text_t             data;        /* what is signed */
    sluice_core_text_t             signature;
    sluice_core_text_t             key_claim;   /* its name */
    sluice_core_text_t             key;         /* what that says */
    int                            key_rc;      /* SLUICE_FACT_OK; _NONE: it is
                                                   not there; _UNREADABLE: it
                                                   is no text, or twice */
    const sluice_jwt_algorithm_t  *algorithm;
    sluice_jwt_number_t            exp;
    sluice_jwt_number_t            nbf;
} sluice_jwt_token_t;


/* A token and the credential that its signature has to be by. */

typedef struct {
    const sluice_jwt_token_t  *token;
    sluice_core_text_t         key;             /* PEM, for verify() */
    uint32_t                   slot;            /* of the credential */
    uint32_t                   generation;
    uint64_t                   revision;
    uint32_t                   is_base64;       /* its secret is taken so */
} sluice_jwt_signed_t;


/*
 * What else the plugin asks for.  Without it nothing is remembered, and no
 * signature by a public key is known to be right.
 */

typedef struct sluice_jwt_own_s  sluice_jwt_own_t;

struct sluice_jwt_own_s {
    /* Whether a token of this text was remembered: as it was parsed then. */
    int  (*recall)(sluice_jwt_own_t *own, const sluice_core_text_t *text,
                   const sluice_core_text_t *key_claim,
                   sluice_jwt_token_t *token);

    /* Whether what was recalled was right by this credential, as it is. */
    int  (*is_right)(sluice_jwt_own_t *own, const sluice_jwt_signed_t *what);

    /* That it is right. */
    void  (*remember)(sluice_jwt_own_t *own, const sluice_jwt_signed_t *what);

    /* SLUICE_FACT_OK; _NONE: it is not right, or the key is none; _MEMORY */
    int  (*verify)(sluice_jwt_own_t *own, const sluice_jwt_signed_t *what);
};


/* sluice_jwt.c */

extern const sluice_decision_plugin_t  sluice_jwt;

/* sluice_jwt_find.c */

/*
 * Finds the request's token.  SLUICE_FACT_OK; _NONE: there is none, or words
 * say what is wrong; else what sluice_decision_without() takes.
 */
int sluice_jwt_find(const sluice_jwt_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *token,
    const char **words);

/* sluice_jwt_token.c */

const sluice_jwt_algorithm_t *sluice_jwt_algorithm(const char *name,
    size_t length);

/*
 * Decodes a token into the request's memory; its key is a claim of this name,
 * or else a member of the header.  SLUICE_FACT_OK; _NONE: words say what is
 * wrong; _MEMORY.
 */
int sluice_jwt_parse(const sluice_decision_request_t *request,
    const sluice_core_text_t *text, const sluice_core_text_t *key_claim,
    sluice_jwt_token_t *token, const char **words);


#endif /* SLUICE_JWT_H_INCLUDED */
