
#include "uuid.h"

#include <string.h>


/* of 0 to 15; without a table, since compilers make vectors of it */

#define sluice_uuid_digit(n)                                                  \
    ((char) ((n) + '0' + ((n) > 9 ? 'a' - '9' - 1 : 0)))


/* It is written twice a request. */

void
sluice_uuid_write(char *text, const uint8_t *id)
{
    int      i;
    char     digits[32];
    uint8_t  high, low;

    for (i = 0; i < 16; i++) {
        high = id[i] >> 4;
        low = id[i] & 0x0f;

        digits[2 * i] = sluice_uuid_digit(high);
        digits[2 * i + 1] = sluice_uuid_digit(low);
    }

    memcpy(text, digits, 8);
    text[8] = '-';
    memcpy(text + 9, digits + 8, 4);
    text[13] = '-';
    memcpy(text + 14, digits + 12, 4);
    text[18] = '-';
    memcpy(text + 19, digits + 16, 4);
    text[23] = '-';
    memcpy(text + 24, digits + 20, 12);
}
