
/*
 * What the plugin jwt decides: it asks for a token that a consumer's key has
 * signed (docs/plugins/jwt.md; RFC 7519).
 */


#include "sluice_jwt.h"
#include "authenticate.h"
#include "base64.h"
#include "json.h"

#include <stdio.h>


/* What a credential has, as the schema's pack() writes it. */

typedef struct {
    sluice_core_text_t  algorithm;
    sluice_core_text_t  secret;
    sluice_core_text_t  public_key;
} sluice_jwt_secret_t;


typedef struct {
    const sluice_jwt_t               *conf;
    const sluice_decision_request_t  *request;
    sluice_decision_result_t         *result;
    sluice_core_text_t                text;      /* as the request has it */
    sluice_jwt_token_t                token;
    char                             *errors;    /* of claims: JSON */
    const char                       *words;     /* NULL: there is no token */
} sluice_jwt_check_t;


static int sluice_jwt_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_jwt_check(sluice_jwt_check_t *check);
static int sluice_jwt_key(sluice_jwt_check_t *check);
static int sluice_jwt_claim_words(sluice_jwt_check_t *check, const char *form);
static int sluice_jwt_signature(sluice_jwt_check_t *check);
static int sluice_jwt_verify(sluice_jwt_check_t *check,
    sluice_jwt_signed_t *what);
static int sluice_jwt_hmac(sluice_jwt_check_t *check,
    const sluice_core_text_t *secret);
static int sluice_jwt_claims(sluice_jwt_check_t *check);
static const char *sluice_jwt_time_words(sluice_jwt_check_t *check,
    uint32_t flag, const sluice_jwt_number_t *claim);
static const char *sluice_jwt_lifetime_words(const sluice_jwt_check_t *check);
static int sluice_jwt_refuse(sluice_jwt_check_t *check);
static void *sluice_jwt_allocate(void *data, size_t size);


static const sluice_packed_field_t  sluice_jwt_fields[] = {
    sluice_packed_field(NUMBER, sluice_jwt_t, flags),
    sluice_packed_field(DOUBLE, sluice_jwt_t, maximum_expiration),
    sluice_packed_field(TEXT, sluice_jwt_t, anonymous),
    sluice_packed_field(TEXT, sluice_jwt_t, challenge),
    sluice_packed_field(TEXT, sluice_jwt_t, bad_challenge),
    sluice_packed_field(TEXT, sluice_jwt_t, key_claim),
    sluice_packed_field(LIST, sluice_jwt_t, parameters),
    sluice_packed_field(LIST, sluice_jwt_t, cookies),
    sluice_packed_field(LIST, sluice_jwt_t, headers),
    sluice_packed_end
};

static const sluice_packed_field_t  sluice_jwt_secret_fields[] = {
    sluice_packed_field(TEXT, sluice_jwt_secret_t, algorithm),
    sluice_packed_field(TEXT, sluice_jwt_secret_t, secret),
    sluice_packed_field(TEXT, sluice_jwt_secret_t, public_key),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_jwt = {
    "jwt",
    sizeof(sluice_jwt_t),
    sluice_jwt_fields,
    NULL,
    sluice_jwt_decide,
    NULL
};


static const sluice_core_text_t  sluice_jwt_kind = { "jwt_secrets", 11 };

/* As Kong: of a request that the anonymous consumer makes there is none. */

static const sluice_core_text_t  sluice_jwt_shared =
    { "authenticated_jwt_token", 23 };


static int
sluice_jwt_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_jwt_t  *conf = data;

    int                  rc;
    sluice_jwt_check_t   check;

    result->unknown = "who has been authenticated";

    rc = sluice_authenticate_exempt(request, &conf->anonymous,
                                    conf->flags & SLUICE_JWT_PREFLIGHT);

    if (rc == SLUICE_FACT_OK) {
        return SLUICE_DECISION_PASS;
    }

    if (rc == SLUICE_FACT_NONE) {
        memset(&check, 0, sizeof(sluice_jwt_check_t));
        check.conf = conf;
        check.request = request;
        check.result = result;

        rc = sluice_jwt_check(&check);
    }

    if (rc == SLUICE_FACT_OK) {
        sluice_decision_share(result, &sluice_jwt_shared, &check.text);
        result->identifier = sluice_decision_copy(request, &check.token.key);

        return result->identifier.data ? sluice_authenticate_pass(result)
                                       : SLUICE_DECISION_MEMORY;
    }

    return rc == SLUICE_FACT_NONE
           ? sluice_jwt_refuse(&check)
           : sluice_decision_without(result, rc, result->unknown);
}


/* SLUICE_FACT_NONE: it does not pass */

static int
sluice_jwt_check(sluice_jwt_check_t *check)
{
    int                rc;
    sluice_jwt_own_t  *own;

    own = check->request->own;
    check->result->unknown = "where a token can be";

    rc = sluice_jwt_find(check->conf, check->request, &check->text,
                         &check->words);

    if (rc == SLUICE_FACT_OK
        && (own == NULL
            || !own->recall(own, &check->text, &check->conf->key_claim,
                            &check->token)))
    {
        rc = sluice_jwt_parse(check->request, &check->text,
                              &check->conf->key_claim, &check->token,
                              &check->words);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_key(check);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_signature(check);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_claims(check);
    }

    return rc;
}


/* Whose token it says that it is. */

static int
sluice_jwt_key(sluice_jwt_check_t *check)
{
    int                        rc;
    const sluice_jwt_token_t  *token;

    token = &check->token;

    if (token->key_rc == SLUICE_FACT_NONE) {
        return sluice_jwt_claim_words(check, "No mandatory '%.*s' in claims");
    }

    if (token->key_rc != SLUICE_FACT_OK || token->key.length == 0) {
        return sluice_jwt_claim_words(check, "Invalid '%.*s' in claims");
    }

    rc = sluice_authenticate_find(check->request, &sluice_jwt_kind,
                                  &token->key, check->result);

    return rc == SLUICE_FACT_NONE
           ? sluice_jwt_claim_words(check,
                                    "No credentials found for given '%.*s'")
           : rc;
}


static int
sluice_jwt_claim_words(sluice_jwt_check_t *check, const char *form)
{
    char    *words;
    size_t   size;

    size = strlen(form) + check->conf->key_claim.length;

    words = sluice_decision_allocate(check->request, size);
    if (words == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    (void) snprintf(words, size, form, (int) check->conf->key_claim.length,
                    check->conf->key_claim.data);
    check->words = words;

    return SLUICE_FACT_NONE;
}


/* One that was right is right while the credential is what it was. */

static int
sluice_jwt_signature(sluice_jwt_check_t *check)
{
    int                    rc;
    sluice_jwt_own_t      *own;
    sluice_jwt_signed_t    what;
    sluice_core_entity_t   head;

    own = check->request->own;

    sluice_core_head(&check->result->who.credential, &head);

    what.token = &check->token;
    what.slot = head.slot;
    what.generation = head.generation;
    what.revision = head.revision;
    what.is_base64 = check->conf->flags & SLUICE_JWT_BASE64;

    check->words = "Invalid signature";

    if (own && own->is_right(own, &what)) {
        return SLUICE_FACT_OK;
    }

    rc = sluice_jwt_verify(check, &what);

    if (own && rc == SLUICE_FACT_OK) {
        own->remember(own, &what);
    }

    return rc;
}


/* The credential says which algorithm counts, and never the token. */

static int
sluice_jwt_verify(sluice_jwt_check_t *check, sluice_jwt_signed_t *what)
{
    int                      is_secret;
    sluice_jwt_own_t        *own;
    sluice_core_text_t       packed;
    sluice_jwt_secret_t      secret;
    sluice_packed_memory_t   memory;

    packed = sluice_authenticate_packed(check->result);
    memory.allocate = sluice_jwt_allocate;
    memory.data = (void *) check->request;

    if (sluice_packed_read(sluice_jwt_secret_fields, &packed, &memory, &secret)
        != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    check->words = "Invalid algorithm";

    if (sluice_jwt_algorithm(secret.algorithm.data, secret.algorithm.length)
        != check->token.algorithm)
    {
        return SLUICE_FACT_NONE;
    }

    own = check->request->own;
    is_secret = check->token.algorithm->family == SLUICE_JWT_HS;
    what->key = is_secret ? secret.secret : secret.public_key;
    check->words = "Invalid key/secret";

    if (what->key.data == NULL) {
        return SLUICE_FACT_NONE;
    }

    if (is_secret) {
        return sluice_jwt_hmac(check, &what->key);
    }

    check->words = "Invalid signature";
    check->result->unknown = "whether the signature is right";

    return own ? own->verify(own, what) : SLUICE_FACT_UNKNOWN;
}


/* In the same time whatever differs. */

static int
sluice_jwt_hmac(sluice_jwt_check_t *check, const sluice_core_text_t *secret)
{
    int                  i, rc, differs;
    long                 length;
    unsigned char        digest[SLUICE_DECISION_DIGEST];
    sluice_core_text_t   key;

    key = *secret;

    if (check->conf->flags & SLUICE_JWT_BASE64) {
        length = sluice_base64_decode(key.data, key.length, 1,
                                      (char *) key.data);

        if (length < 0) {
            return SLUICE_FACT_NONE;
        }

        key.length = (uint32_t) length;
    }

    check->words = "Invalid signature";
    check->result->unknown = "whether the signature is right";

    rc = check->request->calls->digest(check->request->data,
                                       check->token.algorithm->digest, &key,
                                       &check->token.data, 1, digest);

    if (rc < 0) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_MEMORY : rc;
    }

    if (check->token.signature.length != (uint32_t) rc) {
        return SLUICE_FACT_NONE;
    }

    for (i = 0, differs = 0; i < rc; i++) {
        differs |= digest[i]
                   ^ (unsigned char) check->token.signature.data[i];
    }

    return differs ? SLUICE_FACT_NONE : SLUICE_FACT_OK;
}


/* Of several claims each one is reported; how long it lives counts after. */

static int
sluice_jwt_claims(sluice_jwt_check_t *check)
{
    int          length;
    const char  *exp, *nbf;

    exp = sluice_jwt_time_words(check, SLUICE_JWT_EXP, &check->token.exp);
    nbf = sluice_jwt_time_words(check, SLUICE_JWT_NBF, &check->token.nbf);

    if (exp == NULL && nbf == NULL) {
        exp = sluice_jwt_lifetime_words(check);
    }

    if (exp == NULL && nbf == NULL) {
        return SLUICE_FACT_OK;
    }

    check->errors = sluice_decision_allocate(check->request, 128);
    if (check->errors == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    length = 0;

    if (exp) {
        length = snprintf(check->errors, 128, "{\"exp\":\"%s\"", exp);
    }

    if (nbf) {
        length += snprintf(&check->errors[length], 128 - (size_t) length,
                           "%s\"nbf\":\"%s\"", exp ? "," : "{", nbf);
    }

    memcpy(&check->errors[length], "}", 2);

    return SLUICE_FACT_NONE;
}


/* NULL: it is right, or does not count */

static const char *
sluice_jwt_time_words(sluice_jwt_check_t *check, uint32_t flag,
    const sluice_jwt_number_t *claim)
{
    double  now;

    if (!(check->conf->flags & flag)) {
        return NULL;
    }

    if (!claim->is_one) {
        return "must be a number";
    }

    now = (double) check->request->now;

    if (flag == SLUICE_JWT_NBF) {
        return claim->value > now ? "token not valid yet" : NULL;
    }

    return claim->value <= now ? "token expired" : NULL;
}


/* Whatever "claims_to_verify" is. */

static const char *
sluice_jwt_lifetime_words(const sluice_jwt_check_t *check)
{
    return check->conf->maximum_expiration > 0
           && (!check->token.exp.is_one
               || check->token.exp.value - (double) check->request->now
                  > check->conf->maximum_expiration)
           ? "exceeds maximum allowed expiration" : NULL;
}


/* As Kong: JSON, whatever the client accepts. */

static int
sluice_jwt_refuse(sluice_jwt_check_t *check)
{
    int                   rc;
    char                 *body, *end;
    size_t                length;
    const char           *words;
    const sluice_jwt_t   *conf;
    sluice_core_text_t    none;

    conf = check->conf;
    words = check->words ? check->words : "Unauthorized";

    rc = sluice_authenticate_without(check->request, &conf->anonymous,
                                     check->words ? &conf->bad_challenge
                                                  : &conf->challenge,
                                     words, check->result);

    if (rc == SLUICE_DECISION_PASS) {
        memset(&none, 0, sizeof(sluice_core_text_t));
        sluice_decision_share(check->result, &sluice_jwt_shared, &none);
    }

    if (rc != SLUICE_DECISION_RESPOND || conf->anonymous.data) {
        return rc;
    }

    if (check->errors) {
        body = check->errors;
        end = body + strlen(body);

    } else {
        length = strlen(words);

        body = sluice_decision_allocate(check->request,
                                        sizeof("{\"message\":}")
                                        + sluice_json_string_bound(length));
        if (body == NULL) {
            return SLUICE_DECISION_MEMORY;
        }

        memcpy(body, "{\"message\":", 11);
        end = sluice_json_string(&body[11], words, length);
        *end++ = '}';
    }

    check->result->message.data = body;
    check->result->message.length = (uint32_t) (end - body);
    check->result->type.data = "application/json; charset=utf-8";
    check->result->type.length = 31;

    return rc;
}


static void *
sluice_jwt_allocate(void *data, size_t size)
{
    return sluice_decision_allocate(data, size);
}
