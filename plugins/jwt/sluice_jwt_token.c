
/*
 * Tokens (sluice_jwt.h): RFC 7515 and 7519.
 */


#include "sluice_jwt.h"
#include "base64.h"

#include <math.h>
#include <stdlib.h>


#define SLUICE_JWT_NAME  5          /* bytes of an algorithm's */


/* A token's parts, and the members of its two objects. */

typedef struct {
    sluice_jwt_parts_t             parts;
    sluice_core_text_t             data;      /* what is signed */
    sluice_fields_t                header;
    sluice_fields_t                claims;
    const sluice_jwt_algorithm_t  *algorithm;
} sluice_jwt_opened_t;


static int sluice_jwt_open(const sluice_core_text_t *text, char *room,
    sluice_jwt_opened_t *opened);
static int sluice_jwt_part(const char *start, const char *end, char *out,
    sluice_core_text_t *part);
static int sluice_jwt_object(const char *start, const char *end, char *out,
    sluice_core_text_t *part, sluice_fields_t *fields);
static const sluice_jwt_algorithm_t *sluice_jwt_alg(
    const sluice_fields_t *header);
static int sluice_jwt_claims(const sluice_decision_request_t *request,
    const sluice_jwt_opened_t *opened, sluice_jwt_token_t *token);
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

        if (length == SLUICE_JWT_NAME
            && memcmp(algorithm->name, name, SLUICE_JWT_NAME) == 0) {
            return algorithm;
        }
    }

    return NULL;
}


int
sluice_jwt_split(const sluice_core_text_t *text, char *room,
    sluice_jwt_parts_t *parts)
{
    int                   code;
    sluice_jwt_opened_t   opened;

    code = sluice_jwt_open(text, room, &opened);

    if (code == SLUICE_JWT_OK) {
        *parts = opened.parts;
    }

    return code;
}


int
sluice_jwt_parse(const sluice_decision_request_t *request,
    const sluice_core_text_t *text, const sluice_core_text_t *key_claim,
    sluice_jwt_token_t *token, const char **words)
{
    char                 *room;
    sluice_jwt_opened_t   opened;

    room = sluice_decision_allocate(request, text->length + (size_t) 1);
    if (room == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    switch (sluice_jwt_open(text, room, &opened)) {

    case SLUICE_JWT_BAD_JSON:
        *words = "Bad token; invalid JSON";
        return SLUICE_FACT_NONE;

    case SLUICE_JWT_BAD_ALG:
        *words = "Bad token; invalid alg";
        return SLUICE_FACT_NONE;

    case SLUICE_JWT_BAD_SIGNATURE:
        *words = "Bad token; invalid signature";
        return SLUICE_FACT_NONE;
    }

    token->text = *text;
    token->data = opened.data;
    token->key_claim = *key_claim;
    token->algorithm = opened.algorithm;
    token->signature = opened.parts.signature;

    return sluice_jwt_claims(request, &opened, token);
}


/* Each part is decoded to where it stands in the token, as none grows. */

static int
sluice_jwt_open(const sluice_core_text_t *text, char *room,
    sluice_jwt_opened_t *opened)
{
    const char          *start, *first, *second, *end;
    sluice_jwt_parts_t  *parts;

    start = text->data;
    end = start + text->length;
    parts = &opened->parts;

    first = memchr(start, '.', text->length);
    second = first ? memchr(first + 1, '.', (size_t) (end - first - 1)) : NULL;

    if (second == NULL
        || sluice_jwt_object(start, first, room, &parts->header,
                             &opened->header) != SLUICE_CORE_OK
        || sluice_jwt_object(first + 1, second, &room[first + 1 - start],
                             &parts->claims, &opened->claims)
           != SLUICE_CORE_OK)
    {
        return SLUICE_JWT_BAD_JSON;
    }

    opened->data.data = start;
    opened->data.length = (uint32_t) (second - start);
    opened->algorithm = sluice_jwt_alg(&opened->header);

    if (opened->algorithm == NULL) {
        return SLUICE_JWT_BAD_ALG;
    }

    return sluice_jwt_part(second + 1, end, &room[second + 1 - start],
                           &parts->signature) == SLUICE_CORE_OK
           ? SLUICE_JWT_OK : SLUICE_JWT_BAD_SIGNATURE;
}


static int
sluice_jwt_part(const char *start, const char *end, char *out,
    sluice_core_text_t *part)
{
    long  length;

    length = sluice_base64_decode(start, (size_t) (end - start), 1, out);

    if (length < 0) {
        return SLUICE_CORE_NONE;
    }

    part->data = out;
    part->length = (uint32_t) length;

    return SLUICE_CORE_OK;
}


static int
sluice_jwt_object(const char *start, const char *end, char *out,
    sluice_core_text_t *part, sluice_fields_t *fields)
{
    if (sluice_jwt_part(start, end, out, part) != SLUICE_CORE_OK) {
        return SLUICE_CORE_NONE;
    }

    return sluice_fields_open(fields, SLUICE_FIELDS_JSON, NULL, part);
}


/* Its name may be written in escapes, of six letters at most each. */

static const sluice_jwt_algorithm_t *
sluice_jwt_alg(const sluice_fields_t *header)
{
    char                   name[SLUICE_JWT_NAME * 6];
    size_t                 length;
    sluice_fields_name_t   alg = { .name = { "alg", 3 } };

    sluice_fields_find(header, &alg, 1);

    if (alg.count != 1 || !alg.is_text || alg.value.length > sizeof(name)) {
        return NULL;
    }

    length = sluice_fields_decode(header, &alg.value, name);

    return sluice_jwt_algorithm(name, length);
}


/* The key is the header's where no claim has it. */

static int
sluice_jwt_claims(const sluice_decision_request_t *request,
    const sluice_jwt_opened_t *opened, sluice_jwt_token_t *token)
{
    sluice_fields_name_t  names[] = {
        { .name = token->key_claim },
        { .name = { "exp", 3 } },
        { .name = { "nbf", 3 } }
    };
    sluice_fields_name_t  key = { .name = token->key_claim };

    sluice_fields_find(&opened->claims, names, 3);

    token->key_rc = sluice_jwt_text(request, &opened->claims, &names[0],
                                    &token->key);
    sluice_jwt_number(&names[1], &token->exp);
    sluice_jwt_number(&names[2], &token->nbf);

    if (token->key_rc == SLUICE_FACT_NONE) {
        sluice_fields_find(&opened->header, &key, 1);
        token->key_rc = sluice_jwt_text(request, &opened->header, &key,
                                        &token->key);
    }

    return token->key_rc == SLUICE_FACT_MEMORY ? SLUICE_FACT_MEMORY
                                               : SLUICE_FACT_OK;
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
