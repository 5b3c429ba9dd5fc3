
/*
 * JSON, as it is written into a buffer that the caller has measured.  Bytes
 * only, and no allocation: this knows nothing of nginx.
 */

#ifndef SLUICE_JSON_H_INCLUDED
#define SLUICE_JSON_H_INCLUDED


#include <stddef.h>


/*
 * What a string of so many bytes becomes at most: quotes, and six bytes for
 * one ("\u001f").
 */

#define sluice_json_string_bound(length)  (6 * (size_t) (length) + 2)


/*
 * Writes a string with its quotes and returns the end of what it has written.
 * Escaped is what JSON forbids, and "/" and DEL, as lua-cjson does.  Bytes
 * from 0x80 on stay as they are, UTF-8 or not.
 */

char *sluice_json_string(char *out, const char *text, size_t length);

/* The same without the quotes, for a string that is made of several. */
char *sluice_json_escape(char *out, const char *text, size_t length);

/*
 * As sluice_json_string(), for lines that people read and others' programs
 * parse: "/" stays as it is, and what is written is UTF-8 (RFC 3629) whatever
 * the text is.  U+FFFD stands for each byte that is part of no character.
 */

char *sluice_json_utf8(char *out, const char *text, size_t length);


#endif /* SLUICE_JSON_H_INCLUDED */
