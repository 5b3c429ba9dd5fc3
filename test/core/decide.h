
/* Requests and packed configurations for the tests of what plugins decide. */


#ifndef TEST_CORE_DECIDE_H_INCLUDED
#define TEST_CORE_DECIDE_H_INCLUDED


#include "judge.h"


#define DECIDE_LINES  64
#define DECIDE_NAME   "consumer-1"      /* the only one that there is */
#define DECIDE_KEY    "right"           /* his key */


/* As lib/sluice/ffi/packed.lua writes. */

typedef struct {
    char      data[4096];
    uint32_t  length;
} decide_packed_t;

void decide_number(decide_packed_t *packed, uint32_t number);
void decide_double(decide_packed_t *packed, double number);
void decide_text(decide_packed_t *packed, const char *text);

/* Exits where it cannot be made. */
sluice_judge_t *decide_create(const char *name, const decide_packed_t *packed);

/* All lengths, and random bytes: no configuration, or one. */
void decide_damage(const char *name, const decide_packed_t *packed,
    uint64_t *state);


/* A request of nothing but GET /: everything else is not there. */

typedef struct {
    sluice_judge_request_t  request;
    sluice_core_text_t      lines[2 * DECIDE_LINES];
} decide_request_t;

void decide_begin(decide_request_t *asked);
void decide_fact(decide_request_t *asked, int ask, const char *text);
void decide_line(decide_request_t *asked, const char *name, const char *value,
    size_t length);
void decide_end(decide_request_t *asked);

/* A decision, checked: what it says is whole. */
int decide_run(sluice_judge_t *judge, decide_request_t *asked,
    sluice_decision_result_t *result);

/* The same of what the head of the response gets. */
int decide_head(sluice_judge_t *judge, decide_request_t *asked,
    sluice_decision_result_t *result);

/* Whether a text is this one. */
int decide_is(const sluice_core_text_t *text, const char *other);

/* The value of a change of headers; NULL: there is no such one. */
const sluice_core_text_t *decide_edit(const sluice_decision_result_t *result,
    int verb, const char *lowcase);

/* The value of a header of the response; data NULL: there is no such one. */
sluice_core_text_t decide_told(const sluice_decision_result_t *result,
    const char *lowcase);


#endif /* TEST_CORE_DECIDE_H_INCLUDED */
