
/* Texts whose memory ends where they do: ASan sees a read behind them. */


#ifndef TEST_CORE_TEXT_H_INCLUDED
#define TEST_CORE_TEXT_H_INCLUDED


#include "core.h"


/* A copy, in memory of its own. */
sluice_core_text_t text_own(const char *data, size_t length);

void text_free(const sluice_core_text_t *text);


#endif /* TEST_CORE_TEXT_H_INCLUDED */
