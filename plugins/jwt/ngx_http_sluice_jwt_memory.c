
/*
 * Tokens that a worker remembers (ngx_http_sluice_jwt.h): those whose
 * signatures were right, decoded, and by which credential they were right.
 * One that was changed has another revision.  What a token says, and when it
 * expires, is looked at each time.
 *
 * The table has a fixed size; a newcomer takes the place of an older one.
 * Whoever guesses at a token learns nothing from the time that a comparison
 * takes, but for its length.
 */


#include "ngx_http_sluice_jwt.h"


#define NGX_HTTP_SLUICE_JWT_TOKENS  512
#define NGX_HTTP_SLUICE_JWT_TEXT    2048    /* bytes of a token to remember */


struct ngx_http_sluice_jwt_known_s {
    u_char               *memory;           /* of all texts; NULL: none */
    sluice_jwt_token_t    token;

    /* what it was right by */

    uint64_t              revision;
    uint32_t              slot;
    uint32_t              generation;
    uint32_t              is_base64;
};


static ngx_uint_t ngx_http_sluice_jwt_is_same(const sluice_core_text_t *a,
    const sluice_core_text_t *b);
static void ngx_http_sluice_jwt_copy(u_char *p, sluice_jwt_token_t *token);
static u_char *ngx_http_sluice_jwt_copy_text(u_char *p,
    sluice_core_text_t *text);


static ngx_http_sluice_jwt_known_t
    ngx_http_sluice_jwt_tokens[NGX_HTTP_SLUICE_JWT_TOKENS];


int
ngx_http_sluice_jwt_recall(sluice_jwt_own_t *plain,
    const sluice_core_text_t *text, const sluice_core_text_t *key_claim,
    sluice_jwt_token_t *token)
{
    ngx_http_sluice_jwt_own_t  *own = (ngx_http_sluice_jwt_own_t *) plain;

    size_t                        length;
    uint32_t                      hash;
    ngx_http_sluice_jwt_known_t  *known;

    /* the signature is the part that is random */

    length = ngx_min(text->length, 64);
    hash = ngx_murmur_hash2((u_char *) text->data + text->length - length,
                            length);

    known = &ngx_http_sluice_jwt_tokens[hash % NGX_HTTP_SLUICE_JWT_TOKENS];

    own->known = known;
    own->is_known = known->memory
                    && ngx_http_sluice_jwt_is_same(&known->token.text, text)
                    && ngx_http_sluice_jwt_is_same(&known->token.key_claim,
                                                   key_claim);
    if (own->is_known) {
        *token = known->token;
    }

    return own->is_known;
}


/* In the same time whatever differs. */

static ngx_uint_t
ngx_http_sluice_jwt_is_same(const sluice_core_text_t *a,
    const sluice_core_text_t *b)
{
    uint64_t  differs, words[2];
    uint32_t  i;

    if (a->length != b->length) {
        return 0;
    }

    differs = 0;

    for (i = 0; i + sizeof(uint64_t) <= a->length; i += sizeof(uint64_t)) {
        ngx_memcpy(&words[0], a->data + i, sizeof(uint64_t));
        ngx_memcpy(&words[1], b->data + i, sizeof(uint64_t));
        differs |= words[0] ^ words[1];
    }

    for ( /* void */ ; i < a->length; i++) {
        differs |= (u_char) (a->data[i] ^ b->data[i]);
    }

    return differs == 0;
}


int
ngx_http_sluice_jwt_is_right(sluice_jwt_own_t *plain,
    const sluice_jwt_signed_t *what)
{
    ngx_http_sluice_jwt_own_t  *own = (ngx_http_sluice_jwt_own_t *) plain;

    return own->is_known
           && own->known->slot == what->slot
           && own->known->generation == what->generation
           && own->known->revision == what->revision
           && own->known->is_base64 == what->is_base64;
}


/* What was recalled is still in use: its texts stay where they are. */

void
ngx_http_sluice_jwt_remember(sluice_jwt_own_t *plain,
    const sluice_jwt_signed_t *what)
{
    ngx_http_sluice_jwt_own_t  *own = (ngx_http_sluice_jwt_own_t *) plain;

    u_char                       *p;
    const sluice_jwt_token_t     *token;
    ngx_http_sluice_jwt_known_t  *known;

    known = own->known;
    token = what->token;

    if (!own->is_known) {

        if (token->text.length > NGX_HTTP_SLUICE_JWT_TEXT) {
            return;
        }

        p = ngx_alloc((size_t) token->text.length + token->signature.length
                      + token->key_claim.length + token->key.length,
                      ngx_cycle->log);
        if (p == NULL) {
            return;
        }

        if (known->memory) {
            ngx_free(known->memory);
        }

        known->memory = p;
        known->token = *token;
        ngx_http_sluice_jwt_copy(p, &known->token);
    }

    known->slot = what->slot;
    known->generation = what->generation;
    known->revision = what->revision;
    known->is_base64 = what->is_base64;
}


static void
ngx_http_sluice_jwt_copy(u_char *p, sluice_jwt_token_t *token)
{
    token->data.data = (char *) p;           /* it begins the text */

    p = ngx_http_sluice_jwt_copy_text(p, &token->text);
    p = ngx_http_sluice_jwt_copy_text(p, &token->signature);
    p = ngx_http_sluice_jwt_copy_text(p, &token->key_claim);
    (void) ngx_http_sluice_jwt_copy_text(p, &token->key);
}


static u_char *
ngx_http_sluice_jwt_copy_text(u_char *p, sluice_core_text_t *text)
{
    u_char  *start;

    start = p;
    p = ngx_cpymem(p, text->data, text->length);
    text->data = (char *) start;

    return p;
}
