
/*
 * The reader of what plugins' pack() has written (packed.h).
 */


#include "packed.h"

#include <string.h>


#define SLUICE_PACKED_NONE  0xffffffff


typedef struct {
    const char                    *at;
    const char                    *end;
    const sluice_packed_memory_t  *memory;
} sluice_packed_t;


static int sluice_packed_member(sluice_packed_t *packed, uint32_t kind,
    void *member);
static int sluice_packed_take(sluice_packed_t *packed, void *out,
    size_t length);
static int sluice_packed_text(sluice_packed_t *packed,
    sluice_core_text_t *text);
static int sluice_packed_list(sluice_packed_t *packed,
    sluice_packed_list_t *list);


int
sluice_packed_read(const sluice_packed_field_t *fields,
    const sluice_core_text_t *bytes, const sluice_packed_memory_t *memory,
    void *out)
{
    int              rc;
    sluice_packed_t  packed;

    packed.at = bytes->data;
    packed.end = bytes->data ? bytes->data + bytes->length : NULL;
    packed.memory = memory;

    for ( /* void */ ; fields->kind != SLUICE_PACKED_END; fields++) {

        rc = sluice_packed_member(&packed, fields->kind,
                                  (char *) out + fields->offset);

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return packed.at == packed.end ? SLUICE_CORE_OK : SLUICE_CORE_BAD;
}


static int
sluice_packed_member(sluice_packed_t *packed, uint32_t kind, void *member)
{
    int      rc;
    double  *number;

    switch (kind) {

    case SLUICE_PACKED_NUMBER:
        return sluice_packed_take(packed, member, sizeof(uint32_t));

    case SLUICE_PACKED_DOUBLE:
        number = member;
        rc = sluice_packed_take(packed, number, sizeof(double));

        return rc == SLUICE_CORE_OK && *number != *number ? SLUICE_CORE_BAD
                                                          : rc;

    case SLUICE_PACKED_TEXT:
        return sluice_packed_text(packed, member);

    case SLUICE_PACKED_LIST:
        return sluice_packed_list(packed, member);

    default:
        return SLUICE_CORE_BAD;
    }
}


static int
sluice_packed_take(sluice_packed_t *packed, void *out, size_t length)
{
    if ((size_t) (packed->end - packed->at) < length) {
        return SLUICE_CORE_BAD;
    }

    memcpy(out, packed->at, length);
    packed->at += length;

    return SLUICE_CORE_OK;
}


static int
sluice_packed_text(sluice_packed_t *packed, sluice_core_text_t *text)
{
    char      *data;
    uint32_t   length;

    text->data = NULL;
    text->length = 0;

    if (sluice_packed_take(packed, &length, sizeof(length))
        != SLUICE_CORE_OK)
    {
        return SLUICE_CORE_BAD;
    }

    if (length == SLUICE_PACKED_NONE) {
        return SLUICE_CORE_OK;
    }

    if (length > (size_t) (packed->end - packed->at)) {
        return SLUICE_CORE_BAD;
    }

    data = packed->memory->allocate(packed->memory->data,
                                    length ? length : 1);
    if (data == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    memcpy(data, packed->at, length);
    packed->at += length;

    text->data = data;
    text->length = length;

    return SLUICE_CORE_OK;
}


/* each text has a length, of four bytes: not more than there are bytes for */

static int
sluice_packed_list(sluice_packed_t *packed, sluice_packed_list_t *list)
{
    int       rc;
    uint32_t  i, count;

    list->texts = NULL;
    list->count = 0;

    if (sluice_packed_take(packed, &count, sizeof(count)) != SLUICE_CORE_OK
        || count > (size_t) (packed->end - packed->at) / sizeof(uint32_t))
    {
        return SLUICE_CORE_BAD;
    }

    list->texts = packed->memory->allocate(packed->memory->data,
                                           (count + (size_t) 1)
                                           * sizeof(sluice_core_text_t));
    if (list->texts == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    for (i = 0; i < count; i++) {
        rc = sluice_packed_text(packed, &list->texts[i]);

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    list->count = count;

    return SLUICE_CORE_OK;
}
