
/*
 * The cache of compiled patterns, found by their texts: who may compile what
 * is not there (credit.c), what goes where it is full (kept.c).
 */


#include "pattern.h"

#include <stdlib.h>


#define CORE_CHAIN_MAX  64         /* patterns with one hash's low bits */

/* What malloc() and the cache add to a pattern. */
#define CORE_OVERHEAD   128

/*
 * A pattern gets its fast form, which takes some KB and 0.13 ms at most, when
 * it has run so often, by a request that has not spent more ns so far.
 */

#define CORE_FAST_RUNS  8
#define CORE_FAST_NS    250000

/* ns that may be others': above that the CPU's clock is asked. */
#define CORE_WALL_NS    200000

/* KB that PCRE2 may take for what it has to come back to; it keeps them. */
#define CORE_HEAP       4096


static void *core_take(size_t size, void *data);
static void core_give(void *memory, void *data);
static sluice_core_compiled_t *core_find(sluice_core_regexes_t *regexes,
    const sluice_core_run_t *run);
static uint32_t core_account(const sluice_core_budget_t *budget);
static int core_refuse(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, sluice_core_account_t *account,
    sluice_core_credit_e credit, int *reason);
static int core_is_free(const sluice_core_budget_t *budget,
    const sluice_core_run_t *run, const sluice_core_account_t *account);
static void core_pay(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, sluice_core_account_t *account,
    uint64_t before, int is_short);
static int core_add(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run,
    sluice_core_compiled_t **added, int *reason);
static sluice_core_compiled_t *core_make(const sluice_core_run_t *run,
    int *err);
static void core_make_fast(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, sluice_core_compiled_t *compiled);
static uint64_t core_bytes(const pcre2_code *code, uint32_t length);
static uint64_t core_size(const pcre2_code *code);


sluice_core_regexes_t *
sluice_core_regexes_create(uint64_t limit)
{
    sluice_core_regexes_t  *regexes;

    regexes = calloc(1, sizeof(sluice_core_regexes_t));
    if (regexes == NULL) {
        return NULL;
    }

    regexes->limit = limit;
    regexes->buckets = calloc(SLUICE_CORE_BUCKETS,
                              sizeof(sluice_core_compiled_t *));
    regexes->accounts = calloc(SLUICE_CORE_ACCOUNTS + 1,
                               sizeof(sluice_core_account_t));
    regexes->memory = pcre2_general_context_create(core_take, core_give,
                                                   regexes);
    regexes->data = pcre2_match_data_create(SLUICE_CORE_GROUPS_MAX + 1,
                                            regexes->memory);
    regexes->careful = pcre2_match_context_create(NULL);
    regexes->fast = pcre2_match_context_create(NULL);

    if (regexes->buckets == NULL || regexes->accounts == NULL
        || regexes->memory == NULL
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
    uint32_t  i;

    for (i = 0; regexes->accounts && i <= SLUICE_CORE_ACCOUNTS; i++) {

        while (regexes->accounts[i].oldest) {
            sluice_core_kept_drop(regexes, regexes->accounts[i].oldest);
        }
    }

    pcre2_match_context_free(regexes->careful);
    pcre2_match_context_free(regexes->fast);
    pcre2_match_data_free(regexes->data);
    pcre2_general_context_free(regexes->memory);
    free(regexes->accounts);
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
    sluice_core_credit_e     credit;
    sluice_core_account_t   *account;
    sluice_core_compiled_t  *found;

    found = core_find(regexes, run);
    *compiled = found;

    if (found == NULL) {
        account = &regexes->accounts[core_account(budget)];
        credit = core_is_free(budget, run, account)
                 ? SLUICE_CORE_CREDIT
                 : sluice_core_credit_has(regexes, account, budget->last);

        return credit == SLUICE_CORE_CREDIT
               ? core_add(regexes, budget, run, compiled, reason)
               : core_refuse(regexes, budget, account, credit, reason);
    }

    sluice_core_kept_use(regexes, found, budget->last);

    if (found->fast == NULL && ++found->runs == CORE_FAST_RUNS) {
        core_make_fast(regexes, budget, found);
    }

    return SLUICE_CORE_OK;
}


static sluice_core_compiled_t *
core_find(sluice_core_regexes_t *regexes, const sluice_core_run_t *run)
{
    unsigned                 i;
    sluice_core_compiled_t  *compiled;

    compiled = regexes->buckets[run->hash % SLUICE_CORE_BUCKETS];

    for (i = 0; compiled; compiled = compiled->next, i++) {

        if (compiled->hash == run->hash
            && compiled->length == run->pattern.length
            && compiled->is_path == run->is_path
            && memcmp(compiled->text, run->pattern.data, compiled->length)
               == 0)
        {
            return compiled;
        }

        if (i == CORE_CHAIN_MAX) {
            sluice_core_kept_drop(regexes, compiled);
            break;
        }
    }

    return NULL;
}


/* The service's, of the route whose pattern it is. */

static uint32_t
core_account(const sluice_core_budget_t *budget)
{
    return budget->route ? budget->route->fields[SLUICE_CORE_ROUTE_SERVICE]
                           % SLUICE_CORE_ACCOUNTS
                         : SLUICE_CORE_ACCOUNTS;
}


static int
core_refuse(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    sluice_core_account_t *account, sluice_core_credit_e credit, int *reason)
{
    *reason = SLUICE_CORE_BY_COMPILING;

    if (budget->wait == 0) {
        budget->account = (uint32_t) (account - regexes->accounts);
        budget->wait = sluice_core_credit_wait(regexes, account, credit,
                                               budget->last);
    }

    return SLUICE_CORE_LIMIT;
}


uint64_t
sluice_core_regex_bytes(const char *pattern, uint32_t length, int is_path)
{
    int          err;
    size_t       offset;
    uint64_t     bytes;
    pcre2_code  *code;

    code = sluice_core_pattern_careful(pattern, length, is_path, &err,
                                       &offset);
    if (code == NULL) {
        return 0;
    }

    bytes = core_bytes(code, length);
    pcre2_code_free(code);

    return bytes;
}


/* Of one that has only its careful form. */

static uint64_t
core_bytes(const pcre2_code *code, uint32_t length)
{
    return CORE_OVERHEAD + sizeof(sluice_core_compiled_t) + length
           + core_size(code);
}


static int
core_is_free(const sluice_core_budget_t *budget, const sluice_core_run_t *run,
    const sluice_core_account_t *account)
{
    return run->pattern.length <= SLUICE_CORE_FREE_BYTES && budget->free
           && !account->is_dear;
}


/*
 * What others had of the CPU meanwhile is not compiling.  A short pattern that
 * takes more than is free is no ordinary one: until there is credit again its
 * account has nothing for nothing.
 */

static void
core_pay(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    sluice_core_account_t *account, uint64_t before, int is_short)
{
    uint64_t  spent, free;

    sluice_core_budget_read(budget);

    if (budget->spent > before + CORE_WALL_NS) {
        sluice_core_budget_correct(budget);
    }

    if (budget->spent <= before) {
        return;
    }

    spent = budget->spent - before;

    if (is_short && !account->is_dear) {
        account->is_dear = (spent > SLUICE_CORE_FREE_NS);
        free = spent < budget->free ? spent : budget->free;
        budget->free -= (uint32_t) free;
        spent -= free;
    }

    sluice_core_credit_take(regexes, account, spent);
}


static int
core_add(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    const sluice_core_run_t *run, sluice_core_compiled_t **added, int *reason)
{
    int                      err;
    uint32_t                 number;
    uint64_t                 before;
    sluice_core_account_t   *account;
    sluice_core_compiled_t  *compiled;

    number = core_account(budget);
    account = &regexes->accounts[number];
    before = budget->spent;

    compiled = core_make(run, &err);

    core_pay(regexes, budget, account, before,
             run->pattern.length <= SLUICE_CORE_FREE_BYTES);

    if (compiled == NULL) {
        *reason = err;
        return (err == PCRE2_ERROR_HEAP_FAILED || err == PCRE2_ERROR_NOMEMORY)
               ? SLUICE_CORE_MEMORY : SLUICE_CORE_PATTERN;
    }

    compiled->account = number;
    compiled->seen = budget->last;
    sluice_core_kept_insert(regexes, compiled);

    if (sluice_core_kept_shrink(regexes, compiled)) {

        if (budget->spent > before) {
            budget->preparing += budget->spent - before;
        }

    } else {

        /* it takes the place of what this match needs: nothing is gained */

        sluice_core_credit_close(account, budget->last);
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

    compiled->size = core_bytes(compiled->careful, run->pattern.length);

    return compiled;
}


/*
 * Later, if this request has spent too much for that, or its account; never
 * where it could take the place of other patterns.
 */

static void
core_make_fast(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    sluice_core_compiled_t *compiled)
{
    uint64_t                size, before;
    sluice_core_account_t  *account;

    if (regexes->size > regexes->limit / 2) {
        return;
    }

    account = &regexes->accounts[compiled->account];

    if (budget->spent > CORE_FAST_NS
        || sluice_core_credit_has(regexes, account, budget->last)
           != SLUICE_CORE_CREDIT)
    {
        compiled->runs--;
        return;
    }

    before = budget->spent;
    compiled->fast = sluice_core_pattern_fast(compiled->text, compiled->length,
                                              compiled->is_path);

    if (compiled->fast) {
        size = core_size(compiled->fast);
        compiled->size += size;
        account->size += size;
        regexes->size += size;
    }

    core_pay(regexes, budget, account, before, 0);
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
