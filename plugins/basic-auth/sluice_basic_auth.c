
/*
 * What the plugin basic-auth decides: it asks for a user's name and password
 * (docs/plugins/basic-auth.md; RFC 7617).
 */


#include "sluice_basic_auth.h"
#include "authenticate.h"
#include "base64.h"
#include "uuid.h"


#define SLUICE_BASIC_AUTH_SHA1  20


/* What a header has. */

typedef struct {
    sluice_core_text_t  name;
    sluice_core_text_t  password;
} sluice_basic_auth_pair_t;


static int sluice_basic_auth_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_basic_auth_find(const sluice_basic_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_basic_auth_pair_t *pair);
static int sluice_basic_auth_read(const sluice_decision_request_t *request,
    const sluice_header_t *header, sluice_basic_auth_pair_t *pair);
static int sluice_basic_auth_decode(const sluice_decision_request_t *request,
    const sluice_core_text_t *value, sluice_basic_auth_pair_t *pair);
static int sluice_basic_auth_verify(const sluice_decision_request_t *request,
    const sluice_decision_result_t *result,
    const sluice_basic_auth_pair_t *pair);
static int sluice_basic_auth_digest(const sluice_decision_request_t *request,
    const uint8_t *consumer, const sluice_basic_auth_pair_t *pair,
    unsigned char *digest);


static const sluice_packed_field_t  sluice_basic_auth_fields[] = {
    sluice_packed_field(NUMBER, sluice_basic_auth_t, hide_credentials),
    sluice_packed_field(TEXT, sluice_basic_auth_t, anonymous),
    sluice_packed_field(TEXT, sluice_basic_auth_t, challenge),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_basic_auth = {
    "basic-auth",
    sizeof(sluice_basic_auth_t),
    sluice_basic_auth_fields,
    NULL,
    sluice_basic_auth_decide,
    NULL
};


/* In the order in which they are looked at. */

static sluice_header_t  sluice_basic_auth_headers[] = {
    sluice_header_name("Proxy-Authorization", "proxy-authorization", 0),
    sluice_header_name("Authorization", "authorization", 0)
};

static const sluice_core_text_t  sluice_basic_auth_kind = {
    "basicauth_credentials", sizeof("basicauth_credentials") - 1
};

static const uint8_t  sluice_basic_auth_nobody[16];


static int
sluice_basic_auth_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_basic_auth_t  *conf = data;

    int                        rc;
    unsigned char              digest[SLUICE_DECISION_DIGEST];
    sluice_basic_auth_pair_t   pair;

    pair.password.data = NULL;
    result->unknown = "who has been authenticated";

    rc = sluice_authenticate_exempt(request, &conf->anonymous, 1);

    if (rc == SLUICE_FACT_OK) {
        return SLUICE_DECISION_PASS;
    }

    if (rc == SLUICE_FACT_NONE) {
        rc = sluice_basic_auth_find(conf, request, result, &pair);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_basic_auth_verify(request, result, &pair);

    } else if (rc == SLUICE_FACT_NONE && pair.password.data) {

        /* a name that is unknown takes as long as one that is not */

        (void) sluice_basic_auth_digest(request, sluice_basic_auth_nobody,
                                        &pair, digest);
    }

    if (rc == SLUICE_FACT_OK) {
        result->identifier = pair.name;
        return sluice_authenticate_pass(result);
    }

    return rc == SLUICE_FACT_NONE
           ? sluice_authenticate_without(request, &conf->anonymous,
                                         &conf->challenge, "Unauthorized",
                                         result)
           : sluice_decision_without(result, rc, result->unknown);
}


/* A name of the first header that nobody has leads to the second one. */

static int
sluice_basic_auth_find(const sluice_basic_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_basic_auth_pair_t *pair)
{
    int               rc, found;
    uint32_t          i;
    sluice_header_t  *header;

    found = SLUICE_FACT_NONE;

    for (i = 0; found == SLUICE_FACT_NONE && i < 2; i++) {
        header = &sluice_basic_auth_headers[i];

        result->unknown = "a header";
        found = sluice_basic_auth_read(request, header, pair);

        if (conf->hide_credentials) {
            rc = sluice_decision_edit(request, result,
                                      SLUICE_DECISION_UP_REMOVE_ALIKE, header,
                                      NULL);
            if (rc != SLUICE_FACT_OK) {
                return rc;
            }
        }

        if (found == SLUICE_FACT_OK) {
            found = sluice_authenticate_find(request, &sluice_basic_auth_kind,
                                             &pair->name, result);
        }
    }

    return found;
}


/* Anything before "basic" is passed over, as in Kong. */

static int
sluice_basic_auth_read(const sluice_decision_request_t *request,
    const sluice_header_t *header, sluice_basic_auth_pair_t *pair)
{
    int                  count;
    uint32_t             i;
    sluice_core_text_t   name, value;

    name.data = (const char *) header->lowcase;
    name.length = (uint32_t) header->length;

    count = sluice_decision_header(request, &name, 0, &value);

    if (count <= 0) {
        return count ? SLUICE_FACT_UNKNOWN : SLUICE_FACT_NONE;
    }

    for (i = 0; i + 5 < value.length; i++) {

        if ((value.data[i] == 'B' || value.data[i] == 'b')
            && memcmp(&value.data[i + 1], "asic", 4) == 0)
        {
            value.data += i + 5;
            value.length -= i + 5;

            return sluice_basic_auth_decode(request, &value, pair);
        }
    }

    return SLUICE_FACT_NONE;
}


/*
 * name:password, where a name has no ":" and is not empty; a password ends
 * with its line.
 */

static int
sluice_basic_auth_decode(const sluice_decision_request_t *request,
    const sluice_core_text_t *value, sluice_basic_auth_pair_t *pair)
{
    char    *text, *end, *colon, *p;
    long     length;
    size_t   start;

    for (start = 0; start < value->length; start++) {

        if (value->data[start] != ' ' && value->data[start] != '\t') {
            break;
        }
    }

    text = sluice_decision_allocate(request,
                                    sluice_base64_bound(value->length));
    if (text == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    length = sluice_base64_decode(&value->data[start], value->length - start,
                                  0, text);

    if (length <= 0) {
        return SLUICE_FACT_NONE;
    }

    end = text + length;

    for (p = text; p < end && *p == ':'; p++) { /* void */ }

    colon = memchr(p, ':', (size_t) (end - p));

    if (colon == NULL) {
        return SLUICE_FACT_NONE;
    }

    pair->name.data = p;
    pair->name.length = (uint32_t) (colon - p);
    pair->password.data = colon + 1;

    p = memchr(colon + 1, '\n', (size_t) (end - colon - 1));
    pair->password.length = (uint32_t) ((p ? p : end) - colon - 1);

    return SLUICE_FACT_OK;
}


/*
 * What is stored is the SHA-1 of the password and the consumer's id, in hex,
 * as Kong stores it.  The comparison takes the same time whatever differs.
 */

static int
sluice_basic_auth_verify(const sluice_decision_request_t *request,
    const sluice_decision_result_t *result,
    const sluice_basic_auth_pair_t *pair)
{
    int                    rc, differs;
    size_t                 i;
    unsigned char          digest[SLUICE_DECISION_DIGEST];
    sluice_core_text_t     stored;
    sluice_core_entity_t   head;
    static const char      hex[] = "0123456789abcdef";

    sluice_core_head(&result->who.consumer, &head);

    rc = sluice_basic_auth_digest(request, head.id, pair, digest);

    if (rc < 0) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_MEMORY : rc;
    }

    stored = sluice_authenticate_packed(result);

    if (rc != SLUICE_BASIC_AUTH_SHA1
        || stored.length != 2 * SLUICE_BASIC_AUTH_SHA1)
    {
        return SLUICE_FACT_NONE;
    }

    for (i = 0, differs = 0; i < SLUICE_BASIC_AUTH_SHA1; i++) {
        differs |= hex[digest[i] >> 4] ^ stored.data[2 * i];
        differs |= hex[digest[i] & 0x0f] ^ stored.data[2 * i + 1];
    }

    return differs ? SLUICE_FACT_NONE : SLUICE_FACT_OK;
}


static int
sluice_basic_auth_digest(const sluice_decision_request_t *request,
    const uint8_t *consumer, const sluice_basic_auth_pair_t *pair,
    unsigned char *digest)
{
    char                 id[SLUICE_UUID_TEXT];
    sluice_core_text_t   texts[2];

    sluice_uuid_write(id, consumer);

    texts[0] = pair->password;
    texts[1].data = id;
    texts[1].length = SLUICE_UUID_TEXT;

    return request->calls->digest(request->data, "sha1", NULL, texts, 2,
                                  digest);
}
