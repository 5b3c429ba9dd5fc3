
/*
 * Regular expressions: PCRE2, on bytes, within what a request may spend.
 */


#include "pattern.h"
#include "search.h"


/*
 * Steps of the fast form, PCRE2's match limit: fewer, the longer the subject,
 * since one may look at all of it.  So it takes a quarter of a millisecond at
 * most (docs/router.md has what was measured).
 */

#define CORE_FAST_WORK   (512 * 1024)
#define CORE_FAST_STEPS  4096
#define CORE_FAST_LEAST  64        /* bytes */

/*
 * Who tries patterns has so many budgets for what is to be prepared, for all
 * of them together.
 */

#define CORE_TRIES       16


static int core_run(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run, uint32_t *end,
    int *reason);
static int core_match(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_compiled_t *compiled,
    const sluice_core_run_t *run);
static int core_match_fast(sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *compiled, const sluice_core_run_t *run);
static int core_callout(pcre2_callout_block *block, void *data);


/*
 * end: the last byte that matched, of a path's pattern.  SLUICE_CORE_OK,
 * _NONE; or a refusal, with a reason.
 */

int
sluice_core_regex_match(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_space_t *space,
    uint32_t ref, const sluice_core_text_t *subject, uint32_t *end,
    int *reason)
{
    sluice_core_run_t           run;
    const sluice_core_regex_t  *regex;
    const sluice_core_chars_t  *chars;

    regex = sluice_core_at(space, ref);
    chars = sluice_core_chars(space, regex->text);

    run.pattern.data = chars->data + regex->skip;
    run.pattern.length = chars->length - regex->skip;
    run.is_path = (regex->is_path != 0);
    run.subject.data = subject->data ? subject->data : "";
    run.subject.length = subject->length;

    return core_run(regexes, budget, &run, end, reason);
}


int
sluice_core_regex_try(sluice_core_regexes_t *regexes, const char *pattern,
    uint32_t length, int is_path, const char *subject, uint32_t subject_length,
    int is_first, int *reason)
{
    int                    rc;
    uint32_t               end;
    sluice_core_run_t      run;
    sluice_core_budget_t  *budget;

    if (regexes == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    run.pattern.data = pattern;
    run.pattern.length = length;
    run.is_path = (is_path != 0);
    run.subject.data = subject;
    run.subject.length = subject_length;

    budget = &regexes->probe;
    budget->last = 0;

    if (is_first) {
        regexes->tries = 0;
    }

    do {

        if (is_first) {
            sluice_core_budget_begin(budget);
            sluice_core_regexes_begin(regexes);

            /* who runs it cannot wait */

            budget->is_urgent = 1;
            regexes->tries++;
        }

        rc = core_run(regexes, budget, &run, &end, reason);

        is_first = 1;

    } while (rc == SLUICE_CORE_LIMIT && sluice_core_budget_is_cold(budget)
             && regexes->tries < CORE_TRIES);

    return rc;
}


static int
core_run(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    const sluice_core_run_t *run, uint32_t *end, int *reason)
{
    int                      rc;
    uint32_t                 grown;
    sluice_core_compiled_t  *compiled;

    if (regexes == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    if (budget->last == 0) {
        sluice_core_budget_read(budget);
    }

    if (!sluice_core_budget_share(budget)) {
        *reason = SLUICE_CORE_BY_TIME;
        return SLUICE_CORE_LIMIT;
    }

    rc = sluice_core_regexes_get(regexes, budget, run, &compiled, reason);

    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    grown = regexes->grown;

    rc = core_match(regexes, budget, compiled, run);

    sluice_core_budget_read(budget);

    /* new memory costs ten times what is done in it, and is kept */

    if (rc == SLUICE_CORE_BY_TIME && regexes->grown != grown) {
        budget->preparing = budget->spent;
    }

    if (rc == PCRE2_ERROR_NOMATCH) {
        return SLUICE_CORE_NONE;
    }

    if (rc < 0) {
        *reason = rc;
        return rc == PCRE2_ERROR_NOMEMORY ? SLUICE_CORE_MEMORY
                                          : SLUICE_CORE_LIMIT;
    }

    *end = (uint32_t) pcre2_get_ovector_pointer(regexes->data)[1];

    return SLUICE_CORE_OK;
}


static int
core_match(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    const sluice_core_compiled_t *compiled, const sluice_core_run_t *run)
{
    int  rc;

    if (compiled->fast) {
        rc = core_match_fast(regexes, compiled, run);

        if (rc != PCRE2_ERROR_MATCHLIMIT && rc != PCRE2_ERROR_JIT_STACKLIMIT) {
            return rc;
        }
    }

    budget->step = 1 + run->subject.length / SLUICE_CORE_CALL_BYTES
                   + (compiled->recurses ? SLUICE_CORE_CALL_GROUPS : 0);

    (void) pcre2_set_callout(regexes->careful, core_callout, budget);

    return pcre2_match(compiled->careful, (PCRE2_SPTR) run->subject.data,
                       run->subject.length, 0, 0, regexes->data,
                       regexes->careful);
}


/* A search has the limit anew at each byte of the subject. */

static int
core_match_fast(sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *compiled, const sluice_core_run_t *run)
{
    uint32_t  steps;

    steps = CORE_FAST_WORK / (run->subject.length + CORE_FAST_LEAST);

    if (!run->is_path) {
        steps /= run->subject.length + 1;
    }

    if (steps == 0) {
        return PCRE2_ERROR_MATCHLIMIT;
    }

    (void) pcre2_set_match_limit(regexes->fast,
                                 steps < CORE_FAST_STEPS ? steps
                                                         : CORE_FAST_STEPS);

    return pcre2_match(compiled->fast, (PCRE2_SPTR) run->subject.data,
                       run->subject.length, 0, 0, regexes->data,
                       regexes->fast);
}


/* Before each item of a pattern's careful form. */

static int
core_callout(pcre2_callout_block *block, void *data)
{
    sluice_core_budget_t  *budget = data;

    (void) block;

    if (budget->steps == budget->steps_until) {
        return PCRE2_ERROR_MATCHLIMIT;
    }

    budget->steps--;

    (void) sluice_core_budget_take(budget, budget->step);

    return sluice_core_budget_is_over(budget, budget->until)
           ? SLUICE_CORE_BY_TIME : 0;
}
