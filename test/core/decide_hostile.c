
/*
 * What basic-auth, hmac-auth and jwt decide of hostile heads: right ones, of
 * which bytes are changed, left out, said again or a thousand times.  Texts
 * end where their memory does, so that ASan sees each read behind them; a
 * credential is taken of nobody whose proof is another one.
 */


#include "base64.h"
#include "decide.h"
#include "support.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>


#define PASS     SLUICE_DECISION_PASS

#define NAME     "alice"
#define DATE     "Tue, 14 Nov 2023 22:13:20 GMT"
#define LONGEST  70000


/* As sluice_hmac_auth_own_t has it. */

typedef struct {
    int64_t  (*date)(const sluice_core_text_t *text);
} hostile_own_t;


typedef struct {
    const char      *plugin;
    const char      *kind;           /* of its credentials */
    const char      *header;
    const char      *second;         /* NULL: it looks at one */
    decide_packed_t  config;
    decide_packed_t  credential;
    char             proof[1024];
    hostile_own_t   *own;
} hostile_t;


static uint64_t             state;
static sluice_core_view_t   view;
static const hostile_t     *current;
static hostile_own_t        own;


/* Not a digest: what tells two texts apart, and is quick. */

static int
hostile_digest(void *data, const char *name, const sluice_core_text_t *key,
    const sluice_core_text_t *texts, uint32_t count, unsigned char *out)
{
    int       size, i;
    uint32_t  n, at;
    uint64_t  sum;

    (void) data;

    sum = 14695981039346656037u;

    for (n = 0; key && n < key->length; n++) {
        sum = (sum ^ (unsigned char) key->data[n]) * 1099511628211u;
    }

    for (n = 0; n < count; n++) {

        for (at = 0; at < texts[n].length; at++) {
            sum = (sum ^ (unsigned char) texts[n].data[at]) * 1099511628211u;
        }
    }

    size = strcmp(name, "sha1") == 0 ? 20 : strcmp(name, "sha512") == 0 ? 64
           : strcmp(name, "sha384") == 0 ? 48 : 32;

    for (i = 0; i < size; i++) {
        out[i] = (unsigned char) (sum >> 8 * (i % 8)) ^ (unsigned char) i;
    }

    return size;
}


static int
hostile_credential(void *data, const sluice_core_text_t *kind,
    const sluice_core_text_t *key, sluice_decision_who_t *who)
{
    (void) data;

    test_check(decide_is(kind, current->kind), "another kind");

    if (!decide_is(key, NAME)) {
        return SLUICE_FACT_NONE;
    }

    who->credential = sluice_core_by_slot(&view, SLUICE_CORE_CREDENTIAL, 0);
    who->consumer = sluice_core_by_slot(&view, SLUICE_CORE_CONSUMER, 0);

    return SLUICE_FACT_OK;
}


static int64_t
hostile_date(const sluice_core_text_t *text)
{
    return decide_is(text, DATE) ? 1700000000 : -1;
}


static void
hostile_list(decide_packed_t *packed, const char *first, const char *second)
{
    decide_number(packed, (first != NULL) + (second != NULL));

    if (first) {
        decide_text(packed, first);
    }

    if (second) {
        decide_text(packed, second);
    }
}


/* In base64, that of URLs or the other one. */

static void
hostile_encode(char *out, const void *bytes, size_t length, int is_url)
{
    char  *p, *end;

    end = sluice_base64_encode(bytes, length, out);
    *end = '\0';

    for (p = out; is_url && *p; p++) {
        *p = *p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? '\0' : *p;
    }
}


static sluice_core_text_t
hostile_text(const char *text)
{
    sluice_core_text_t  found;

    found.data = text;
    found.length = (uint32_t) strlen(text);

    return found;
}


static void
hostile_basic(hostile_t *hostile)
{
    int                  i;
    char                 hex[41];
    unsigned char        digest[SLUICE_DECISION_DIGEST];
    sluice_core_text_t   texts[2];

    hostile->plugin = "basic-auth";
    hostile->kind = "basicauth_credentials";
    hostile->header = "Authorization";
    hostile->second = "Proxy-Authorization";

    decide_number(&hostile->config, 1);
    decide_text(&hostile->config, NULL);
    decide_text(&hostile->config, "Basic");

    texts[0] = hostile_text("secret");
    texts[1] = hostile_text("00000000-0000-0000-0000-000000000000");
    (void) hostile_digest(NULL, "sha1", NULL, texts, 2, digest);

    for (i = 0; i < 20; i++) {
        (void) snprintf(&hex[2 * i], 3, "%02x", digest[i]);
    }

    memcpy(hostile->credential.data, hex, 40);
    hostile->credential.length = 40;

    strcpy(hostile->proof, "Basic ");
    hostile_encode(&hostile->proof[6], NAME ":secret", 12, 0);
}


static void
hostile_hmac(hostile_t *hostile)
{
    char                 code[64];
    unsigned char        digest[SLUICE_DECISION_DIGEST];
    sluice_core_text_t   key, data;

    hostile->plugin = "hmac-auth";
    hostile->kind = "hmacauth_credentials";
    hostile->header = "Authorization";
    hostile->second = "Proxy-Authorization";
    hostile->own = &own;

    decide_number(&hostile->config, 0);
    decide_double(&hostile->config, 300);
    decide_text(&hostile->config, NULL);
    decide_text(&hostile->config, "hmac");
    hostile_list(&hostile->config, "x-date", NULL);
    hostile_list(&hostile->config, "hmac-sha256", "hmac-sha1");

    decide_text(&hostile->credential, "secret");
    decide_text(&hostile->credential, NULL);
    decide_text(&hostile->credential, NULL);
    decide_text(&hostile->credential, NULL);

    key = hostile_text("secret");
    data = hostile_text("x-date: " DATE "\nx-other: 1");
    (void) hostile_digest(NULL, "sha256", &key, &data, 1, digest);
    hostile_encode(code, digest, 32, 0);

    (void) snprintf(hostile->proof, sizeof(hostile->proof),
                    "hmac username=\"" NAME "\", algorithm=\"hmac-sha256\", "
                    "headers=\"x-date x-other\", signature=\"%s\"", code);
}


static void
hostile_jwt(hostile_t *hostile)
{
    char                 header[64], claims[128], code[64];
    const char          *text;
    unsigned char        digest[SLUICE_DECISION_DIGEST];
    sluice_core_text_t   key, data;

    hostile->plugin = "jwt";
    hostile->kind = "jwt_secrets";
    hostile->header = "Authorization";
    hostile->second = "Cookie";

    decide_number(&hostile->config, 0x0e);
    decide_double(&hostile->config, 0);
    decide_text(&hostile->config, NULL);
    decide_text(&hostile->config, "Bearer");
    decide_text(&hostile->config, "Bearer error");
    decide_text(&hostile->config, "iss");
    hostile_list(&hostile->config, "jwt", NULL);
    hostile_list(&hostile->config, "c", NULL);
    hostile_list(&hostile->config, "authorization", NULL);

    decide_text(&hostile->credential, "HS256");
    decide_text(&hostile->credential, "secret");
    decide_text(&hostile->credential, NULL);

    text = "{\"alg\":\"HS256\"}";
    hostile_encode(header, text, strlen(text), 1);

    text = "{\"iss\":\"" NAME "\",\"exp\":1700000001,\"nbf\":0}";
    hostile_encode(claims, text, strlen(text), 1);

    (void) snprintf(hostile->proof, sizeof(hostile->proof), "Bearer %s.%s",
                    header, claims);

    key = hostile_text("secret");
    data = hostile_text(&hostile->proof[7]);
    (void) hostile_digest(NULL, "sha256", &key, &data, 1, digest);
    hostile_encode(code, digest, 32, 1);

    strcat(hostile->proof, ".");
    strcat(hostile->proof, code);
}


/* An image with one consumer, whose id is zeroes, and what proves him. */

static uint8_t *
hostile_image(const hostile_t *hostile)
{
    int                      rc;
    uint64_t                 size, used;
    uint8_t                 *image;
    static char              digest[SLUICE_CORE_DIGEST];
    sluice_core_value_t     *value;
    sluice_core_entity_t     list[2];
    sluice_core_identity_t   identity;

    memset(list, 0, sizeof(list));
    memset(&identity, 0, sizeof(identity));
    identity.revision = 1;

    list[0].kind = SLUICE_CORE_CONSUMER;
    list[0].revision = 1;
    list[0].sequence = 1;

    list[1].kind = SLUICE_CORE_CREDENTIAL;
    list[1].id[0] = 1;
    list[1].revision = 1;
    list[1].sequence = 2;

    value = &list[1].fields[SLUICE_CORE_CREDENTIAL_DIGEST];
    value->data = digest;
    value->count = SLUICE_CORE_DIGEST;

    value = &list[1].fields[SLUICE_CORE_CREDENTIAL_PACKED];
    value->data = hostile->credential.data;
    value->count = hostile->credential.length;

    size = (sluice_core_image_bound(list, 2) + 63) & ~(uint64_t) 63;
    image = aligned_alloc(64, size);
    test_check(image != NULL, "no memory");

    rc = sluice_core_image_build(&identity, list, 2, image, size, &used);
    test_check(rc == SLUICE_CORE_OK, "build: %s", sluice_core_word(rc));

    memset(&view, 0, sizeof(view));
    view.base.base = image;
    view.base.size = used;
    view.revision = 1;

    return image;
}


/* Bytes changed, left out, or said again. */

static size_t
hostile_spoil(char *text, size_t length)
{
    size_t             at, n, count;
    static const char  odd[] = "\0\t \"',.:;=\\/{}[]%&+-_0aA\x7f\x80\xff";

    at = test_below(&state, length + 1);

    switch (test_below(&state, 4)) {

    case 0:
        if (at < length) {
            text[at] = odd[test_below(&state, sizeof(odd) - 1)];
        }

        return length;

    case 1:
        n = test_below(&state, length - at + 1);
        memmove(&text[at], &text[at + n], length - at - n);

        return length - n;

    case 2:
        memmove(&text[at + 1], &text[at], length - at);
        text[at] = odd[test_below(&state, sizeof(odd) - 1)];

        return length + 1;

    default:
        n = test_below(&state, length - at + 1);
        count = test_below(&state, 50) ? 1 : 1000;

        while (count-- > 0 && length + n < LONGEST) {
            memmove(&text[at + n], &text[at], length - at);
            length += n;
        }

        return length;
    }
}


static void
hostile_line(decide_request_t *asked, const hostile_t *hostile, int spoils,
    const char *header)
{
    size_t       length;
    static char  text[2 * LONGEST];

    length = strlen(hostile->proof);
    memcpy(text, hostile->proof, length);

    while (spoils-- > 0) {
        length = hostile_spoil(text, length);
    }

    decide_line(asked, header, text, length);
}


static int
hostile_ask(sluice_judge_t *judge, const hostile_t *hostile, int spoils)
{
    int                        decision, lines;
    decide_request_t           asked;
    sluice_decision_result_t   result;

    decide_begin(&asked);
    asked.request.credential = hostile_credential;
    asked.request.digest = hostile_digest;
    asked.request.own = hostile->own;

    decide_line(&asked, "X-Date", DATE, strlen(DATE));
    decide_line(&asked, "X-Other", "1", 1);

    for (lines = spoils ? (int) test_below(&state, 3) : 0; lines >= 0; lines--)
    {
        hostile_line(&asked, hostile, spoils,
                     test_below(&state, 4) || spoils == 0 ? hostile->header
                                                          : hostile->second);
    }

    decision = decide_run(judge, &asked, &result);

    test_check(decision == PASS || decision == SLUICE_DECISION_RESPOND,
               "%s: decision %d", hostile->plugin, decision);
    test_check(decision == PASS
               ? result.identity == SLUICE_DECISION_CREDENTIAL
               : result.status == 401 || result.status == 400,
               "%s: identity %u, status %u", hostile->plugin, result.identity,
               result.status);

    decide_end(&asked);

    return decision;
}


static void
hostile_plugin(void (*fill)(hostile_t *hostile), long cases)
{
    int              passed;
    long             i;
    uint8_t         *image;
    hostile_t        hostile;
    sluice_judge_t  *judge;

    memset(&hostile, 0, sizeof(hostile_t));
    fill(&hostile);
    current = &hostile;

    image = hostile_image(&hostile);
    judge = decide_create(hostile.plugin, &hostile.config);
    decide_damage(hostile.plugin, &hostile.config, &state);

    test_check(hostile_ask(judge, &hostile, 0) == PASS, "%s: refused",
               hostile.plugin);

    for (i = 0, passed = 0; i < cases; i++) {
        passed += hostile_ask(judge, &hostile,
                              1 + (int) test_below(&state, 4)) == PASS;
    }

    test_check(passed < cases / 2, "%s: %d passed", hostile.plugin, passed);
    printf("decide_hostile: %s: %d of %ld passed\n", hostile.plugin, passed,
           cases);

    sluice_judge_destroy(judge);
    free(image);
}


int
main(void)
{
    long         cases;
    const char  *text;

    state = test_seed("decide_hostile");
    text = getenv("CASES");
    cases = text ? atol(text) : 20000;
    own.date = hostile_date;

    hostile_plugin(hostile_basic, cases);
    hostile_plugin(hostile_hmac, cases);
    hostile_plugin(hostile_jwt, cases);

    return 0;
}
