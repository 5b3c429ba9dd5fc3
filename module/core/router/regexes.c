
/*
 * The cache of compiled patterns: the least recently used goes first, found by
 * the pattern's text.
 */


#include "pattern.h"

#include <stdlib.h>


#define CORE_BUCKETS    16384
#define CORE_CHAIN_MAX  64         /* patterns with one hash's low bits */

/* What malloc() and the cache add to a pattern. */
#define CORE_OVERHEAD   128

/*
 * A pattern gets its fast form, which takes some KB and 0.13 ms at most, when
 * it has run so often, by a request that has not spent more ns so far.
 */

#define CORE_FAST_RUNS  8
#define CORE_FAST_NS    250000

/*
 * What a worker compiles beyond the budgets of its requests, in turns: as much
 * at once as a full cache takes several times, and a twentieth of the time
 * from then on.  Without a bound patterns that do not fit into the cache
 * together, asked for one after the other, would be compiled all the time.
 */

#define CORE_CREDIT_NS     500000000
#define CORE_CREDIT_SHARE  20

/* KB that PCRE2 may take for what it has to come back to; it keeps them. */
#define CORE_HEAP       4096


static void *core_take(size_t size, void *data);
static void core_give(void *memory, void *data);
static sluice_core_compiled_t *core_find(sluice_core_regexes_t *regexes,
    const sluice_core_run_t *run);
static int core_add(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run,
    sluice_core_compiled_t **added, int *reason);
static sluice_core_compiled_t *core_make(const sluice_core_run_t *run,
    int *err);
static void core_make_fast(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, sluice_core_compiled_t *compiled);
static uint64_t core_size(const pcre2_code *code);
static int core_shrink(sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *keep);
static void core_use(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);
static void core_unlink(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);
static void core_drop(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);


sluice_core_regexes_t *
sluice_core_regexes_create(uint64_t limit)
{
    sluice_core_regexes_t  *regexes;

    regexes = calloc(1, sizeof(sluice_core_regexes_t));
    if (regexes == NULL) {
        return NULL;
    }

    regexes->limit = limit;
    regexes->buckets = calloc(CORE_BUCKETS, sizeof(sluice_core_compiled_t *));
    regexes->memory = pcre2_general_context_create(core_take, core_give,
                                                   regexes);
    regexes->data = pcre2_match_data_create(SLUICE_CORE_GROUPS_MAX + 1,
                                            regexes->memory);
    regexes->careful = pcre2_match_context_create(NULL);
    regexes->fast = pcre2_match_context_create(NULL);

    if (regexes->buckets == NULL || regexes->memory == NULL
        || regexes->data == NULL
        || regexes->careful == NULL || regexes->fast == NULL)
    {
        sluice_core_regexes_destroy(regexes);
        return NULL;
    }

    (void) pcre2_set_heap_limit(regexes->careful, CORE_HEAP);

    return regexes;
}


void
sluice_core_regexes_destroy(sluice_core_regexes_t *regexes)
{
    while (regexes->oldest) {
        core_drop(regexes, regexes->oldest);
    }

    pcre2_match_context_free(regexes->careful);
    pcre2_match_context_free(regexes->fast);
    pcre2_match_data_free(regexes->data);
    pcre2_general_context_free(regexes->memory);
    free(regexes->buckets);
    free(regexes);
}


static void *
core_take(size_t size, void *data)
{
    sluice_core_regexes_t  *regexes = data;

    regexes->grown++;

    return malloc(size);
}


static void
core_give(void *memory, void *data)
{
    (void) data;
    free(memory);
}


void
sluice_core_regexes_begin(sluice_core_regexes_t *regexes)
{
    if (regexes) {
        regexes->matches++;
    }
}


int
sluice_core_regexes_afford(sluice_core_regexes_t *regexes,
    const sluice_core_budget_t *budget)
{
    uint64_t  credit, now;

    now = budget->last;
    credit = CORE_CREDIT_NS;

    if (regexes->credited) {
        credit = regexes->credit
                 + (now - regexes->credited) / CORE_CREDIT_SHARE;

        if (credit > CORE_CREDIT_NS) {
            credit = CORE_CREDIT_NS;
        }
    }

    regexes->credited = now;
    regexes->credit = credit;

    if (credit < budget->spent) {
        return 0;
    }

    regexes->credit -= budget->spent;

    return 1;
}


uint32_t
sluice_core_regexes_count(const sluice_core_regexes_t *regexes,
    uint64_t *compiled)
{
    *compiled = regexes->compiled;

    return regexes->count;
}


int
sluice_core_regexes_get(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run,
    sluice_core_compiled_t **compiled, int *reason)
{
    *compiled = core_find(regexes, run);

    if (*compiled == NULL) {
        return core_add(regexes, budget, run, compiled, reason);
    }

    if ((*compiled)->fast == NULL && ++(*compiled)->runs == CORE_FAST_RUNS) {
        core_make_fast(regexes, budget, *compiled);
    }

    return SLUICE_CORE_OK;
}


static sluice_core_compiled_t *
core_find(sluice_core_regexes_t *regexes, const sluice_core_run_t *run)
{
    unsigned                 i;
    sluice_core_compiled_t  *compiled;

    compiled = regexes->buckets[run->hash % CORE_BUCKETS];

    for (i = 0; compiled; compiled = compiled->next, i++) {

        if (compiled->hash == run->hash
            && compiled->length == run->pattern.length
            && compiled->is_path == run->is_path
            && memcmp(compiled->text, run->pattern.data, compiled->length)
               == 0)
        {
            core_use(regexes, compiled);
            return compiled;
        }

        if (i == CORE_CHAIN_MAX) {
            core_drop(regexes, compiled);
            break;
        }
    }

    return NULL;
}


static int
core_add(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    const sluice_core_run_t *run, sluice_core_compiled_t **added, int *reason)
{
    int                       err;
    uint64_t                  before;
    sluice_core_compiled_t  **bucket, *compiled;

    before = budget->spent;
    compiled = core_make(run, &err);

    sluice_core_budget_read(budget);

    if (compiled == NULL) {
        *reason = err;
        return (err == PCRE2_ERROR_HEAP_FAILED || err == PCRE2_ERROR_NOMEMORY)
               ? SLUICE_CORE_MEMORY : SLUICE_CORE_PATTERN;
    }

    bucket = &regexes->buckets[run->hash % CORE_BUCKETS];
    compiled->next = *bucket;
    *bucket = compiled;

    compiled->older = regexes->newest;

    if (regexes->newest) {
        regexes->newest->newer = compiled;

    } else {
        regexes->oldest = compiled;
    }

    regexes->newest = compiled;
    regexes->count++;
    regexes->compiled++;
    regexes->size += compiled->size;

    compiled->used = regexes->matches;

    /* where it takes the place of what this match needs, nothing is gained */

    if (core_shrink(regexes, compiled)) {
        budget->preparing += budget->spent - before;
    }

    *added = compiled;

    return SLUICE_CORE_OK;
}


static sluice_core_compiled_t *
core_make(const sluice_core_run_t *run, int *err)
{
    size_t                   offset;
    sluice_core_compiled_t  *compiled;

    compiled = calloc(1, offsetof(sluice_core_compiled_t, text)
                         + run->pattern.length + 1);
    if (compiled == NULL) {
        *err = PCRE2_ERROR_NOMEMORY;
        return NULL;
    }

    compiled->careful = sluice_core_pattern_careful(run->pattern.data,
                                                    run->pattern.length,
                                                    run->is_path, err,
                                                    &offset);
    if (compiled->careful == NULL) {
        free(compiled);
        return NULL;
    }

    compiled->hash = run->hash;
    compiled->length = run->pattern.length;
    compiled->is_path = (run->is_path != 0);
    compiled->recurses = (uint8_t) sluice_core_pattern_recurses(
                                       run->pattern.data, run->pattern.length);
    memcpy(compiled->text, run->pattern.data, run->pattern.length);

    compiled->size = CORE_OVERHEAD + sizeof(sluice_core_compiled_t)
                     + run->pattern.length + core_size(compiled->careful);

    return compiled;
}


/*
 * Later, if this request has spent too much for that; never where it could
 * take the place of other patterns.
 */

static void
core_make_fast(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    sluice_core_compiled_t *compiled)
{
    uint64_t  size;

    if (regexes->size > regexes->limit / 2) {
        return;
    }

    if (budget->spent > CORE_FAST_NS) {
        compiled->runs--;
        return;
    }

    compiled->fast = sluice_core_pattern_fast(compiled->text, compiled->length,
                                              compiled->is_path);

    if (compiled->fast) {
        size = core_size(compiled->fast);
        compiled->size += size;
        regexes->size += size;
    }

    sluice_core_budget_read(budget);
}


static uint64_t
core_size(const pcre2_code *code)
{
    size_t  size, machine;

    size = 0;
    machine = 0;
    (void) pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);
    (void) pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &machine);

    return size + machine;
}


/* Whether what it drops is others'. */

static int
core_shrink(sluice_core_regexes_t *regexes, const sluice_core_compiled_t *keep)
{
    int  is_others;

    is_others = 1;

    while (regexes->size > regexes->limit && regexes->oldest != keep) {

        if (regexes->oldest->used == regexes->matches) {
            is_others = 0;
        }

        core_drop(regexes, regexes->oldest);
    }

    return is_others;
}


static void
core_use(sluice_core_regexes_t *regexes, sluice_core_compiled_t *compiled)
{
    compiled->used = regexes->matches;

    if (regexes->newest == compiled) {
        return;
    }

    core_unlink(regexes, compiled);

    compiled->newer = NULL;
    compiled->older = regexes->newest;
    regexes->newest->newer = compiled;
    regexes->newest = compiled;
}


/* From the order of use. */

static void
core_unlink(sluice_core_regexes_t *regexes, sluice_core_compiled_t *compiled)
{
    if (compiled->newer) {
        compiled->newer->older = compiled->older;

    } else {
        regexes->newest = compiled->older;
    }

    if (compiled->older) {
        compiled->older->newer = compiled->newer;

    } else {
        regexes->oldest = compiled->newer;
    }
}


static void
core_drop(sluice_core_regexes_t *regexes, sluice_core_compiled_t *compiled)
{
    sluice_core_compiled_t  **link;

    link = &regexes->buckets[compiled->hash % CORE_BUCKETS];

    while (*link != compiled) {
        link = &(*link)->next;
    }

    *link = compiled->next;

    core_unlink(regexes, compiled);
    regexes->count--;
    regexes->size -= compiled->size;

    pcre2_code_free(compiled->careful);
    pcre2_code_free(compiled->fast);
    free(compiled);
}
