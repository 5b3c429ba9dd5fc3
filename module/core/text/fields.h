
/*
 * Named fields of a query, or of the body of a request: what stands under a
 * name, and the text without it.  Bytes only, and no allocation: this knows
 * nothing of nginx.
 *
 *
 * SYNOPSIS
 *
 *     kind = sluice_fields_kind(&content_type);
 *     rc = sluice_fields_open(&fields, kind, &content_type, &body);
 *
 *     name.name = ...;
 *     sluice_fields_find(&fields, &name, 1);
 *
 *     if (name.count == 1 && name.is_text) {
 *         length = sluice_fields_decode(&fields, &name.value, buffer);
 *     }
 *
 *     sluice_fields_without(&fields, &name, 1, buffer, &rest);
 *
 * Of "a=%31&b", for the name "a", that is: value "%31", decoded "1", rest "b".
 *
 *
 * WHAT IS A FIELD
 *
 * - Of a form, and of a query: what stands between two "&"; "+" is a space.
 *   One without "=" is a flag, which has no text.
 * - Of a loose form: the same, between "&" or ";", as some read forms and
 *   queries.  It is for taking fields out that one of them would find: of
 *   "a;b=1;c&d" the field b is "b=1", and a is all before "&".
 * - Of JSON: a member of the outermost object.  What lua-cjson 2.1.0 takes is
 *   taken: RFC 8259, and also the numbers of strtod() (hexadecimal, "inf",
 *   "nan"), control characters in strings, anything behind a NUL that follows
 *   the object.
 * - Of multipart/form-data (RFC 7578; RFC 2046, 5.1.1): a part.  Its name is
 *   that of the last Content-Disposition.  One without an empty line has no
 *   text.
 *
 * What is left without a field is, byte for byte, what was sent: nothing is
 * decoded and encoded again, which would lose long integers, the order of
 * members, and the difference between "[]" and "{}".
 *
 *
 * LIMITS
 *
 * Any bytes are taken, NUL too, up to 2^28 of them.  JSON is nested 1,000 deep
 * at most; a boundary has no CR, as no header can.  Time is linear in the
 * text: each verb passes over it once, and compares each field with each name
 * up to the first byte that differs.
 */

#ifndef SLUICE_FIELDS_H_INCLUDED
#define SLUICE_FIELDS_H_INCLUDED


#include "core.h"


/* FFI */

#define SLUICE_FIELDS_MAX    (1u << 28)     /* bytes of a text */
#define SLUICE_FIELDS_DEPTH  1000           /* of JSON */


typedef enum {
    SLUICE_FIELDS_NONE = 0,
    SLUICE_FIELDS_FORM,
    SLUICE_FIELDS_JSON,
    SLUICE_FIELDS_MULTIPART,
    SLUICE_FIELDS_LOOSE
} sluice_fields_kind_e;


/* A text that was opened; it points into what it was opened with. */

typedef struct {
    const char          *text;
    const char          *first;     /* field, or where one would be */
    const char          *end;
    sluice_core_text_t   boundary;
    int                  kind;
} sluice_fields_t;


/* A name, and what find() says of it. */

typedef struct {
    sluice_core_text_t   name;
    sluice_core_text_t   value;     /* of the first field, as it stands; of
                                       arrays and objects nothing */
    uint32_t             is_text;   /* it is one: no flag, number, array */
    uint32_t             count;     /* of fields; an array counts as several */
} sluice_fields_name_t;


/* By the value of a Content-Type; SLUICE_FIELDS_NONE: of no kind. */
int sluice_fields_kind(const sluice_core_text_t *type);

/*
 * SLUICE_CORE_OK; _NONE: this is no text of its kind.  type, which only a
 * multipart form needs, and text have to live as long as fields does.
 */
int sluice_fields_open(sluice_fields_t *fields, int kind,
    const sluice_core_text_t *type, const sluice_core_text_t *text);

/* Looks for all names in one pass.  Names are exact. */
void sluice_fields_find(const sluice_fields_t *fields,
    sluice_fields_name_t *names, size_t count);

/* Decodes a value into a buffer as long as it; returns the length. */
size_t sluice_fields_decode(const sluice_fields_t *fields,
    const sluice_core_text_t *value, char *buffer);

/*
 * Writes the text without the fields of these names into a buffer as long as
 * the text.  SLUICE_CORE_OK; _NONE: there is no such field, and no rest.
 */
int sluice_fields_without(const sluice_fields_t *fields,
    const sluice_fields_name_t *names, size_t count, char *buffer,
    sluice_core_text_t *rest);

/* FFI end */


#endif /* SLUICE_FIELDS_H_INCLUDED */
