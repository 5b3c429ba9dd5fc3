
/*
 * Bodies of errors: which format a client accepts, and what it is told in it.
 * Bytes only, and no allocation: this knows nothing of nginx.
 *
 *
 * SYNOPSIS
 *
 *     sluice_answer_words(404, words, &message);
 *     format = sluice_answer_accepted(&accept);
 *
 *     out = allocate(sluice_answer_bound(message.length, id.length));
 *     length = sluice_answer_body(format, &message, &id, out);
 *
 * Words and layouts are Kong's.
 */

#ifndef SLUICE_ANSWER_H_INCLUDED
#define SLUICE_ANSWER_H_INCLUDED


#include "core.h"


/* FFI */

/* For words of a status that has none of its own. */

#define SLUICE_ANSWER_WORDS  64


typedef enum {
    SLUICE_ANSWER_UNKNOWN = -1,
    SLUICE_ANSWER_JSON = 0,
    SLUICE_ANSWER_XML,
    SLUICE_ANSWER_HTML,
    SLUICE_ANSWER_TEXT,
} sluice_answer_format_e;


/*
 * What a client is told where nginx would send its own error page.  The buffer
 * has SLUICE_ANSWER_WORDS bytes.
 */
void sluice_answer_words(int status, char *buffer, sluice_core_text_t *words);

/* Of a media type without parameters, in any case; or _UNKNOWN. */
int sluice_answer_format(const char *type, size_t length);

/*
 * For an Accept header (RFC 9110, 12.5.1): of the media types that are known
 * the one with the highest q, the earlier of equals; JSON where none is known,
 * or each has a q of 0.  A q that is no number counts as 1; of one with more
 * than 15 digits the rest do not count.
 */
int sluice_answer_accepted(const sluice_core_text_t *accept);

/* Content-Type of a format. */
sluice_core_text_t sluice_answer_content_type(int format);

/* Bytes that a body has at most, and the body; returns its length. */
size_t sluice_answer_bound(size_t message_length, size_t id_length);
size_t sluice_answer_body(int format, const sluice_core_text_t *message,
    const sluice_core_text_t *id, char *out);

/* FFI end */


#endif /* SLUICE_ANSWER_H_INCLUDED */
