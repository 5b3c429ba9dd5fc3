
/*
 * What the plugin hmac-auth decides: it asks for a signature of the request by
 * a consumer's secret (docs/plugins/hmac-auth.md).
 */


#include "sluice_hmac_auth.h"
#include "authenticate.h"


static int sluice_hmac_auth_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_hmac_auth_check(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *username,
    const char **words);
static int sluice_hmac_auth_key(const sluice_decision_request_t *request,
    const sluice_hmac_auth_parameters_t *parameters,
    const sluice_core_text_t *packed, sluice_core_text_t *key);
static void *sluice_hmac_auth_allocate(void *data, size_t size);
static int sluice_hmac_auth_find(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result,
    sluice_hmac_auth_parameters_t *parameters);
static int sluice_hmac_auth_is_fresh(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request);
static int sluice_hmac_auth_is_allowed(const sluice_hmac_auth_t *conf,
    const sluice_hmac_auth_parameters_t *parameters);


static const sluice_packed_field_t  sluice_hmac_auth_fields[] = {
    sluice_packed_field(NUMBER, sluice_hmac_auth_t, flags),
    sluice_packed_field(DOUBLE, sluice_hmac_auth_t, clock_skew),
    sluice_packed_field(TEXT, sluice_hmac_auth_t, anonymous),
    sluice_packed_field(TEXT, sluice_hmac_auth_t, challenge),
    sluice_packed_field(LIST, sluice_hmac_auth_t, enforced),
    sluice_packed_field(LIST, sluice_hmac_auth_t, algorithms),
    sluice_packed_end
};

static const sluice_packed_field_t  sluice_hmac_auth_key_fields[] = {
    sluice_packed_field(TEXT, sluice_hmac_auth_keys_t, sha1),
    sluice_packed_field(TEXT, sluice_hmac_auth_keys_t, sha256),
    sluice_packed_field(TEXT, sluice_hmac_auth_keys_t, sha384),
    sluice_packed_field(TEXT, sluice_hmac_auth_keys_t, sha512),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_hmac_auth = {
    "hmac-auth",
    sizeof(sluice_hmac_auth_t),
    sluice_hmac_auth_fields,
    NULL,
    sluice_hmac_auth_decide,
    NULL
};


/* In the order in which they are looked at. */

static sluice_header_t  sluice_hmac_auth_headers[] = {
    sluice_header_name("Proxy-Authorization", "proxy-authorization", 0),
    sluice_header_name("Authorization", "authorization", 0)
};

static const sluice_core_text_t  sluice_hmac_auth_kind = {
    "hmacauth_credentials", sizeof("hmacauth_credentials") - 1
};

/* As long as those that are generated; nobody is let in by it. */

static const sluice_core_text_t  sluice_hmac_auth_nobodys = {
    "00000000000000000000000000000000", 32
};


static int
sluice_hmac_auth_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_hmac_auth_t  *conf = data;

    int                  rc;
    const char          *words;
    sluice_core_text_t   username;

    result->unknown = "who has been authenticated";

    rc = sluice_authenticate_exempt(request, &conf->anonymous, 1);

    if (rc == SLUICE_FACT_OK) {
        return SLUICE_DECISION_PASS;
    }

    if (rc == SLUICE_FACT_NONE) {
        rc = sluice_hmac_auth_check(conf, request, result, &username, &words);
    }

    if (rc == SLUICE_FACT_OK) {
        result->identifier = username;
        return sluice_authenticate_pass(result);
    }

    return rc == SLUICE_FACT_NONE
           ? sluice_authenticate_without(request, &conf->anonymous,
                                         &conf->challenge, words, result)
           : sluice_decision_without(result, rc, result->unknown);
}


static int
sluice_hmac_auth_check(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_core_text_t *username,
    const char **words)
{
    int                             rc;
    sluice_core_text_t              packed, key;
    sluice_hmac_auth_parameters_t   parameters;

    *words = "Unauthorized";
    result->unknown = "a header";

    rc = sluice_hmac_auth_find(conf, request, result, &parameters);

    if (rc == SLUICE_FACT_OK || rc == SLUICE_FACT_LATER) {
        *words = "HMAC signature cannot be verified, a valid date or x-date "
                 "header is required for HMAC Authentication";

        if (!sluice_hmac_auth_is_fresh(conf, request)) {
            return request->own ? SLUICE_FACT_NONE : SLUICE_FACT_UNKNOWN;
        }

        *words = "HMAC signature cannot be verified";

        if (rc == SLUICE_FACT_LATER
            || !sluice_hmac_auth_is_allowed(conf, &parameters))
        {
            return SLUICE_FACT_NONE;
        }

        *username = parameters.username;
        rc = sluice_authenticate_find(request, &sluice_hmac_auth_kind,
                                      username, result);

        if (rc == SLUICE_FACT_NONE) {

            /* a name that is unknown takes as long as one that is not */

            (void) sluice_hmac_auth_verify(request, &parameters,
                                           &sluice_hmac_auth_nobodys);
        }
    }

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    *words = "HMAC signature does not match";
    result->unknown = "what is signed";

    packed = sluice_authenticate_packed(result);
    rc = sluice_hmac_auth_key(request, &parameters, &packed, &key);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_hmac_auth_verify(request, &parameters, &key);
    }

    if (rc == SLUICE_FACT_OK && (conf->flags & SLUICE_HMAC_AUTH_BODY)) {
        result->unknown = "the body";
        rc = sluice_hmac_auth_verify_body(request);
    }

    return rc;
}


/* Of the hash that is named, which is one of those configured. */

static int
sluice_hmac_auth_key(const sluice_decision_request_t *request,
    const sluice_hmac_auth_parameters_t *parameters,
    const sluice_core_text_t *packed, sluice_core_text_t *key)
{
    sluice_packed_memory_t    memory;
    sluice_hmac_auth_keys_t   keys;

    if (packed->data == NULL) {
        return SLUICE_FACT_NONE;
    }

    memory.allocate = sluice_hmac_auth_allocate;
    memory.data = (void *) request;

    if (sluice_packed_read(sluice_hmac_auth_key_fields, packed, &memory, &keys)
        != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    switch (parameters->algorithm.data[sizeof("hmac-sha") - 1]) {
    case '2':
        *key = keys.sha256;
        break;
    case '3':
        *key = keys.sha384;
        break;
    case '5':
        *key = keys.sha512;
        break;
    default:
        *key = keys.sha1;
        break;
    }

    if (key->data == NULL) {
        *key = keys.sha1;
    }

    return key->data ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


static void *
sluice_hmac_auth_allocate(void *data, size_t size)
{
    return sluice_decision_allocate(data, size);
}


/*
 * SLUICE_FACT_NONE: neither header is there; _LATER: one is, and is of another
 * form.
 */

static int
sluice_hmac_auth_find(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result,
    sluice_hmac_auth_parameters_t *parameters)
{
    int                  rc, count;
    uint32_t             i;
    sluice_header_t     *header;
    sluice_core_text_t   name, value;

    rc = SLUICE_FACT_NONE;

    for (i = 0; i < 2; i++) {
        header = &sluice_hmac_auth_headers[i];
        name.data = (const char *) header->lowcase;
        name.length = (uint32_t) header->length;

        count = sluice_decision_header(request, &name, 0, &value);

        if (count == SLUICE_DECISION_NOT_KNOWN) {
            return SLUICE_FACT_UNKNOWN;
        }

        if (count == 0) {
            continue;
        }

        rc = sluice_hmac_auth_parse(&value, parameters);

        if ((conf->flags & SLUICE_HMAC_AUTH_HIDE)
            && (rc == SLUICE_FACT_OK || i == 1)
            && sluice_decision_edit(request, result,
                                    SLUICE_DECISION_UP_REMOVE_ALIKE, header,
                                    NULL)
               != SLUICE_FACT_OK)
        {
            return SLUICE_FACT_MEMORY;
        }

        if (rc == SLUICE_FACT_OK) {
            return rc;
        }

        rc = SLUICE_FACT_LATER;
    }

    return rc;
}


/* X-Date counts, or Date does; without own nobody knows. */

static int
sluice_hmac_auth_is_fresh(const sluice_hmac_auth_t *conf,
    const sluice_decision_request_t *request)
{
    double                           skew;
    int64_t                          date;
    uint32_t                         i;
    sluice_core_text_t               value;
    sluice_hmac_auth_own_t          *own;
    static const sluice_core_text_t  names[] = {
        { "x-date", 6 }, { "date", 4 }
    };

    own = request->own;

    for (i = 0; own && i < 2; i++) {

        if (sluice_decision_header(request, &names[i], 0, &value) <= 0) {
            continue;
        }

        date = own->date(&value);
        skew = (double) request->now - (double) date;

        if (date != -1
            && skew <= conf->clock_skew && -skew <= conf->clock_skew)
        {
            return 1;
        }
    }

    return 0;
}


static int
sluice_hmac_auth_is_allowed(const sluice_hmac_auth_t *conf,
    const sluice_hmac_auth_parameters_t *parameters)
{
    int                  is_there;
    uint32_t             i, next;
    sluice_core_text_t   name, *wanted;

    for (i = 0, next = 0;
         sluice_hmac_auth_name(&parameters->headers, &next, &name); i++)
    {
        if (i == SLUICE_HMAC_AUTH_NAMES) {
            return 0;
        }
    }

    for (i = 0; i < conf->enforced.count; i++) {
        wanted = &conf->enforced.texts[i];
        next = 0;
        is_there = 0;

        while (!is_there
               && sluice_hmac_auth_name(&parameters->headers, &next, &name))
        {
            is_there = name.length == wanted->length
                       && memcmp(name.data, wanted->data, name.length) == 0;
        }

        if (!is_there) {
            return 0;
        }
    }

    for (i = 0; i < conf->algorithms.count; i++) {
        wanted = &conf->algorithms.texts[i];

        if (wanted->length == parameters->algorithm.length
            && memcmp(wanted->data, parameters->algorithm.data,
                      wanted->length)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}
