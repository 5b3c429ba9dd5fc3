
/*
 * The name of a header that is known beforehand, in all the forms that those
 * who set it need.
 */


#ifndef SLUICE_HEADER_NAME_H_INCLUDED
#define SLUICE_HEADER_NAME_H_INCLUDED


#include <stddef.h>
#include <stdint.h>


/* FFI */

/* static, or made by Lua (lib/sluice/header.lua), which never frees it */

typedef struct {
    unsigned char    *name;
    unsigned char    *lowcase;
    size_t            length;
    uint64_t          hash;         /* sluice_header_name_hash() */
    uint32_t          own;          /* replaces the upstream's */
} sluice_header_t;


typedef struct {
    size_t            length;
    unsigned char    *data;
} sluice_header_value_t;


/* a header with what it is to say */

typedef struct {
    sluice_header_t        *header;
    sluice_header_value_t   value;
} sluice_header_line_t;

/* FFI end */


/* Its hash is set before it is sent first. */

#define sluice_header_name(name, lowcase, own)                                \
    { (unsigned char *) name, (unsigned char *) lowcase, sizeof(name) - 1, 0, \
      own }


/* What nginx has of it, as ngx_hash_key() of lowcase. */

static inline void
sluice_header_name_hash(sluice_header_t *header)
{
    size_t    i;
    uint64_t  hash;

    for (i = 0, hash = 0; i < header->length; i++) {
        hash = hash * 31 + header->lowcase[i];
    }

    header->hash = hash;
}


#endif /* SLUICE_HEADER_NAME_H_INCLUDED */
