
/*
 * The plugin bot-detection: what its files share.
 *
 * A request's own is a sluice_core_regexes_t, in which patterns are compiled.
 */


#ifndef SLUICE_BOT_DETECTION_H_INCLUDED
#define SLUICE_BOT_DETECTION_H_INCLUDED


#include "decision.h"


#define SLUICE_BOT_DETECTION_BYTES  256


/* What can begin where: most of a browser's User-Agent is passed over. */

typedef struct {
    /* Of each byte, the first of the names that begin with it or a greater. */
    uint16_t  first[SLUICE_BOT_DETECTION_BYTES + 1];

    /* And which bytes follow it in one: a bit each of ASCII. */
    uint64_t  second[SLUICE_BOT_DETECTION_BYTES][2];
} sluice_bot_detection_index_t;


typedef struct {
    sluice_packed_list_t          allow;         /* patterns */
    sluice_packed_list_t          deny;
    sluice_bot_detection_index_t  index;
} sluice_bot_detection_t;


extern const sluice_decision_plugin_t  sluice_bot_detection;


/* sluice_bot_detection_match.c */

void sluice_bot_detection_index(sluice_bot_detection_index_t *index);

/* Whether there is a name that Kong knows. */
int sluice_bot_detection_is_bot(const sluice_bot_detection_index_t *index,
    const sluice_core_text_t *agent);


#endif /* SLUICE_BOT_DETECTION_H_INCLUDED */
