
/*
 * Tokens (sluice_jwt.h): RFC 7515 and 7519.
 */


#include "sluice_jwt.h"
#include "base64.h"

#include <math.h>
#include <stdlib.h>


static int sluice_jwt_header(const sluice_decision_request_t *request,
    const sluice_fields_t *header, sluice_jwt_token_t *token);
static int sluice_jwt_claims(const sluice_decision_request_t *request,
    const sluice_fields_t *claims, sluice_jwt_token_t *token);
static int sluice_jwt_part(const sluice_decision_request_t *request,
    const char *start, const char *end, sluice_core_text_t *part);
static int sluice_jwt_object(const sluice_decision_request_t *request,
    const char *start, const char *end, sluice_fields_t *fields);
static int sluice_jwt_text(const sluice_decision_request_t *request,
    const sluice_fields_t *fields, const sluice_fields_name_t *found,
    sluice_core_text_t *value);
static void sluice_jwt_number(const sluice_fields_name_t *found,
    sluice_jwt_number_t *number);


static const sluice_jwt_algorithm_t  sluice_jwt_algorithms[] = {
    { "HS256", "sha256", SLUICE_JWT_HS, 0 },
    { "HS384", "sha384", SLUICE_JWT_HS, 0 },
    { "HS512", "sha512", SLUICE_JWT_HS, 0 },
    { "RS256", "sha256", SLUICE_JWT_RS, 0 },
    { "RS384", "sha384", SLUICE_JWT_RS, 0 },
    { "RS512", "sha512", SLUICE_JWT_RS, 0 },
    { "PS256", "sha256", SLUICE_JWT_PS, 0 },
    { "PS384", "sha384", SLUICE_JWT_PS, 0 },
    { "PS512", "sha512", SLUICE_JWT_PS, 0 },
    { "ES256", "sha256", SLUICE_JWT_ES, 64 },
    { "ES384", "sha384", SLUICE_JWT_ES, 96 },
    { "ES512", "sha512", SLUICE_JWT_ES, 132 },
    { "EdDSA", NULL, SLUICE_JWT_ED, 0 },
    { NULL, NULL, 0, 0 }
};


const sluice_jwt_algorithm_t *
sluice_jwt_algorithm(const char *name, size_t length)
{
    const sluice_jwt_algorithm_t  *algorithm;

    for (algorithm = sluice_jwt_algorithms; algorithm->name; algorithm++) {

        if (length == 5 && memcmp(algorithm->name, name, 5) == 0) {
            return algorithm;
        }
    }

    return NULL;
}


int
sluice_jwt_parse(const sluice_decision_request_t *request,
    const sluice_core_text_t *text, const sluice_core_text_t *key_claim,
    sluice_jwt_token_t *token, const char **words)
{
    int               rc;
    const char       *first, *second, *end;
    sluice_fields_t   header, claims;

    token->text = *text;
    token->key_claim = *key_claim;
    end = text->data + text->length;
    *words = "Bad token; invalid JSON";

    first = memchr(text->data, '.', text->length);
    second = first ? memchr(first + 1, '.', (size_t) (end - first - 1)) : NULL;

    if (second == NULL) {
        return SLUICE_FACT_NONE;
    }

    token->data.data = text->data;
    token->data.length = (uint32_t) (second - text->data);

    rc = sluice_jwt_object(request, text->data, first, &header);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_object(request, first + 1, second, &claims);
    }

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    *words = "Bad token; invalid alg";

    rc = sluice_jwt_claims(request, &claims, token);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_header(request, &header, token);
    }

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    *words = "Bad token; invalid signature";

    return sluice_jwt_part(request, second + 1, end, &token->signature);
}


/* The key is here where no claim has it.  SLUICE_FACT_NONE: no algorithm. */

static int
sluice_jwt_header(const sluice_decision_request_t *request,
    const sluice_fields_t *header, sluice_jwt_token_t *token)
{
    int                    rc;
    sluice_core_text_t     alg;
    sluice_fields_name_t   names[] = {
        { .name = { "alg", 3 } },
        { .name = token->key_claim }
    };

    sluice_fields_find(header, names, 2);

    rc = sluice_jwt_text(request, header, &names[0], &alg);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_MEMORY ? rc : SLUICE_FACT_NONE;
    }

    token->algorithm = sluice_jwt_algorithm(alg.data, alg.length);

    if (token->algorithm == NULL) {
        return SLUICE_FACT_NONE;
    }

    if (token->key_rc == SLUICE_FACT_NONE) {
        token->key_rc = sluice_jwt_text(request, header, &names[1],
                                        &token->key);
    }

    return token->key_rc == SLUICE_FACT_MEMORY ? SLUICE_FACT_MEMORY
                                               : SLUICE_FACT_OK;
}


static int
sluice_jwt_claims(const sluice_decision_request_t *request,
    const sluice_fields_t *claims, sluice_jwt_token_t *token)
{
    sluice_fields_name_t  names[] = {
        { .name = token->key_claim },
        { .name = { "exp", 3 } },
        { .name = { "nbf", 3 } }
    };

    sluice_fields_find(claims, names, 3);

    token->key_rc = sluice_jwt_text(request, claims, &names[0], &token->key);
    sluice_jwt_number(&names[1], &token->exp);
    sluice_jwt_number(&names[2], &token->nbf);

    return token->key_rc == SLUICE_FACT_MEMORY ? SLUICE_FACT_MEMORY
                                               : SLUICE_FACT_OK;
}


static int
sluice_jwt_part(const sluice_decision_request_t *request, const char *start,
    const char *end, sluice_core_text_t *part)
{
    char    *out;
    long     length;
    size_t   size;

    size = (size_t) (end - start);

    out = sluice_decision_allocate(request, sluice_base64_bound(size));
    if (out == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    length = sluice_base64_decode(start, size, 1, out);

    if (length < 0) {
        return SLUICE_FACT_NONE;
    }

    part->data = out;
    part->length = (uint32_t) length;

    return SLUICE_FACT_OK;
}


static int
sluice_jwt_object(const sluice_decision_request_t *request, const char *start,
    const char *end, sluice_fields_t *fields)
{
    int                  rc;
    sluice_core_text_t   part;

    rc = sluice_jwt_part(request, start, end, &part);

    if (rc == SLUICE_FACT_OK
        && sluice_fields_open(fields, SLUICE_FIELDS_JSON, NULL, &part)
           != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_NONE;
    }

    return rc;
}


/* One that is there twice may be read in two ways: it is neither. */

static int
sluice_jwt_text(const sluice_decision_request_t *request,
    const sluice_fields_t *fields, const sluice_fields_name_t *found,
    sluice_core_text_t *value)
{
    char  *out;

    if (found->count == 0) {
        return SLUICE_FACT_NONE;
    }

    if (found->count > 1 || !found->is_text) {
        return SLUICE_FACT_UNREADABLE;
    }

    out = sluice_decision_allocate(request, found->value.length + (size_t) 1);
    if (out == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    value->data = out;
    value->length = (uint32_t) sluice_fields_decode(fields, &found->value,
                                                    out);

    return SLUICE_FACT_OK;
}


static void
sluice_jwt_number(const sluice_fields_name_t *found,
    sluice_jwt_number_t *number)
{
    char  text[64], *end;

    number->is_one = 0;

    if (found->count != 1 || found->is_text || found->value.length == 0
        || found->value.length >= sizeof(text))
    {
        return;
    }

    memcpy(text, found->value.data, found->value.length);
    text[found->value.length] = '\0';

    number->value = strtod(text, &end);
    number->is_one = end != text && *end == '\0' && !isnan(number->value);
}
