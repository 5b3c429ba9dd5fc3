
/*
 * Signatures of requests (sluice_hmac_auth.h): Kong's form of
 * draft-cavage-http-signatures.
 */


#include "sluice_hmac_auth.h"
#include "base64.h"


/* A text that grows. */

typedef struct {
    const sluice_decision_request_t  *request;
    char                             *data;
    size_t                            length;
    size_t                            size;
} sluice_hmac_auth_text_t;


static const char *sluice_hmac_auth_value(const char *p, const char *end,
    const char *name, sluice_core_text_t *value);
static int sluice_hmac_auth_line(sluice_hmac_auth_text_t *text,
    const sluice_core_text_t *name);
static int sluice_hmac_auth_derived(sluice_hmac_auth_text_t *text,
    const sluice_core_text_t *name);
static int sluice_hmac_auth_fact(sluice_hmac_auth_text_t *text, int ask,
    int is_lower);
static int sluice_hmac_auth_append(sluice_hmac_auth_text_t *text,
    const char *data, size_t length);
static char *sluice_hmac_auth_lower(char *text, size_t length);
static int sluice_hmac_auth_is(const sluice_core_text_t *text,
    const char *word);
static int sluice_hmac_auth_equal(const unsigned char *a,
    const unsigned char *b, size_t length);


/*
 * hmac username="u", algorithm="hmac-sha256", headers="date", signature="..."
 * Anything may stand before it; no value has a quote.
 */

int
sluice_hmac_auth_parse(const sluice_core_text_t *value,
    sluice_hmac_auth_parameters_t *parameters)
{
    const char  *p, *q, *end;

    end = value->data + value->length;

    for (p = value->data; end - p > 4; p++) {

        if ((*p != 'H' && *p != 'h') || memcmp(p + 1, "mac", 3) != 0) {
            continue;
        }

        q = sluice_hmac_auth_value(p + 4, end, "username=\"",
                                   &parameters->username);

        if (q) {
            q = sluice_hmac_auth_value(q, end, ",algorithm=\"",
                                       &parameters->algorithm);
        }

        if (q) {
            q = sluice_hmac_auth_value(q, end, ",headers=\"",
                                       &parameters->headers);
        }

        if (q) {
            q = sluice_hmac_auth_value(q, end, ",signature=\"",
                                       &parameters->signature);
        }

        if (q) {
            return SLUICE_FACT_OK;
        }
    }

    return SLUICE_FACT_NONE;
}


/* behind the value; NULL: it is not there, or empty */

static const char *
sluice_hmac_auth_value(const char *p, const char *end, const char *name,
    sluice_core_text_t *value)
{
    size_t       length;
    const char  *quote;

    if (*name == ',') {

        if (p == end || *p++ != ',') {
            return NULL;
        }

        name++;
    }

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    length = strlen(name);

    if ((size_t) (end - p) < length || memcmp(p, name, length) != 0) {
        return NULL;
    }

    p += length;
    quote = memchr(p, '"', (size_t) (end - p));

    if (quote == NULL || quote == p) {
        return NULL;
    }

    value->data = p;
    value->length = (uint32_t) (quote - p);

    return quote + 1;
}


int
sluice_hmac_auth_name(const sluice_core_text_t *list, uint32_t *next,
    sluice_core_text_t *name)
{
    const char  *blank, *start;

    if (*next > list->length) {
        return 0;
    }

    start = list->data + *next;
    blank = memchr(start, ' ', list->length - *next);

    name->data = start;
    name->length = (uint32_t) ((blank ? blank : list->data + list->length)
                               - start);
    *next += name->length + 1;

    return 1;
}


int
sluice_hmac_auth_verify(const sluice_decision_request_t *request,
    const sluice_hmac_auth_parameters_t *parameters,
    const sluice_core_text_t *secret)
{
    int                        rc;
    char                      *signature, digest[16];
    long                       length;
    uint32_t                   next;
    unsigned char              out[SLUICE_DECISION_DIGEST];
    sluice_core_text_t         name, data;
    sluice_hmac_auth_text_t    text;

    memset(&text, 0, sizeof(sluice_hmac_auth_text_t));
    text.request = request;
    next = 0;
    rc = SLUICE_FACT_OK;

    while (rc == SLUICE_FACT_OK
           && sluice_hmac_auth_name(&parameters->headers, &next, &name))
    {
        if (name.data != parameters->headers.data) {
            rc = sluice_hmac_auth_append(&text, "\n", 1);
        }

        if (rc == SLUICE_FACT_OK) {
            rc = sluice_hmac_auth_line(&text, &name);
        }
    }

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    signature = sluice_decision_allocate(request, sluice_base64_bound(
                                             parameters->signature.length));
    if (signature == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    length = sluice_base64_decode(parameters->signature.data,
                                  parameters->signature.length, 0, signature);

    /* "hmac-sha256", which is among those configured */

    memcpy(digest, parameters->algorithm.data + 5,
           parameters->algorithm.length - 5);
    digest[parameters->algorithm.length - 5] = '\0';

    data.data = text.data ? text.data : "";
    data.length = (uint32_t) text.length;

    rc = request->calls->digest(request->data, digest, secret, &data, 1, out);

    if (rc < 0) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_MEMORY : rc;
    }

    return length == rc
           && sluice_hmac_auth_equal(out, (unsigned char *) signature,
                                     (size_t) rc)
           ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}


/* A header's first line; of what is no header: of the request's own line. */

static int
sluice_hmac_auth_line(sluice_hmac_auth_text_t *text,
    const sluice_core_text_t *name)
{
    int                  rc, count;
    char                *copy;
    sluice_core_text_t   lowcase, value;

    copy = sluice_decision_allocate(text->request, name->length + (size_t) 1);
    if (copy == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    memcpy(copy, name->data, name->length);
    lowcase.data = sluice_hmac_auth_lower(copy, name->length);
    lowcase.length = name->length;

    count = sluice_decision_header(text->request, &lowcase, 0, &value);

    if (count == SLUICE_DECISION_NOT_KNOWN) {
        return SLUICE_FACT_UNKNOWN;
    }

    if (count == 0) {
        return sluice_hmac_auth_derived(text, name);
    }

    rc = sluice_hmac_auth_append(text, name->data, name->length);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_hmac_auth_append(text, ": ", 2);
    }

    return rc == SLUICE_FACT_OK
           ? sluice_hmac_auth_append(text, value.data, value.length) : rc;
}


static int
sluice_hmac_auth_derived(sluice_hmac_auth_text_t *text,
    const sluice_core_text_t *name)
{
    int  rc, is_target;

    is_target = sluice_hmac_auth_is(name, "@request-target");

    if (!is_target && !sluice_hmac_auth_is(name, "request-line")) {
        rc = sluice_hmac_auth_append(text, name->data, name->length);

        return rc == SLUICE_FACT_OK ? sluice_hmac_auth_append(text, ":", 1)
                                    : rc;
    }

    rc = is_target ? sluice_hmac_auth_append(text, "@request-target: ", 17)
                   : SLUICE_FACT_OK;

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_hmac_auth_fact(text, SLUICE_ASK_METHOD, is_target);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_hmac_auth_append(text, " ", 1);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_hmac_auth_fact(text, SLUICE_ASK_TARGET, 0);
    }

    if (rc != SLUICE_FACT_OK || is_target) {
        return rc;
    }

    rc = sluice_hmac_auth_append(text, " ", 1);

    return rc == SLUICE_FACT_OK
           ? sluice_hmac_auth_fact(text, SLUICE_ASK_PROTOCOL, 0) : rc;
}


/* What is not there is empty. */

static int
sluice_hmac_auth_fact(sluice_hmac_auth_text_t *text, int ask, int is_lower)
{
    int                  rc;
    size_t               length;
    sluice_core_text_t   value;

    rc = sluice_decision_fact(text->request, ask, &value);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK : rc;
    }

    length = text->length;
    rc = sluice_hmac_auth_append(text, value.data, value.length);

    if (rc == SLUICE_FACT_OK && is_lower) {
        sluice_hmac_auth_lower(text->data + length, value.length);
    }

    return rc;
}


/* The memory doubles: a client may name a long header many times. */

static int
sluice_hmac_auth_append(sluice_hmac_auth_text_t *text, const char *data,
    size_t length)
{
    char    *larger;
    size_t   need;

    need = text->length + length;

    if (need > UINT32_MAX / 2) {
        return SLUICE_FACT_MEMORY;
    }

    if (need > text->size) {
        text->size = 2 * need + 256;

        larger = sluice_decision_allocate(text->request, text->size);
        if (larger == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        if (text->length) {
            memcpy(larger, text->data, text->length);
        }

        text->data = larger;
    }

    if (length) {
        memcpy(text->data + text->length, data, length);
        text->length = need;
    }

    return SLUICE_FACT_OK;
}


static char *
sluice_hmac_auth_lower(char *text, size_t length)
{
    size_t  i;

    for (i = 0; i < length; i++) {

        if (text[i] >= 'A' && text[i] <= 'Z') {
            text[i] |= 0x20;
        }
    }

    return text;
}


static int
sluice_hmac_auth_is(const sluice_core_text_t *text, const char *word)
{
    return text->length == strlen(word)
           && memcmp(text->data, word, text->length) == 0;
}


/* In the same time whatever differs. */

static int
sluice_hmac_auth_equal(const unsigned char *a, const unsigned char *b,
    size_t length)
{
    size_t         i;
    unsigned char  differs;

    for (i = 0, differs = 0; i < length; i++) {
        differs |= a[i] ^ b[i];
    }

    return differs == 0;
}


int
sluice_hmac_auth_verify_body(const sluice_decision_request_t *request)
{
    int                        rc, count;
    char                       words[64] = "SHA-256=", *end;
    unsigned char              out[SLUICE_DECISION_DIGEST];
    sluice_core_text_t         body, header;
    static sluice_core_text_t  name = { "digest", 6 };

    rc = sluice_decision_fact(request, SLUICE_ASK_BODY, &body);

    if (rc == SLUICE_FACT_LARGE) {
        return SLUICE_FACT_NONE;
    }

    if (rc != SLUICE_FACT_OK && rc != SLUICE_FACT_NONE) {
        return rc;
    }

    count = sluice_decision_header(request, &name, 0, &header);

    if (count <= 0) {
        return count ? SLUICE_FACT_UNKNOWN
                     : rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK
                                              : SLUICE_FACT_NONE;
    }

    if (rc == SLUICE_FACT_NONE) {
        body.data = "";
        body.length = 0;
    }

    rc = request->calls->digest(request->data, "sha256", NULL, &body, 1, out);

    if (rc < 0) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_MEMORY : rc;
    }

    end = sluice_base64_encode(out, (size_t) rc, words + 8);

    return header.length == (uint32_t) (end - words)
           && memcmp(header.data, words, header.length) == 0
           ? SLUICE_FACT_OK : SLUICE_FACT_NONE;
}
