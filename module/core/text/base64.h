
/*
 * Base64 (RFC 4648).
 */


#ifndef SLUICE_BASE64_H_INCLUDED
#define SLUICE_BASE64_H_INCLUDED


#include <stddef.h>


/* Bytes that are enough for what a text of this length decodes to. */
#define sluice_base64_bound(length)  ((length) / 4 * 3 + 3)


/*
 * Decodes the standard alphabet, or the one for URLs (section 5), with the
 * padding or without.  out may be where the text is.  The number of bytes; -1:
 * the text is not base64: other bytes, a single letter at the end, or too much
 * padding.
 */
long sluice_base64_decode(const char *text, size_t length, int is_url,
    char *out);


/* Encodes with padding; the end of what it has written: 4 bytes for 3. */
char *sluice_base64_encode(const unsigned char *bytes, size_t length,
    char *out);


#endif /* SLUICE_BASE64_H_INCLUDED */
