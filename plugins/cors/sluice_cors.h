
/*
 * The plugin cors: what its files share.
 *
 * A request's own is a sluice_core_regexes_t, in which patterns are compiled.
 */


#ifndef SLUICE_CORS_H_INCLUDED
#define SLUICE_CORS_H_INCLUDED


#include "decision.h"


/* Flags of a configuration, as the plugin's pack() writes them. */

#define SLUICE_CORS_CREDENTIALS      0x01
#define SLUICE_CORS_PRIVATE_NETWORK  0x02
#define SLUICE_CORS_CONTINUE         0x04
#define SLUICE_CORS_ALL              0x08    /* origins: none, or "*" alone */
#define SLUICE_CORS_ANY              0x10    /* "*" among others */
#define SLUICE_CORS_ONE              0x20    /* one text, told to everybody */


typedef struct {
    uint32_t               flags;
    sluice_packed_list_t   origins;          /* "=" a text; "~" a pattern of
                                                origins, "@" of hosts */
    sluice_core_text_t     first;            /* data NULL: none, as below */
    sluice_core_text_t     headers;
    sluice_core_text_t     exposed;
    sluice_core_text_t     methods;
    sluice_core_text_t     max_age;
} sluice_cors_t;


extern const sluice_decision_plugin_t  sluice_cors;


/* sluice_cors_origin.c */

/*
 * An origin as it is told: without the port that its scheme has anyway.  data
 * NULL: it is none.  host: of it; of one without a scheme ("null") the same.
 */
sluice_core_text_t sluice_cors_normal(const sluice_core_text_t *origin,
    sluice_core_text_t *host);

/*
 * Whether the configuration has an origin: SLUICE_CORE_OK, _NONE; _LIMIT: its
 * patterns took too long; _PATTERN, _MEMORY.
 */
int sluice_cors_find(const sluice_cors_t *conf, sluice_core_regexes_t *regexes,
    const sluice_core_text_t *origin, const sluice_core_text_t *host);


#endif /* SLUICE_CORS_H_INCLUDED */
