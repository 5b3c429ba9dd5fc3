
/*
 * The rate-limiting plugin, policy local: what its files share.
 * docs/plugins/rate-limiting.md says what it does, meter.h how it counts.
 */


#ifndef SLUICE_RATE_LIMITING_H_INCLUDED
#define SLUICE_RATE_LIMITING_H_INCLUDED


#include "decision.h"
#include "meter.h"


#define SLUICE_RATE_LIMITING_TEXT  24        /* bytes of any number */


/* Whose requests are counted together. */

typedef enum {
    SLUICE_RATE_LIMITING_BY_CONSUMER = 0,
    SLUICE_RATE_LIMITING_BY_CREDENTIAL,
    SLUICE_RATE_LIMITING_BY_IP,
    SLUICE_RATE_LIMITING_BY_SERVICE,
    SLUICE_RATE_LIMITING_BY_HEADER,
    SLUICE_RATE_LIMITING_BY_PATH,
    SLUICE_RATE_LIMITING_BY
} sluice_rate_limiting_by_e;


/* Requests in a window.  Of 1.5 two may pass: the first leaves a remainder. */

typedef struct {
    double     number;
    size_t     length;                       /* of text */
    char       text[SLUICE_RATE_LIMITING_TEXT];
} sluice_rate_limiting_rate_t;


typedef struct {
    double                        periods[SLUICE_CORE_PERIODS];
    sluice_core_text_t            limit_by;
    sluice_core_text_t            header;     /* in lower case */
    sluice_core_text_t            path;
    uint32_t                      status;
    sluice_core_text_t            message;    /* data NULL: Kong's */
    uint32_t                      fault_tolerant;
    uint32_t                      hide_headers;

    sluice_rate_limiting_by_e     by;
    sluice_core_rule_t            rule;
    sluice_rate_limiting_rate_t   rates[SLUICE_CORE_PERIODS];
                                              /* of the rule's windows */
} sluice_rate_limiting_t;


/* What a request's own are: the counters. */

typedef struct sluice_rate_limiting_own_s  sluice_rate_limiting_own_t;

struct sluice_rate_limiting_own_s {
    /* As sluice_core_meter_take(). */
    int  (*take)(const sluice_rate_limiting_own_t *own,
                 sluice_core_rule_t *rule,
                 const sluice_core_text_t *identifier, int is_fallback,
                 uint64_t now, sluice_core_taken_t *taken);
};


/* sluice_rate_limiting.c */

extern const sluice_decision_plugin_t  sluice_rate_limiting;

/* sluice_rate_limiting_headers.c */

/* As Lua writes it, without a NUL; returns its end. */
char *sluice_rate_limiting_print(char *p, double number);

/* Before anything is told, as often as one likes. */
void sluice_rate_limiting_hash(void);

/* What a client is told.  SLUICE_FACT_OK, _MEMORY. */
int sluice_rate_limiting_report(const sluice_rate_limiting_t *conf,
    const sluice_decision_request_t *request, const sluice_core_taken_t *taken,
    int is_refused, sluice_decision_result_t *result);


#endif /* SLUICE_RATE_LIMITING_H_INCLUDED */
