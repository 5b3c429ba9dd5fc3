
/*
 * JSON, as it is written into a buffer that the caller has measured.  Bytes
 * only, and no allocation: this knows nothing of nginx.
 */

#ifndef SLUICE_JSON_H_INCLUDED
#define SLUICE_JSON_H_INCLUDED


#include <stddef.h>


/*
 * Room for a string of so many bytes: quotes, and six bytes for one
 * ("\u001f"); sixteen are written at once.
 */

#define sluice_json_string_bound(length)  (6 * (size_t) (length) + 18)


/* FFI */

/*
 * Writes a string with its quotes and returns the end of what it has written.
 * Escaped is what JSON forbids, and "/" and DEL, as lua-cjson does.  Bytes
 * from 0x80 on stay as they are, UTF-8 or not.
 */

char *sluice_json_string(char *out, const char *text, size_t length);

/* The same without the quotes, for a string that is made of several. */
char *sluice_json_escape(char *out, const char *text, size_t length);

/* The same as the name of a header: ASCII's capitals as small letters. */
char *sluice_json_name(char *out, const char *text, size_t length);

/*
 * As sluice_json_string(), for lines that people read and others' programs
 * parse: "/" stays as it is, and what is written is UTF-8 (RFC 3629) whatever
 * the text is.  U+FFFD stands for each byte that is part of no character.
 */

char *sluice_json_utf8(char *out, const char *text, size_t length);

/* FFI end */


/* Whether all of it are characters of UTF-8. */
int sluice_json_is_utf8(const char *text, size_t length);

/*
 * Copies an object that stands without blanks, but its members that are null,
 * {} or [].  Writes at most length + 2 bytes; an object, whatever the text is.
 * json_object.c
 */
char *sluice_json_set_members(char *out, const char *text, size_t length);

/*
 * The bytes behind a string, of which p is the first quote; end: it has no
 * other one.  Of a value without blanks, the comma or the bracket behind it;
 * end: there is none.
 */
const char *sluice_json_after_string(const char *p, const char *end);
const char *sluice_json_after_value(const char *p, const char *end);


#endif /* SLUICE_JSON_H_INCLUDED */
