
/*
 * Judges requests without nginx: what a plugin would decide of one that is
 * given as texts.
 *
 *
 * SYNOPSIS
 *
 *     judge = sluice_judge_create(name, length, &packed, &rc);
 *
 *     request.known[SLUICE_ASK_METHOD] = SLUICE_FACT_OK;
 *     request.facts[SLUICE_ASK_METHOD] = ...;
 *
 *     decision = sluice_judge_run(judge, &request, &result);
 *
 *     sluice_judge_destroy(judge);
 *
 * What the result points at lives until the next run.
 */


#ifndef SLUICE_JUDGE_H_INCLUDED
#define SLUICE_JUDGE_H_INCLUDED


#include "decision.h"


/* FFI */

typedef struct sluice_judge_s  sluice_judge_t;


/* Nobody answers: not known. */

typedef int (*sluice_judge_credential_pt)(void *data,
    const sluice_core_text_t *kind, const sluice_core_text_t *key,
    sluice_decision_who_t *who);
typedef int (*sluice_judge_digest_pt)(void *data, const char *name,
    const sluice_core_text_t *key, const sluice_core_text_t *texts,
    uint32_t count, unsigned char *out);
typedef int (*sluice_judge_consumer_pt)(void *data,
    const sluice_core_text_t *name, sluice_core_found_t *consumer);


typedef struct {
    sluice_core_text_t           facts[SLUICE_ASK_COUNT];
    int32_t                      known[SLUICE_ASK_COUNT];  /* _OK: facts has
                                                              it */
    const sluice_core_text_t    *headers;      /* pairs: name, value */
    uint32_t                     headers_count;
    int32_t                      headers_known;     /* _OK, _UNKNOWN */
    const sluice_core_text_t    *groups;       /* names */
    uint32_t                     groups_count;
    int32_t                      groups_known;
    const sluice_core_text_t    *labels;       /* pairs: kind, name */
    uint32_t                     labels_count;
    int32_t                      labels_known;
    int64_t                      now;
    sluice_judge_credential_pt   credential;   /* NULL: nobody answers */
    sluice_judge_consumer_pt     consumer;
    sluice_judge_digest_pt       digest;
    void                        *data;         /* of these three */
    void                        *own;          /* of the plugin */
} sluice_judge_request_t;


/*
 * A plugin with a configuration that its pack() has written.  NULL: rc says
 * why: SLUICE_CORE_NONE: no plugin of this name decides in C; _BAD: the bytes
 * are of another version; _MEMORY.
 */
sluice_judge_t *sluice_judge_create(const char *name, size_t length,
    const sluice_core_text_t *packed, int *rc);
void sluice_judge_destroy(sluice_judge_t *judge);

/* sluice_decision_e */
int sluice_judge_run(sluice_judge_t *judge,
    const sluice_judge_request_t *request, sluice_decision_result_t *result);

/* The same of what the head of the response gets. */
int sluice_judge_head(sluice_judge_t *judge,
    const sluice_judge_request_t *request, sluice_decision_result_t *result);

/* FFI end */


#endif /* SLUICE_JUDGE_H_INCLUDED */
