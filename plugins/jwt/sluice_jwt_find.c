
/*
 * The token of a request (sluice_jwt.h): in the query, in cookies, in headers.
 */


#include "sluice_jwt.h"


typedef struct {
    const sluice_decision_request_t  *request;
    sluice_core_text_t               *token;
    const char                      **words;
    int                               is_found;
} sluice_jwt_search_t;


static int sluice_jwt_in_query(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names);
static int sluice_jwt_in_cookies(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names);
static int sluice_jwt_in_headers(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names);
static int sluice_jwt_note(sluice_jwt_search_t *search,
    const sluice_core_text_t *text);
static int sluice_jwt_cookie(const sluice_core_text_t *line,
    const sluice_core_text_t *name, sluice_core_text_t *value);
static int sluice_jwt_is_name(const char *text, size_t left,
    const sluice_core_text_t *name);
static int sluice_jwt_bearer(const sluice_core_text_t *value,
    sluice_core_text_t *token);
static int sluice_jwt_is_space(char c);


int
sluice_jwt_find(const sluice_jwt_t *conf,
    const sluice_decision_request_t *request, sluice_core_text_t *token,
    const char **words)
{
    int                  rc;
    sluice_jwt_search_t  search;

    search.request = request;
    search.token = token;
    search.words = words;
    search.is_found = 0;
    *words = NULL;

    rc = sluice_jwt_in_query(&search, &conf->parameters);

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_in_cookies(&search, &conf->cookies);
    }

    if (rc == SLUICE_FACT_OK) {
        rc = sluice_jwt_in_headers(&search, &conf->headers);
    }

    return rc == SLUICE_FACT_OK && !search.is_found ? SLUICE_FACT_NONE : rc;
}


static int
sluice_jwt_in_query(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names)
{
    int                    rc;
    char                  *out;
    uint32_t               i;
    sluice_fields_t        fields;
    sluice_core_text_t     query, text;
    sluice_fields_name_t   name;

    if (names->count == 0) {
        return SLUICE_FACT_OK;
    }

    rc = sluice_decision_fact(search->request, SLUICE_ASK_QUERY, &query);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK : rc;
    }

    if (sluice_fields_open(&fields, SLUICE_FIELDS_FORM, NULL, &query)
        != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_OK;
    }

    for (i = 0; rc == SLUICE_FACT_OK && i < names->count; i++) {
        name.name = names->texts[i];
        sluice_fields_find(&fields, &name, 1);

        if (name.count == 0) {
            continue;
        }

        if (name.count > 1 || !name.is_text) {
            *search->words = name.count > 1 ? "Multiple tokens provided"
                                            : "Unrecognizable token";
            return SLUICE_FACT_NONE;
        }

        out = sluice_decision_allocate(search->request,
                                       name.value.length + (size_t) 1);
        if (out == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        text.data = out;
        text.length = (uint32_t) sluice_fields_decode(&fields, &name.value,
                                                      out);
        rc = sluice_jwt_note(search, &text);
    }

    return rc;
}


static int
sluice_jwt_in_cookies(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names)
{
    int                        rc;
    uint32_t                   i;
    sluice_core_text_t         line, text;
    static sluice_core_text_t  cookie = { "cookie", 6 };

    if (names->count == 0) {
        return SLUICE_FACT_OK;
    }

    rc = search->request->calls->joined(search->request->data, &cookie, &line);

    if (rc != SLUICE_FACT_OK) {
        return rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK : rc;
    }

    for (i = 0; rc == SLUICE_FACT_OK && i < names->count; i++) {

        if (sluice_jwt_cookie(&line, &names->texts[i], &text)) {
            rc = sluice_jwt_note(search, &text);
        }
    }

    return rc;
}


static int
sluice_jwt_in_headers(sluice_jwt_search_t *search,
    const sluice_packed_list_t *names)
{
    int                  rc, count;
    uint32_t             i;
    sluice_core_text_t   value, text;

    for (rc = SLUICE_FACT_OK, i = 0; rc == SLUICE_FACT_OK && i < names->count;
         i++)
    {
        count = sluice_decision_header(search->request, &names->texts[i], 0,
                                       &value);

        if (count == SLUICE_DECISION_NOT_KNOWN) {
            return SLUICE_FACT_UNKNOWN;
        }

        if (count && sluice_jwt_bearer(&value, &text)) {
            rc = sluice_jwt_note(search, &text);
        }
    }

    return rc;
}


/* The same token at two places is one. */

static int
sluice_jwt_note(sluice_jwt_search_t *search, const sluice_core_text_t *text)
{
    if (text->length == 0) {
        return SLUICE_FACT_OK;
    }

    if (search->is_found
        && (search->token->length != text->length
            || memcmp(search->token->data, text->data, text->length) != 0))
    {
        *search->words = "Multiple tokens provided";
        return SLUICE_FACT_NONE;
    }

    search->is_found = 1;
    *search->token = *text;

    return SLUICE_FACT_OK;
}


/* As nginx's variables of cookies: the first of this name, in any case. */

static int
sluice_jwt_cookie(const sluice_core_text_t *line,
    const sluice_core_text_t *name, sluice_core_text_t *value)
{
    const char  *p, *end, *stop;

    p = line->data;
    end = p + line->length;

    while (p < end) {

        stop = memchr(p, ';', (size_t) (end - p));
        stop = stop ? stop : end;

        while (p < stop && sluice_jwt_is_space(*p)) {
            p++;
        }

        if (sluice_jwt_is_name(p, (size_t) (stop - p), name)) {
            p += name->length;

            while (p < stop && sluice_jwt_is_space(*p)) {
                p++;
            }

            if (p < stop && *p == '=') {
                value->data = p + 1;
                value->length = (uint32_t) (stop - p - 1);

                return 1;
            }
        }

        p = stop + 1;
    }

    return 0;
}


static int
sluice_jwt_is_name(const char *text, size_t left,
    const sluice_core_text_t *name)
{
    char      a, b;
    uint32_t  i;

    if (left < name->length) {
        return 0;
    }

    for (i = 0; i < name->length; i++) {
        a = text[i];
        b = name->data[i];

        if ((a >= 'A' && a <= 'Z' ? a | 0x20 : a)
            != (b >= 'A' && b <= 'Z' ? b | 0x20 : b))
        {
            return 0;
        }
    }

    return 1;
}


/* Anything before "bearer" is passed over, as in Kong. */

static int
sluice_jwt_bearer(const sluice_core_text_t *value, sluice_core_text_t *token)
{
    uint32_t  i, start;

    for (i = 0; i + 7 < value->length; i++) {

        if ((value->data[i] != 'B' && value->data[i] != 'b')
            || memcmp(&value->data[i + 1], "earer", 5) != 0
            || !sluice_jwt_is_space(value->data[i + 6]))
        {
            continue;
        }

        for (start = i + 7; start < value->length; start++) {

            if (!sluice_jwt_is_space(value->data[start])) {
                token->data = &value->data[start];
                token->length = value->length - start;

                return 1;
            }
        }
    }

    return 0;
}


static int
sluice_jwt_is_space(char c)
{
    return c == ' ' || c == '\t';
}
