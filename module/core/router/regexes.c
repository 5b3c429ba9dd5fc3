
/*
 * The cache of compiled patterns: the least recently used goes first, found by
 * the pattern's text.
 */


#include "hash.h"
#include "pattern.h"

#include <stdlib.h>
#include <sys/random.h>


#define CORE_BUCKETS    16384

/* What malloc() and the cache add to a pattern. */
#define CORE_OVERHEAD   128

/*
 * A pattern gets its fast form, which takes some KB and 0.13 ms at most, when
 * it has run so often, by a request that has not spent more ns so far.
 */

#define CORE_FAST_RUNS  8
#define CORE_FAST_NS    250000

/* KB that PCRE2 may take for what it has to come back to; it keeps them. */
#define CORE_HEAP       4096


static void *core_take(size_t size, void *data);
static void core_give(void *memory, void *data);
static int core_draw(uint64_t *secret);
static uint64_t core_hash(const sluice_core_regexes_t *regexes,
    const sluice_core_run_t *run);
static sluice_core_compiled_t *core_find(sluice_core_regexes_t *regexes,
    const sluice_core_run_t *run, uint64_t hash);
static int core_add(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run, uint64_t hash,
    sluice_core_compiled_t **added, int *reason);
static sluice_core_compiled_t *core_make(const sluice_core_run_t *run,
    int *err);
static void core_make_fast(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, sluice_core_compiled_t *compiled);
static uint64_t core_size(const pcre2_code *code);
static uint64_t core_size_of(const pcre2_code *careful, uint32_t length);
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

    if (!core_draw(regexes->secret)
        || regexes->buckets == NULL || regexes->memory == NULL
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


/* So that nobody can write patterns that all stand in one bucket. */

static int
core_draw(uint64_t *secret)
{
    return getrandom(secret, 2 * sizeof(uint64_t), 0)
           == 2 * sizeof(uint64_t);
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


uint64_t
sluice_core_regex_bytes(const char *pattern, uint32_t length, int is_path)
{
    int          err;
    size_t       offset;
    uint64_t     size;
    pcre2_code  *code;

    code = sluice_core_pattern_careful(pattern, length, is_path, &err,
                                       &offset);
    if (code == NULL) {
        return 0;
    }

    size = core_size_of(code, length);
    pcre2_code_free(code);

    return size;
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
    uint64_t  hash;

    hash = core_hash(regexes, run);
    *compiled = core_find(regexes, run, hash);

    if (*compiled == NULL) {
        return core_add(regexes, budget, run, hash, compiled, reason);
    }

    if ((*compiled)->fast == NULL && ++(*compiled)->runs == CORE_FAST_RUNS) {
        core_make_fast(regexes, budget, *compiled);
    }

    return SLUICE_CORE_OK;
}


int
sluice_core_regexes_warm(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_run_t *run, int is_asked)
{
    int                      reason;
    uint64_t                 hash;
    sluice_core_compiled_t  *compiled;

    hash = core_hash(regexes, run);

    if (core_find(regexes, run, hash)) {
        return SLUICE_CORE_OK;
    }

    if (!is_asked && regexes->size > regexes->limit / 2) {
        return SLUICE_CORE_FULL;
    }

    if (is_asked ? !sluice_core_regexes_may(regexes, run->pattern.length)
                 : !sluice_core_regexes_has_half(regexes))
    {
        return SLUICE_CORE_AGAIN;
    }

    /* what cannot be compiled is refused where somebody asks for it */

    (void) core_add(regexes, budget, run, hash, &compiled, &reason);

    return SLUICE_CORE_OK;
}


static uint64_t
core_hash(const sluice_core_regexes_t *regexes, const sluice_core_run_t *run)
{
    return sluice_core_hash_keyed(regexes->secret, run->pattern.data,
                                  run->pattern.length);
}


static sluice_core_compiled_t *
core_find(sluice_core_regexes_t *regexes, const sluice_core_run_t *run,
    uint64_t hash)
{
    sluice_core_compiled_t  *compiled;

    compiled = regexes->buckets[hash % CORE_BUCKETS];

    for ( /* void */ ; compiled; compiled = compiled->next) {

        if (compiled->hash == hash
            && compiled->length == run->pattern.length
            && compiled->is_path == run->is_path
            && memcmp(compiled->text, run->pattern.data, compiled->length)
               == 0)
        {
            core_use(regexes, compiled);
            return compiled;
        }
    }

    return NULL;
}


static int
core_add(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    const sluice_core_run_t *run, uint64_t hash,
    sluice_core_compiled_t **added, int *reason)
{
    int                       err;
    uint64_t                  before;
    sluice_core_compiled_t  **bucket, *compiled;

    if (!budget->is_urgent
        && !sluice_core_regexes_may(regexes, run->pattern.length))
    {
        budget->is_put_off = 1;
        *reason = SLUICE_CORE_BY_COMPILING;
        return SLUICE_CORE_LIMIT;
    }

    before = budget->spent;
    compiled = core_make(run, &err);

    sluice_core_regexes_pay(regexes, budget);

    if (compiled == NULL) {
        *reason = err;
        return (err == PCRE2_ERROR_HEAP_FAILED || err == PCRE2_ERROR_NOMEMORY)
               ? SLUICE_CORE_MEMORY : SLUICE_CORE_PATTERN;
    }

    compiled->hash = hash;
    bucket = &regexes->buckets[hash % CORE_BUCKETS];
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

    if (core_shrink(regexes, compiled) && budget->spent > before) {
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

    compiled->length = run->pattern.length;
    compiled->is_path = (run->is_path != 0);
    compiled->recurses = (uint8_t) sluice_core_pattern_recurses(
                                       run->pattern.data, run->pattern.length);
    memcpy(compiled->text, run->pattern.data, run->pattern.length);

    compiled->size = core_size_of(compiled->careful, run->pattern.length);

    return compiled;
}


/*
 * Later, if this request has spent too much for that, or its turn: those that
 * are not compiled at all come first.  Never where it could take the place of
 * other patterns.
 */

static void
core_make_fast(sluice_core_regexes_t *regexes, sluice_core_budget_t *budget,
    sluice_core_compiled_t *compiled)
{
    uint64_t  size;

    if (regexes->size > regexes->limit / 2) {
        return;
    }

    if (budget->spent > CORE_FAST_NS
        || !sluice_core_regexes_has_half(regexes))
    {
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

    sluice_core_regexes_pay(regexes, budget);
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


/* Of all that one has, but for its fast form. */

static uint64_t
core_size_of(const pcre2_code *careful, uint32_t length)
{
    return CORE_OVERHEAD + sizeof(sluice_core_compiled_t) + length
           + core_size(careful);
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
