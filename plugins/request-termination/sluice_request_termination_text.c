
/*
 * The text of an echo (sluice_request_termination_echo.h).
 */


#include "sluice_request_termination_echo.h"
#include "json.h"

#include <stdio.h>


#define SLUICE_ECHO_LEAST   4096         /* bytes */
#define SLUICE_ECHO_DIGITS  11


static char *sluice_echo_room(sluice_echo_t *echo, size_t length);


void
sluice_request_echo_name(sluice_echo_t *echo, const char *name)
{
    if (!echo->is_first) {
        sluice_request_echo_put(echo, ",", 1);
    }

    echo->is_first = 0;

    sluice_request_echo_put(echo, "\"", 1);
    sluice_request_echo_put(echo, name, strlen(name));
    sluice_request_echo_put(echo, "\":", 2);
}


void
sluice_request_echo_open(sluice_echo_t *echo, const char *name)
{
    if (name) {
        sluice_request_echo_name(echo, name);
    }

    sluice_request_echo_put(echo, "{", 1);
    echo->is_first = 1;
}


void
sluice_request_echo_close(sluice_echo_t *echo)
{
    sluice_request_echo_put(echo, "}", 1);
    echo->is_first = 0;
}


void
sluice_request_echo_string(sluice_echo_t *echo, const sluice_core_text_t *text)
{
    char  *out;

    out = sluice_echo_room(echo, sluice_json_string_bound(text->length));

    if (out) {
        echo->length = (size_t) (sluice_json_string(out, text->data,
                                                    text->length)
                                 - echo->text);
    }
}


void
sluice_request_echo_number(sluice_echo_t *echo, uint32_t number)
{
    int   length;
    char  text[SLUICE_ECHO_DIGITS];

    length = snprintf(text, sizeof(text), "%u", number);

    sluice_request_echo_put(echo, text, (size_t) length);
}


void
sluice_request_echo_put(sluice_echo_t *echo, const char *text, size_t length)
{
    char  *out;

    out = sluice_echo_room(echo, length);

    if (out && length) {
        memcpy(out, text, length);
        echo->length += length;
    }
}


/* Where so many bytes go, the size doubling; NULL: there is no memory. */

static char *
sluice_echo_room(sluice_echo_t *echo, size_t length)
{
    char    *text;
    size_t   size;

    if (echo->fact != SLUICE_FACT_OK) {
        return NULL;
    }

    if (length > echo->size - echo->length) {
        size = 2 * (echo->length + length) + SLUICE_ECHO_LEAST;

        text = sluice_decision_allocate(echo->request, size);
        if (text == NULL) {
            echo->fact = SLUICE_FACT_MEMORY;
            return NULL;
        }

        if (echo->length) {
            memcpy(text, echo->text, echo->length);
        }

        echo->text = text;
        echo->size = size;
    }

    return echo->text + echo->length;
}
