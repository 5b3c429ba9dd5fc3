
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
    sluice_core_compiled_t  *newer;       /* of the order of use */
    sluice_core_compiled_t  *older;
    pcre2_code              *careful;
    pcre2_code              *fast;        /* NULL: none, or none yet */
    uint64_t                 hash;        /* of its text */
    uint64_t                 size;        /* bytes of memory, all in all */
    uint64_t                 used;        /* the last match that ran it */
    uint32_t                 length;
    uint32_t                 runs;
    uint8_t                  is_path;
    uint8_t                  recurses;
    char                     text[1];
};


struct sluice_core_regexes_s {
    uint64_t                  secret[2];  /* of hashes */
    sluice_core_compiled_t  **buckets;
    sluice_core_compiled_t   *newest;
    sluice_core_compiled_t   *oldest;
    pcre2_general_context    *memory;     /* of data */
    pcre2_match_data         *data;
    pcre2_match_context      *careful;
    pcre2_match_context      *fast;
    sluice_core_budget_t      probe;      /* of what is not a request */
    uint32_t                  tries;      /* budgets that it has begun */
    uint64_t                  matches;
    uint64_t                  compiled;
    uint64_t                  size;       /* of all that is there */
    uint64_t                  limit;
    const volatile uintptr_t *clock;      /* ms, of turns; NULL: no bound */
    uintptr_t                 turn;       /* of it, which left is of */
    int64_t                   left;       /* ns, to compile in this turn */
    int64_t                   unpaid;     /* ns, of short ones beyond that */
    uint32_t                  count;
    uint32_t                  grown;      /* how often data took memory */
};


/* A pattern that is to be run, and on what. */

typedef struct {
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

/*
 * The same before it is run, with what requests of this turn have left; or,
 * is_asked, with what they have.  SLUICE_CORE_OK, _AGAIN: there is no time;
 * _FULL: there is no room, for what nobody has asked for.
 */
int sluice_core_regexes_warm(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run, int is_asked);

/* turn.c */

/* Whether half of what a turn has for compiling is left. */
int sluice_core_regexes_has_half(sluice_core_regexes_t *regexes);

/* What was compiled since the budget has read the clock is the turn's. */
void sluice_core_regexes_pay(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget);

/* Whether a pattern of so many bytes may be compiled in this turn. */
int sluice_core_regexes_may(sluice_core_regexes_t *regexes, uint32_t length);


#endif /* SLUICE_CORE_PATTERN_H_INCLUDED */
