
/*
 * Names of bots in User-Agent: what is said of each.
 */


#ifndef SLUICE_BOT_DETECTION_NAMES_H_INCLUDED
#define SLUICE_BOT_DETECTION_NAMES_H_INCLUDED


#include <stdint.h>


/* Where a name begins. */

typedef enum {
    SLUICE_BOT_ANYWHERE = 0,
    SLUICE_BOT_START,                  /* of the header */
    SLUICE_BOT_WORD_START
} sluice_bot_begin_e;


/* What stands behind it. */

typedef enum {
    SLUICE_BOT_NOTHING = 0,            /* or anything */
    SLUICE_BOT_BOUNDARY,               /* of the word */
    SLUICE_BOT_LETTER,                 /* [A-z] */
    SLUICE_BOT_WORD_BYTE,
    SLUICE_BOT_DIGIT,
    SLUICE_BOT_NUMBER,                 /* with a point: "1.2" */
    SLUICE_BOT_SPACED,                 /* "/" or " ", and a digit */
    SLUICE_BOT_DASHED,                 /* " " or "-", and a digit */
    SLUICE_BOT_LAST                    /* digits to the end, one "." in them */
} sluice_bot_tail_e;


/* What its two parts have between them. */

typedef enum {
    SLUICE_BOT_NO_GAP = 0,
    SLUICE_BOT_GAP_ANY,
    SLUICE_BOT_GAP_LETTER,             /* [A-z], as Kong has it */
    SLUICE_BOT_GAP_SMALL,              /* [a-z] */
    SLUICE_BOT_GAP_CAPITAL,            /* [A-Z] */
    SLUICE_BOT_GAP_DIGIT
} sluice_bot_gap_e;


typedef struct {
    const char  *text;
    const char  *rest;                 /* behind the gap */
    uint8_t      length;
    uint8_t      rest_length;
    uint8_t      begin;
    uint8_t      tail;
    uint8_t      gap;
    uint8_t      least;                /* bytes of the gap */
    uint8_t      most;
} sluice_bot_name_t;


/* In the order of their first bytes. */

extern const sluice_bot_name_t  sluice_bot_detection_names[];


#endif /* SLUICE_BOT_DETECTION_NAMES_H_INCLUDED */
