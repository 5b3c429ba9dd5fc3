
/*
 * Changes one member of an object that stands as JSON without blanks, such as
 * a log entry: by its name, or by names with dots between them, of objects in
 * each other.
 */

#ifndef SLUICE_JSON_EDIT_H_INCLUDED
#define SLUICE_JSON_EDIT_H_INCLUDED


#include <stddef.h>
#include <stdint.h>


/* FFI */

#define SLUICE_JSON_SET      0
#define SLUICE_JSON_ADD      1          /* where there is none */
#define SLUICE_JSON_REPLACE  2          /* where there is one */

typedef struct {
    const char  *key;                   /* its first byte parts nothing */
    const char  *value;                 /* JSON; NULL: the member goes */
    uint32_t     key_length;
    uint32_t     value_length;
    int32_t      mode;

    /*
     * Set by the edit: the end of the name in key whose member is no object;
     * 0: there was none.
     */

    uint32_t     refused;
} sluice_json_edit_t;

/*
 * Edits text in place, which has room for size bytes.  Objects on the way that
 * are missing are made, but not to replace something.  Returns the length
 * after it; beyond size nothing was done, and so much room is needed.  Costs a
 * look at each byte before the place.
 */

size_t sluice_json_edit(char *text, size_t length, size_t size,
    sluice_json_edit_t *edit);

/* FFI end */


#endif /* SLUICE_JSON_EDIT_H_INCLUDED */
