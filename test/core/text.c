
#include "text.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>


sluice_core_text_t
text_own(const char *data, size_t length)
{
    char                *copy;
    sluice_core_text_t   text;

    copy = malloc(length ? length : 1);
    test_check(copy != NULL, "no memory");
    memcpy(copy, data, length);

    /* a text of no bytes begins where its memory ends */

    text.data = length ? copy : copy + 1;
    text.length = (uint32_t) length;

    return text;
}


void
text_free(const sluice_core_text_t *text)
{
    free((char *) (text->length ? text->data : text->data - 1));
}
