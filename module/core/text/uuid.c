
#include "uuid.h"

#include <string.h>


static const char  sluice_uuid_pairs[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
    "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
    "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
    "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
    "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";


#define sluice_uuid_pair(text, byte)                                          \
    memcpy(text, &sluice_uuid_pairs[2 * (byte)], 2)


/* Without a loop: it is written twice a request. */

void
sluice_uuid_write(char *text, const uint8_t *id)
{
    sluice_uuid_pair(text + 0, id[0]);
    sluice_uuid_pair(text + 2, id[1]);
    sluice_uuid_pair(text + 4, id[2]);
    sluice_uuid_pair(text + 6, id[3]);
    text[8] = '-';

    sluice_uuid_pair(text + 9, id[4]);
    sluice_uuid_pair(text + 11, id[5]);
    text[13] = '-';

    sluice_uuid_pair(text + 14, id[6]);
    sluice_uuid_pair(text + 16, id[7]);
    text[18] = '-';

    sluice_uuid_pair(text + 19, id[8]);
    sluice_uuid_pair(text + 21, id[9]);
    text[23] = '-';

    sluice_uuid_pair(text + 24, id[10]);
    sluice_uuid_pair(text + 26, id[11]);
    sluice_uuid_pair(text + 28, id[12]);
    sluice_uuid_pair(text + 30, id[13]);
    sluice_uuid_pair(text + 32, id[14]);
    sluice_uuid_pair(text + 34, id[15]);
}
