
/*
 * Reads what lib/sluice/ffi/packed.lua has written: words of 32 bits, doubles
 * in the machine's order, texts behind their length.
 *
 *
 * SYNOPSIS
 *
 *     typedef struct {
 *         uint32_t              status;
 *         sluice_packed_list_t  methods;
 *     } hello_t;
 *
 *     static const sluice_packed_field_t  fields[] = {
 *         sluice_packed_field(NUMBER, hello_t, status),
 *         sluice_packed_field(LIST, hello_t, methods),
 *         sluice_packed_end
 *     };
 *
 *     rc = sluice_packed_read(fields, &bytes, &memory, &hello);
 *
 * Any bytes are safe.
 */


#ifndef SLUICE_PACKED_H_INCLUDED
#define SLUICE_PACKED_H_INCLUDED


#include "core.h"


/* What stands in the bytes, and what the member is. */

typedef enum {
    SLUICE_PACKED_END = 0,
    SLUICE_PACKED_NUMBER,        /* uint32_t */
    SLUICE_PACKED_DOUBLE,        /* double, never NaN */
    SLUICE_PACKED_TEXT,          /* sluice_core_text_t; data NULL: not given */
    SLUICE_PACKED_LIST           /* sluice_packed_list_t */
} sluice_packed_kind_e;


typedef struct {
    uint32_t   kind;
    uint32_t   offset;           /* of the member */
} sluice_packed_field_t;


#define sluice_packed_field(kind, type, member)                               \
    { SLUICE_PACKED_ ## kind, (uint32_t) offsetof(type, member) }

#define sluice_packed_end  { SLUICE_PACKED_END, 0 }


typedef struct {
    sluice_core_text_t  *texts;
    uint32_t             count;
} sluice_packed_list_t;


/* Where texts are copied to: bytes are an image's, which does not stay. */

typedef struct {
    void  *(*allocate)(void *data, size_t size);
    void   *data;
} sluice_packed_memory_t;


/*
 * Sets the members of a struct.  SLUICE_CORE_OK: all was there and nothing is
 * left; _BAD; _MEMORY.
 */
int sluice_packed_read(const sluice_packed_field_t *fields,
    const sluice_core_text_t *bytes, const sluice_packed_memory_t *memory,
    void *out);


#endif /* SLUICE_PACKED_H_INCLUDED */
