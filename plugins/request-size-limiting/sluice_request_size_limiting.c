
/*
 * What the plugin request-size-limiting decides: whether a body is too large,
 * by the length that it has, or else while it is read
 * (docs/plugins/request-size-limiting.md).
 */


#include "sluice_request_size_limiting.h"

#include <strings.h>


/* How large a body is, by Content-Length. */

#define SLUICE_SIZE_NONE     -1          /* there is none, or no number */
#define SLUICE_SIZE_UNKNOWN  -2


static int sluice_request_size_limiting_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_request_size_limiting_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int64_t sluice_request_size_limiting_length(
    const sluice_decision_request_t *request);
static int sluice_request_size_limiting_says(
    const sluice_decision_request_t *request, const sluice_core_text_t *name,
    const sluice_core_text_t *word);


static const sluice_packed_field_t  sluice_request_size_limiting_fields[] = {
    sluice_packed_field(DOUBLE, sluice_request_size_limiting_t, bytes),
    sluice_packed_field(NUMBER, sluice_request_size_limiting_t, needs_length),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_request_size_limiting = {
    "request-size-limiting",
    sizeof(sluice_request_size_limiting_t),
    sluice_request_size_limiting_fields,
    sluice_request_size_limiting_ready,
    sluice_request_size_limiting_decide,
    NULL
};


#define sluice_size_text(text)  { text, sizeof(text) - 1 }

static const sluice_core_text_t  sluice_size_length =
    sluice_size_text("content-length");
static const sluice_core_text_t  sluice_size_coding =
    sluice_size_text("transfer-encoding");
static const sluice_core_text_t  sluice_size_chunked =
    sluice_size_text("chunked");
static const sluice_core_text_t  sluice_size_expect =
    sluice_size_text("expect");
static const sluice_core_text_t  sluice_size_continue =
    sluice_size_text("100-continue");


/* Whatever does not fit is as good as none. */

static int
sluice_request_size_limiting_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_request_size_limiting_t  *conf = data;

    (void) source;
    (void) memory;

    if (conf->bytes >= 9.2e18) {
        conf->max = INT64_MAX;

    } else if (conf->bytes <= -9.2e18) {
        conf->max = INT64_MIN;

    } else {
        conf->max = (int64_t) conf->bytes;
    }

    return SLUICE_CORE_OK;
}


static int
sluice_request_size_limiting_decide(void *data,
    const sluice_decision_request_t *request, sluice_decision_result_t *result)
{
    sluice_request_size_limiting_t  *conf = data;

    int          expects, is_chunked;
    int64_t      length;
    const char  *words;

    words = "Request size limit exceeded";

    length = sluice_request_size_limiting_length(request);

    expects = sluice_request_size_limiting_says(request, &sluice_size_expect,
                                                &sluice_size_continue);

    is_chunked = sluice_request_size_limiting_says(request,
                                                   &sluice_size_coding,
                                                   &sluice_size_chunked);

    if (length == SLUICE_SIZE_UNKNOWN || expects < 0 || is_chunked < 0) {
        return sluice_decision_unknown(result, "the headers");
    }

    if (length == SLUICE_SIZE_NONE) {

        if (conf->needs_length && !is_chunked) {
            return sluice_decision_respond(result, 411,
                                 "A valid Content-Length header is required");
        }

        /* one that ends at once is 0 bytes long */

        length = 0;

        sluice_decision_bound(result, conf->max, expects ? 417 : 413, words);
    }

    return length > conf->max
           ? sluice_decision_respond(result, expects ? 417 : 413, words)
           : SLUICE_DECISION_PASS;
}


static int64_t
sluice_request_size_limiting_length(const sluice_decision_request_t *request)
{
    int                 n, digit;
    int64_t             length;
    uint32_t            i;
    sluice_core_text_t  value;

    n = sluice_decision_header(request, &sluice_size_length, 0, &value);

    if (n < 0) {
        return SLUICE_SIZE_UNKNOWN;
    }

    if (n == 0 || value.length == 0) {
        return SLUICE_SIZE_NONE;
    }

    for (i = 0, length = 0; i < value.length; i++) {
        digit = value.data[i] - '0';

        if (digit < 0 || digit > 9) {
            return SLUICE_SIZE_NONE;
        }

        if (length > (INT64_MAX - digit) / 10) {
            return INT64_MAX;
        }

        length = 10 * length + digit;
    }

    return length;
}


/* Whether a header is this one word, in any case; -1: nobody knows. */

static int
sluice_request_size_limiting_says(const sluice_decision_request_t *request,
    const sluice_core_text_t *name, const sluice_core_text_t *word)
{
    int                 n;
    sluice_core_text_t  value;

    n = sluice_decision_header(request, name, 0, &value);

    if (n < 0) {
        return -1;
    }

    return n == 1
           && value.length == word->length
           && strncasecmp(value.data, word->data, word->length) == 0;
}
