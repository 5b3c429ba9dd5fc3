
/*
 * A regular expression in its two forms (pattern.c), and their cache
 * (regexes.c).
 *
 * careful  is interpreted, and calls back before each of its items: there the
 *          clock is read, since PCRE2 has none.
 * fast     is machine code without calls, for patterns that are in use: two
 *          to six times as fast.  It is limited to a number of steps that
 *          shrinks with the length of the subject; beyond it the careful form
 *          begins again.
 *
 * Memory and compiling are one worker's, and patterns many tenants'.  So each
 * service has an account, of bytes in the cache and of time that it compiled
 * (credit.c).  What is compiled beyond the bounds of a worker waits; what does
 * not fit takes the place of what nobody has asked for in a minute, or of the
 * account's that has most.  So who has little is not crowded out, nor refused,
 * by who has much.
 */


#ifndef SLUICE_CORE_PATTERN_H_INCLUDED
#define SLUICE_CORE_PATTERN_H_INCLUDED


#define PCRE2_CODE_UNIT_WIDTH  8

#include "budget.h"
#include "layout.h"

#include <pcre2.h>


typedef struct sluice_core_compiled_s  sluice_core_compiled_t;

struct sluice_core_compiled_s {
    sluice_core_compiled_t  *next;        /* of its bucket */
    sluice_core_compiled_t  *newer;       /* of its account's order of use */
    sluice_core_compiled_t  *older;
    pcre2_code              *careful;
    pcre2_code              *fast;        /* NULL: none, or none yet */
    uint64_t                 hash;
    uint64_t                 size;        /* bytes of memory, all in all */
    uint64_t                 used;        /* the last match that ran it */
    uint64_t                 seen;        /* when that was, in ns */
    uint32_t                 account;
    uint32_t                 length;
    uint32_t                 runs;
    uint8_t                  is_path;
    uint8_t                  recurses;
    char                     text[1];
};


#define SLUICE_CORE_BUCKETS   16384

/*
 * An account is of services whose slots have the same low bits; one more of
 * what is no match, which is not bounded here.
 */

#define SLUICE_CORE_ACCOUNTS  1024

typedef struct {
    sluice_core_compiled_t  *newest;
    sluice_core_compiled_t  *oldest;
    uint64_t                 size;        /* of its patterns */
    uint64_t                 debt;        /* ns, not paid back yet */
    uint64_t                 turn;        /* the last that it compiled in */
    uint64_t                 turn_ns;     /* in that one */
    uint64_t                 closed;      /* until then */
    uint64_t                 is_dear;     /* nothing more is free */
    uint64_t                 rows[2];     /* when the next may ask again */
} sluice_core_account_t;


/* Whether a pattern may be compiled. */

typedef enum {
    SLUICE_CORE_CREDIT = 0,
    SLUICE_CORE_CREDIT_NEXT,              /* in another turn */
    SLUICE_CORE_CREDIT_LATER              /* when debts are paid back */
} sluice_core_credit_e;


struct sluice_core_regexes_s {
    sluice_core_compiled_t  **buckets;
    sluice_core_account_t    *accounts;
    pcre2_general_context    *memory;     /* of data */
    pcre2_match_data         *data;
    pcre2_match_context      *careful;
    pcre2_match_context      *fast;
    sluice_core_budget_t      probe;      /* of what is not a request */
    uint64_t                  matches;
    uint64_t                  compiled;
    uint64_t                  size;       /* of all that is there */
    uint64_t                  limit;
    uint64_t                  debt;       /* ns, of all accounts */
    uint64_t                  paid;       /* until then; 0: nothing yet */
    uint64_t                  turn;       /* of the event loop */
    uint64_t                  turn_ns;    /* compiled in it */
    uint32_t                  debtors;    /* accounts */
    uint32_t                  is_bounded;
    uint32_t                  count;
    uint32_t                  grown;      /* how often data took memory */
};


/* A pattern that is to be run, and on what. */

typedef struct {
    uint64_t                  hash;
    sluice_core_text_t        pattern;
    sluice_core_text_t        subject;
    int                       is_path;
} sluice_core_run_t;


/* NULL: err is a reason, which may be at an offset. */
pcre2_code *sluice_core_pattern_careful(const char *text, uint32_t length,
    int is_path, int *err, size_t *offset);

/* Whether it may call its own groups. */
int sluice_core_pattern_recurses(const char *text, uint32_t length);

/* Of one that compiles.  NULL: it has no such form. */
pcre2_code *sluice_core_pattern_fast(const char *text, uint32_t length,
    int is_path);

/*
 * Compiles what is not there, which counts in the budget.  SLUICE_CORE_OK, or
 * _PATTERN, _MEMORY, _LIMIT with a reason.  Good until the next call.
 */
int sluice_core_regexes_get(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run,
    sluice_core_compiled_t **compiled, int *reason);


/* kept.c */

void sluice_core_kept_insert(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);
void sluice_core_kept_use(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled, uint64_t now);
void sluice_core_kept_drop(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);

/*
 * To what the cache may take; keep: what was inserted last.  Whether this
 * match needs nothing of what goes.
 */
int sluice_core_kept_shrink(sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *keep);


/* credit.c; now: ns of the wall's clock */

sluice_core_credit_e sluice_core_credit_has(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, uint64_t now);
void sluice_core_credit_take(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, uint64_t spent);

/* For a while. */
void sluice_core_credit_close(sluice_core_account_t *account, uint64_t now);

/* ms until one that has no credit is to ask again. */
uint32_t sluice_core_credit_wait(sluice_core_regexes_t *regexes,
    sluice_core_account_t *account, sluice_core_credit_e credit, uint64_t now);


#endif /* SLUICE_CORE_PATTERN_H_INCLUDED */
