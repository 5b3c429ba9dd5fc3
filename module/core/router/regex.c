
/*
 * Regular expressions: PCRE2, on bytes.  A cache of compiled patterns, the
 * least recently used goes first, found by the pattern's text.
 */


#define PCRE2_CODE_UNIT_WIDTH  8

#include "layout.h"
#include "hash.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>


#define CORE_CHAIN_MAX  64         /* patterns with one hash's low bits */

/* Bytes that a pattern may become, and those that are worth translating. */

#define CORE_SIZE_MAX(length)  (2048 + 16 * (uint64_t) (length))
#define CORE_JIT_MAX(length)   (256 + 8 * (uint64_t) (length))

#define CORE_BEFORE     "(?s:.*?)(?:"
#define CORE_BEHIND     ")"

/* Reasons that are not PCRE's. */

#define CORE_GROUPS     (-1000)
#define CORE_SIZE       (-1001)


typedef struct core_compiled_s  core_compiled_t;

struct core_compiled_s {
    core_compiled_t  *next;        /* of its bucket */
    core_compiled_t  *newer;       /* of the order of use */
    core_compiled_t  *older;
    pcre2_code       *code;
    uint64_t          hash;
    uint32_t          length;
    uint32_t          is_path;
    char              text[1];
};


struct sluice_core_regexes_s {
    core_compiled_t      **buckets;
    core_compiled_t       *newest;
    core_compiled_t       *oldest;
    pcre2_match_data      *data;
    pcre2_match_context   *context;
    uint64_t               compiled;
    uint32_t               mask;
    uint32_t               count;
    uint32_t               capacity;
};


static int core_run(sluice_core_regexes_t *regexes, uint64_t hash,
    const char *text, uint32_t text_length, uint32_t is_path,
    const char *subject, uint32_t length, uint32_t *end, int *reason);
static int core_get(sluice_core_regexes_t *regexes, uint64_t hash,
    const char *text, uint32_t length, uint32_t is_path,
    core_compiled_t **found, int *reason);
static pcre2_code *core_compile(const char *text, uint32_t length,
    uint32_t is_path, int is_run, int *err, size_t *offset);
static pcre2_code *core_compile_search(const char *text, uint32_t length);
static void core_use(sluice_core_regexes_t *regexes,
    core_compiled_t *compiled);
static void core_unlink(sluice_core_regexes_t *regexes,
    core_compiled_t *compiled);
static void core_drop(sluice_core_regexes_t *regexes,
    core_compiled_t *compiled);


sluice_core_regexes_t *
sluice_core_regexes_create(uint32_t capacity)
{
    uint32_t                buckets;
    sluice_core_regexes_t  *regexes;

    if (capacity == 0 || capacity > (1u << 24)) {
        return NULL;
    }

    regexes = calloc(1, sizeof(sluice_core_regexes_t));
    if (regexes == NULL) {
        return NULL;
    }

    for (buckets = 16; buckets < capacity; buckets *= 2) { /* void */ }

    regexes->capacity = capacity;
    regexes->mask = buckets - 1;
    regexes->buckets = calloc(buckets, sizeof(core_compiled_t *));
    regexes->data = pcre2_match_data_create(SLUICE_CORE_GROUPS_MAX + 1, NULL);
    regexes->context = pcre2_match_context_create(NULL);

    if (regexes->buckets == NULL || regexes->data == NULL
        || regexes->context == NULL)
    {
        sluice_core_regexes_destroy(regexes);
        return NULL;
    }

    (void) pcre2_set_match_limit(regexes->context, SLUICE_CORE_STEPS);

    return regexes;
}


void
sluice_core_regexes_destroy(sluice_core_regexes_t *regexes)
{
    while (regexes->oldest) {
        core_drop(regexes, regexes->oldest);
    }

    pcre2_match_context_free(regexes->context);
    pcre2_match_data_free(regexes->data);
    free(regexes->buckets);
    free(regexes);
}


uint32_t
sluice_core_regexes_count(const sluice_core_regexes_t *regexes,
    uint64_t *compiled)
{
    *compiled = regexes->compiled;

    return regexes->count;
}


/*
 * end: the last byte that matched, of a path's pattern.  SLUICE_CORE_OK,
 * _NONE; or a refusal, with PCRE's reason.
 */

int
sluice_core_regex_match(sluice_core_regexes_t *regexes,
    const sluice_core_space_t *space, uint32_t ref, const char *subject,
    uint32_t length, uint32_t *end, int *reason)
{
    const sluice_core_regex_t  *regex;
    const sluice_core_chars_t  *chars;

    regex = sluice_core_at(space, ref);
    chars = sluice_core_chars(space, regex->text);

    return core_run(regexes, regex->hash, chars->data + regex->skip,
                    chars->length - regex->skip, regex->is_path != 0, subject,
                    length, end, reason);
}


int
sluice_core_regex_try(sluice_core_regexes_t *regexes, const char *pattern,
    uint32_t length, int is_path, const char *subject, uint32_t subject_length,
    int *reason)
{
    uint32_t  end;

    return core_run(regexes,
                    sluice_core_hash(SLUICE_CORE_HASH_PATTERN, pattern,
                                     length),
                    pattern, length, is_path != 0, subject, subject_length,
                    &end, reason);
}


static int
core_run(sluice_core_regexes_t *regexes, uint64_t hash, const char *text,
    uint32_t text_length, uint32_t is_path, const char *subject,
    uint32_t length, uint32_t *end, int *reason)
{
    int               rc;
    core_compiled_t  *compiled;

    if (regexes == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = core_get(regexes, hash, text, text_length, is_path, &compiled,
                  reason);
    if (rc != SLUICE_CORE_OK) {
        return rc;
    }

    rc = pcre2_match(compiled->code, (PCRE2_SPTR) subject, length, 0, 0,
                     regexes->data, regexes->context);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(compiled->code, (PCRE2_SPTR) subject, length, 0,
                         PCRE2_NO_JIT, regexes->data, regexes->context);
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
core_get(sluice_core_regexes_t *regexes, uint64_t hash, const char *text,
    uint32_t length, uint32_t is_path, core_compiled_t **found, int *reason)
{
    int                err;
    size_t             offset;
    unsigned           i;
    core_compiled_t  **bucket, *compiled;

    bucket = &regexes->buckets[hash & regexes->mask];

    for (compiled = *bucket, i = 0; compiled; compiled = compiled->next, i++) {

        if (compiled->hash == hash && compiled->length == length
            && compiled->is_path == is_path
            && memcmp(compiled->text, text, length) == 0)
        {
            core_use(regexes, compiled);
            *found = compiled;

            return SLUICE_CORE_OK;
        }

        if (i == CORE_CHAIN_MAX) {
            core_drop(regexes, compiled);
            break;
        }
    }

    compiled = malloc(offsetof(core_compiled_t, text) + length + 1);
    if (compiled == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    compiled->code = core_compile(text, length, is_path, 1, &err, &offset);

    if (compiled->code == NULL) {
        free(compiled);
        *reason = err;
        return err == PCRE2_ERROR_HEAP_FAILED ? SLUICE_CORE_MEMORY
                                              : SLUICE_CORE_PATTERN;
    }

    if (regexes->count == regexes->capacity) {
        core_drop(regexes, regexes->oldest);
    }

    compiled->hash = hash;
    compiled->length = length;
    compiled->is_path = is_path;
    memcpy(compiled->text, text, length);

    compiled->next = *bucket;
    *bucket = compiled;
    compiled->newer = NULL;
    compiled->older = regexes->newest;

    if (regexes->newest) {
        regexes->newest->newer = compiled;

    } else {
        regexes->oldest = compiled;
    }

    regexes->newest = compiled;
    regexes->count++;
    regexes->compiled++;

    *found = compiled;

    return SLUICE_CORE_OK;
}


/*
 * Without DOLLAR_ENDONLY "$" would also match before a line feed at the end,
 * and "/admin%0A" pass for "/admin".  is_run: not only to be looked at.
 */

static pcre2_code *
core_compile(const char *text, uint32_t length, uint32_t is_path, int is_run,
    int *err, size_t *offset)
{
    size_t       size;
    uint32_t     groups;
    pcre2_code  *code, *whole;

    code = pcre2_compile((PCRE2_SPTR) text, length,
                         PCRE2_DOLLAR_ENDONLY
                         | (is_path ? PCRE2_ANCHORED : PCRE2_CASELESS),
                         err, offset, NULL);
    if (code == NULL) {
        return NULL;
    }

    groups = 0;
    size = 0;
    (void) pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
    (void) pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);

    if (groups > SLUICE_CORE_GROUPS_MAX || size > CORE_SIZE_MAX(length)) {
        *err = groups > SLUICE_CORE_GROUPS_MAX ? CORE_GROUPS : CORE_SIZE;
        pcre2_code_free(code);

        return NULL;
    }

    whole = is_path ? NULL : core_compile_search(text, length);

    if (whole) {
        pcre2_code_free(code);
        code = whole;
    }

    /* without executable memory this fails, and the interpreter works */

    if (is_run && size <= CORE_JIT_MAX(length)) {
        (void) pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    }

    return code;
}


/*
 * A search with one limit of steps, where PCRE alone counts anew for each byte
 * at which a match could begin.  NULL: PCRE itself begins with ".*" but once;
 * or this cannot stand in a group (a verb at its beginning).
 */

static pcre2_code *
core_compile_search(const char *text, uint32_t length)
{
    int          err;
    char        *group;
    size_t       n, offset;
    pcre2_code  *code;

    if (length >= 2 && text[0] == '.' && text[1] == '*'
        && memchr(text, '|', length) == NULL)
    {
        return NULL;
    }

    group = malloc(length + sizeof(CORE_BEFORE CORE_BEHIND));
    if (group == NULL) {
        return NULL;
    }

    n = sizeof(CORE_BEFORE) - 1;
    memcpy(group, CORE_BEFORE, n);
    memcpy(group + n, text, length);
    memcpy(group + n + length, CORE_BEHIND, sizeof(CORE_BEHIND) - 1);

    code = pcre2_compile((PCRE2_SPTR) group,
                         n + length + sizeof(CORE_BEHIND) - 1,
                         PCRE2_DOLLAR_ENDONLY|PCRE2_CASELESS|PCRE2_ANCHORED,
                         &err, &offset, NULL);
    free(group);

    return code;
}


static void
core_use(sluice_core_regexes_t *regexes, core_compiled_t *compiled)
{
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
core_unlink(sluice_core_regexes_t *regexes, core_compiled_t *compiled)
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
core_drop(sluice_core_regexes_t *regexes, core_compiled_t *compiled)
{
    core_compiled_t  **link;

    link = &regexes->buckets[compiled->hash & regexes->mask];

    while (*link != compiled) {
        link = &(*link)->next;
    }

    *link = compiled->next;

    core_unlink(regexes, compiled);
    regexes->count--;

    pcre2_code_free(compiled->code);
    free(compiled);
}


int
sluice_core_regex_check(const char *pattern, uint32_t length, int is_path,
    char *message, size_t size)
{
    int          err;
    size_t       n, offset;
    pcre2_code  *code;

    code = core_compile(pattern, length, is_path != 0, 0, &err, &offset);

    if (code) {
        pcre2_code_free(code);
        return SLUICE_CORE_OK;
    }

    sluice_core_reason(err, message, size);
    n = strnlen(message, size);

    if (err != CORE_GROUPS && err != CORE_SIZE && n < size) {
        (void) snprintf(message + n, size - n, " at offset %zu", offset);
    }

    return SLUICE_CORE_PATTERN;
}


void
sluice_core_reason(int reason, char *message, size_t size)
{
    if (size == 0) {
        return;
    }

    message[0] = '\0';

    switch (reason) {

    case CORE_GROUPS:
        (void) snprintf(message, size, "more than %d groups",
                        SLUICE_CORE_GROUPS_MAX);
        break;

    case CORE_SIZE:
        (void) snprintf(message, size,
                        "too large once its repetitions are unfolded");
        break;

    default:
        (void) pcre2_get_error_message(reason, (PCRE2_UCHAR *) message, size);
    }
}
