
#include "answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "json.h"


#define SLUICE_ANSWER_DIGITS  15    /* that a double holds exactly */


/* A piece of a layout: text, then the message or the id behind it. */

typedef enum {
    SLUICE_ANSWER_NOTHING = 0,
    SLUICE_ANSWER_MESSAGE,
    SLUICE_ANSWER_ID
} sluice_answer_part_e;


typedef struct {
    const char            *text;
    sluice_answer_part_e   then;
} sluice_answer_piece_t;


typedef struct {
    const char             *content_type;
    char                 *(*write)(char *out, const char *text, size_t length);
    sluice_answer_piece_t   pieces[4];      /* to the first without a part */
} sluice_answer_layout_t;


typedef struct {
    const char  *name;
    size_t       length;
    int          format;
} sluice_answer_type_t;


static int sluice_answer_range(const char *p, const char *end);
static double sluice_answer_quality(const char *p, const char *end);
static const char *sluice_answer_parameter(const char *p, const char *end);
static double sluice_answer_number(const char *p, const char *end);
static const char *sluice_answer_skip(const char *p, const char *end);
static char *sluice_answer_plain(char *out, const char *text, size_t length);
static char *sluice_answer_markup(char *out, const char *text, size_t length);


#define sluice_answer_space(c)  ((c) == ' ' || ((c) >= '\t' && (c) <= '\r'))
#define sluice_answer_digit(c)  ((c) >= '0' && (c) <= '9')

#define sluice_answer_type(name, format)                                      \
    { name, sizeof(name) - 1, format }


static const sluice_answer_layout_t  sluice_answer_layouts[] = {

    [SLUICE_ANSWER_JSON] = {
        "application/json; charset=utf-8", sluice_json_string,
        { { "{\n  \"message\":", SLUICE_ANSWER_MESSAGE },
          { ",\n  \"request_id\":", SLUICE_ANSWER_ID },
          { "\n}", SLUICE_ANSWER_NOTHING } }
    },

    [SLUICE_ANSWER_XML] = {
        "application/xml; charset=utf-8", sluice_answer_markup,
        { { "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>\n  <message>",
            SLUICE_ANSWER_MESSAGE },
          { "</message>\n  <requestid>", SLUICE_ANSWER_ID },
          { "</requestid>\n</error>", SLUICE_ANSWER_NOTHING } }
    },

    [SLUICE_ANSWER_HTML] = {
        "text/html; charset=utf-8", sluice_answer_markup,
        { { "<!doctype html>\n<html>\n<head>\n  <meta charset=\"utf-8\">\n"
            "  <title>Error</title>\n</head>\n<body>\n  <h1>Error</h1>\n  <p>",
            SLUICE_ANSWER_MESSAGE },
          { ".</p>\n  <p>request_id: ", SLUICE_ANSWER_ID },
          { "</p>\n</body>\n</html>\n", SLUICE_ANSWER_NOTHING } }
    },

    [SLUICE_ANSWER_TEXT] = {
        "text/plain; charset=utf-8", sluice_answer_plain,
        { { "", SLUICE_ANSWER_MESSAGE },
          { "\nrequest_id: ", SLUICE_ANSWER_ID },
          { "\n", SLUICE_ANSWER_NOTHING } }
    },
};


static const sluice_answer_type_t  sluice_answer_types[] = {
    sluice_answer_type("*/*", SLUICE_ANSWER_JSON),
    sluice_answer_type("application/*", SLUICE_ANSWER_JSON),
    sluice_answer_type("application/json", SLUICE_ANSWER_JSON),
    sluice_answer_type("application/xml", SLUICE_ANSWER_XML),
    sluice_answer_type("text/xml", SLUICE_ANSWER_XML),
    sluice_answer_type("text/html", SLUICE_ANSWER_HTML),
    sluice_answer_type("application/xhtml+xml", SLUICE_ANSWER_HTML),
    sluice_answer_type("text/*", SLUICE_ANSWER_TEXT),
    sluice_answer_type("text/plain", SLUICE_ANSWER_TEXT),
    { NULL, 0, 0 }
};


void
sluice_answer_words(int status, char *buffer, sluice_core_text_t *words)
{
    const char  *text;

    switch (status) {
    case 400: text = "Bad request"; break;
    case 401: text = "Unauthorized"; break;
    case 402: text = "Payment required"; break;
    case 403: text = "Forbidden"; break;
    case 404: text = "Not found"; break;
    case 405: text = "Method not allowed"; break;
    case 406: text = "Not acceptable"; break;
    case 407: text = "Proxy authentication required"; break;
    case 408: text = "Request timeout"; break;
    case 409: text = "Conflict"; break;
    case 410: text = "Gone"; break;
    case 411: text = "Length required"; break;
    case 412: text = "Precondition failed"; break;
    case 413: text = "Payload too large"; break;
    case 414: text = "URI too long"; break;
    case 415: text = "Unsupported media type"; break;
    case 416: text = "Range not satisfiable"; break;
    case 417: text = "Expectation failed"; break;
    case 418: text = "I'm a teapot"; break;
    case 421: text = "Misdirected request"; break;
    case 422: text = "Unprocessable entity"; break;
    case 423: text = "Locked"; break;
    case 424: text = "Failed dependency"; break;
    case 425: text = "Too early"; break;
    case 426: text = "Upgrade required"; break;
    case 428: text = "Precondition required"; break;
    case 429: text = "Too many requests"; break;
    case 431: text = "Request header fields too large"; break;
    case 451: text = "Unavailable for legal reasons"; break;
    case 494: text = "Request header or cookie too large"; break;
    case 497: text = "The plain HTTP request was sent to HTTPS port"; break;
    case 500: text = "An unexpected error occurred"; break;
    case 501: text = "Not implemented"; break;
    case 502:
        text = "An invalid response was received from the upstream server";
        break;
    case 503: text = "The upstream server is currently unavailable"; break;
    case 504: text = "The upstream server is timing out"; break;
    case 505: text = "HTTP version not supported"; break;
    case 506: text = "Variant also negotiates"; break;
    case 507: text = "Insufficient storage"; break;
    case 508: text = "Loop detected"; break;
    case 510: text = "Not extended"; break;
    case 511: text = "Network authentication required"; break;
    default:
        snprintf(buffer, SLUICE_ANSWER_WORDS,
                 "The upstream server responded with %d", status);
        text = buffer;
    }

    words->data = text;
    words->length = (uint32_t) strlen(text);
}


int
sluice_answer_format(const char *type, size_t length)
{
    const sluice_answer_type_t  *known;

    for (known = sluice_answer_types; known->name; known++) {

        if (known->length == length
            && strncasecmp(known->name, type, length) == 0)
        {
            return known->format;
        }
    }

    return SLUICE_ANSWER_UNKNOWN;
}


int
sluice_answer_accepted(const sluice_core_text_t *accept)
{
    int          best, format;
    double       quality, highest;
    const char  *p, *end, *comma;

    best = SLUICE_ANSWER_JSON;
    highest = 0;

    p = accept->data;
    end = p + accept->length;

    for ( /* void */ ; p < end; p = comma + 1) {

        comma = memchr(p, ',', (size_t) (end - p));
        if (comma == NULL) {
            comma = end;
        }

        format = sluice_answer_range(p, comma);
        if (format == SLUICE_ANSWER_UNKNOWN) {
            continue;
        }

        quality = sluice_answer_quality(p, comma);

        if (quality > highest) {
            best = format;
            highest = quality;
        }
    }

    return best;
}


static int
sluice_answer_range(const char *p, const char *end)
{
    const char  *type;

    type = sluice_answer_skip(p, end);

    for (p = type; p < end && *p != ';' && !sluice_answer_space(*p); p++) {
        /* void */
    }

    return sluice_answer_format(type, (size_t) (p - type));
}


static double
sluice_answer_quality(const char *p, const char *end)
{
    const char  *value;

    for ( ;; ) {

        p = memchr(p, ';', (size_t) (end - p));
        if (p == NULL) {
            return 1;
        }

        value = sluice_answer_parameter(++p, end);

        if (value) {
            return sluice_answer_number(value, end);
        }
    }
}


/* the value of "q" in " q = 0.5", behind a semicolon; NULL: it is none */

static const char *
sluice_answer_parameter(const char *p, const char *end)
{
    p = sluice_answer_skip(p, end);

    if (p == end || (*p != 'q' && *p != 'Q')) {
        return NULL;
    }

    p = sluice_answer_skip(p + 1, end);

    if (p == end || *p != '=') {
        return NULL;
    }

    p = sluice_answer_skip(p + 1, end);

    return p < end && (*p == '.' || sluice_answer_digit(*p)) ? p : NULL;
}


/* digits with a point; 1 for what is no number, such as "1.0.0" */

static double
sluice_answer_number(const char *p, const char *end)
{
    int     digits, points, any;
    double  value, scale;

    value = 0;
    scale = 1;
    digits = 0;
    points = 0;
    any = 0;

    for ( /* void */ ; p < end; p++) {

        if (*p == '.') {
            points++;
            continue;
        }

        if (!sluice_answer_digit(*p)) {
            break;
        }

        any = 1;

        if (digits == SLUICE_ANSWER_DIGITS) {
            continue;
        }

        value = value * 10 + (*p - '0');

        if (points) {
            scale *= 10;
        }

        if (points || value > 0) {
            digits++;
        }
    }

    return any && points <= 1 ? value / scale : 1;
}


static const char *
sluice_answer_skip(const char *p, const char *end)
{
    while (p < end && sluice_answer_space(*p)) {
        p++;
    }

    return p;
}


sluice_core_text_t
sluice_answer_content_type(int format)
{
    sluice_core_text_t  type;

    type.data = sluice_answer_layouts[format].content_type;
    type.length = (uint32_t) strlen(type.data);

    return type;
}


size_t
sluice_answer_bound(size_t message_length, size_t id_length)
{
    /* more than any layout, and what the longest escapes take */

    return 256 + sluice_json_string_bound(message_length)
           + sluice_json_string_bound(id_length);
}


size_t
sluice_answer_body(int format, const sluice_core_text_t *message,
    const sluice_core_text_t *id, char *out)
{
    char                          *p;
    const sluice_answer_piece_t   *piece;
    const sluice_answer_layout_t  *layout;

    layout = &sluice_answer_layouts[format];
    p = out;

    for (piece = layout->pieces; /* void */ ; piece++) {

        p = stpcpy(p, piece->text);

        switch (piece->then) {
        case SLUICE_ANSWER_MESSAGE:
            p = layout->write(p, message->data, message->length);
            break;
        case SLUICE_ANSWER_ID:
            p = layout->write(p, id->data, id->length);
            break;
        default:
            return (size_t) (p - out);
        }
    }
}


static char *
sluice_answer_plain(char *out, const char *text, size_t length)
{
    if (length) {
        memcpy(out, text, length);
    }

    return out + length;
}


static char *
sluice_answer_markup(char *out, const char *text, size_t length)
{
    size_t  i;

    for (i = 0; i < length; i++) {

        switch (text[i]) {
        case '<': out = stpcpy(out, "&lt;"); break;
        case '>': out = stpcpy(out, "&gt;"); break;
        case '&': out = stpcpy(out, "&amp;"); break;
        case '"': out = stpcpy(out, "&quot;"); break;
        default: *out++ = text[i];
        }
    }

    return out;
}
