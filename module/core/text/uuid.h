
/*
 * Ids as text.
 */


#ifndef SLUICE_UUID_H_INCLUDED
#define SLUICE_UUID_H_INCLUDED


#include <stdint.h>


#define SLUICE_UUID_TEXT  36                  /* bytes */


/* Writes an id of 16 bytes as text, with dashes and in lower case. */
void sluice_uuid_write(char *text, const uint8_t *id);


#endif /* SLUICE_UUID_H_INCLUDED */
