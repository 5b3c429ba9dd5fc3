
/*
 * What the files of fields.h share: how each kind is cut, and spelt.
 */

#ifndef SLUICE_FIELDS_KINDS_H_INCLUDED
#define SLUICE_FIELDS_KINDS_H_INCLUDED


#include "fields.h"


/* The most bytes that one spelling stands for. */
#define SLUICE_FIELDS_SPELT  4


typedef enum {
    SLUICE_FIELD_FLAG = 0,          /* no text */
    SLUICE_FIELD_TEXT,
    SLUICE_FIELD_TABLE              /* JSON's arrays and objects */
} sluice_field_type_e;


/* A field as it stands; name.data is NULL where it has none. */

typedef struct {
    const char          *from;
    const char          *to;
    sluice_core_text_t   name;
    sluice_core_text_t   value;
    int                  type;
} sluice_field_t;


/* Where the next field begins; NULL: none is left, and tail is known. */

typedef struct {
    const char          *at;
    const char          *tail;
} sluice_fields_cursor_t;


#define sluice_fields_text(text, from, to)                                    \
    ((text)->data = (from), (text)->length = (uint32_t) ((to) - (from)))


/* Does the text begin with a word, in any case of letters? */
int sluice_fields_begins(const char *p, const char *end, const char *word);

/*
 * Moves *p behind what it points to, which is spelt for one to four bytes, and
 * writes these.
 */
size_t sluice_fields_json_spelt(const char **p, const char *end, char *out);


/* The UTF-16 code unit that "\uXXXX" is; -1: this is none. */
int sluice_fields_json_unit(const char *p, const char *end);

/* Behind JSON's white space. */
const char *sluice_fields_json_blank(const char *p, const char *end);

/* Is it a whole value, and nothing else? */
int sluice_fields_json_is_valid(const char *p, const char *end);

/* Where the first member would begin; NULL: this is no object. */
const char *sluice_fields_json_first(const char *p, const char *end);

/*
 * Whether there is another field, of a text that was opened.  All but the last
 * delimiter of a multipart form begin one.
 */
int sluice_fields_json_next(sluice_fields_cursor_t *cursor, const char *end,
    sluice_field_t *field);
int sluice_fields_multipart_next(sluice_fields_cursor_t *cursor,
    const sluice_fields_t *fields, sluice_field_t *field);

/* The boundary that a Content-Type names; of length 0: none. */
void sluice_fields_multipart_boundary(const sluice_core_text_t *type,
    sluice_core_text_t *boundary);

/* The first delimiter, without its CRLF; NULL: none, or no last one. */
const char *sluice_fields_multipart_first(const char *p, const char *end,
    const sluice_core_text_t *boundary);

/* Where a delimiter's own text begins: with its CRLF, if it has one. */
const char *sluice_fields_multipart_from(const sluice_fields_t *fields,
    const char *delimiter);


#endif /* SLUICE_FIELDS_KINDS_H_INCLUDED */
