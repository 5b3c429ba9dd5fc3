
/*
 * What PCRE2 makes of a pattern, and what it is not asked to.
 */


#include "pattern.h"

#include <stdio.h>
#include <string.h>


/* Bytes that a pattern may become: with its calls, and to be translated. */

#define CORE_SIZE_MAX(length)  (8192 + 64 * (uint64_t) (length))
#define CORE_FAST_MAX          1024

/*
 * PCRE2 compares what is repeated with all that may come behind it, which
 * takes the square of a long pattern's length and more.
 */

#define CORE_POSSESS_MAX       256        /* bytes */

/* A class that has properties is looked through for each byte of a subject. */

#define CORE_PROPERTIES_MAX    16

/*
 * Subjects are bytes.  A range of characters in UTF takes 3 ms to compile, and
 * \X the square of the subject's length, without a call.
 */

#define CORE_OPTIONS  (PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF                 \
                       | PCRE2_NEVER_UCP)


static pcre2_code *core_compile(const char *text, uint32_t length,
    uint32_t options, uint64_t most, int *err, size_t *offset);
static int core_has_many_properties(const char *text, uint32_t length);
static int core_looks_behind(const char *text, uint32_t length);
static int core_refers(const char *text, uint32_t length);


pcre2_code *
sluice_core_pattern_careful(const char *text, uint32_t length, int is_path,
    int *err, size_t *offset)
{
    return core_compile(text, length,
                        (is_path ? PCRE2_ANCHORED : PCRE2_CASELESS)
                        | PCRE2_AUTO_CALLOUT, CORE_SIZE_MAX(length), err,
                        offset);
}


pcre2_code *
sluice_core_pattern_fast(const char *text, uint32_t length, int is_path)
{
    int          err;
    size_t       offset, machine;
    pcre2_code  *code;

    code = core_compile(text, length,
                        is_path ? PCRE2_ANCHORED : PCRE2_CASELESS,
                        CORE_FAST_MAX, &err, &offset);
    if (code == NULL) {
        return NULL;
    }

    /*
     * Without executable memory there is no machine code, which is an error,
     * nor where the pattern says so, which is none.
     */

    machine = 0;
    (void) pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    (void) pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &machine);

    if (machine == 0) {
        pcre2_code_free(code);
        return NULL;
    }

    return code;
}


/* "(?1)", "(?R)", "(?&name)", "(?P>name)", "\g<1>": or what looks so. */

int
sluice_core_pattern_recurses(const char *text, uint32_t length)
{
    uint32_t  i;

    for (i = 0; i + 2 < length; i++) {

        if (text[i] == '\\' && text[i + 1] == 'g') {
            return 1;
        }

        if (text[i] != '(' || text[i + 1] != '?') {
            continue;
        }

        if (memchr("R&0123456789", text[i + 2], 12)) {
            return 1;
        }

        if (i + 3 < length
            && ((text[i + 2] == 'P' && text[i + 3] == '>')
                || (memchr("+-", text[i + 2], 2)
                    && text[i + 3] >= '0' && text[i + 3] <= '9')))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Without DOLLAR_ENDONLY "$" would also match before a line feed at the end,
 * and "/admin%0A" pass for "/admin".
 */

static pcre2_code *
core_compile(const char *text, uint32_t length, uint32_t options,
    uint64_t most, int *err, size_t *offset)
{
    size_t       size;
    uint32_t     groups;
    pcre2_code  *code;

    *offset = 0;

    if (length > SLUICE_CORE_PATTERN_MAX) {
        *err = SLUICE_CORE_BY_LENGTH;
        return NULL;
    }

    if (core_has_many_properties(text, length)) {
        *err = SLUICE_CORE_BY_PROPERTIES;
        return NULL;
    }

    if (core_looks_behind(text, length) && core_refers(text, length)) {
        *err = SLUICE_CORE_BY_LOOKBEHIND;
        return NULL;
    }

    if (length > CORE_POSSESS_MAX) {
        options |= PCRE2_NO_AUTO_POSSESS;
    }

    code = pcre2_compile((PCRE2_SPTR) text, length, options | CORE_OPTIONS,
                         err, offset, NULL);
    if (code == NULL) {
        if (*err == PCRE2_ERROR_PATTERN_TOO_LARGE) {
            *err = SLUICE_CORE_BY_SIZE;
        }

        return NULL;
    }

    groups = 0;
    size = 0;
    (void) pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
    (void) pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);

    if (groups > SLUICE_CORE_GROUPS_MAX || size > most) {
        *err = groups > SLUICE_CORE_GROUPS_MAX ? SLUICE_CORE_BY_GROUPS
                                               : SLUICE_CORE_BY_SIZE;
        pcre2_code_free(code);

        return NULL;
    }

    return code;
}


/* \p and \P; at worst it counts some that are quoted. */

static int
core_has_many_properties(const char *text, uint32_t length)
{
    uint32_t  i, count;

    count = 0;

    for (i = 0; i + 1 < length; i++) {

        if (text[i] == '\\') {
            i++;
            count += (text[i] == 'p' || text[i] == 'P');
        }
    }

    return count > CORE_PROPERTIES_MAX;
}


/*
 * PCRE2 measures a lookbehind, and anew each group that it refers to: 4 KB
 * took 80 ms.  "(?<=", "(?<!", "(?<*", and what may be one in words: "(*plb:".
 */

static int
core_looks_behind(const char *text, uint32_t length)
{
    uint32_t  i;

    for (i = 0; i + 3 < length; i++) {

        if (text[i] != '(') {
            continue;
        }

        if (text[i + 1] == '?' && text[i + 2] == '<'
            && (text[i + 3] == '=' || text[i + 3] == '!'
                || text[i + 3] == '*'))
        {
            return 1;
        }

        if (text[i + 1] == '*' && text[i + 2] >= 'a' && text[i + 2] <= 'z') {
            return 1;
        }
    }

    return 0;
}


/* A back reference, or a call; or what looks so. */

static int
core_refers(const char *text, uint32_t length)
{
    uint32_t  i;

    for (i = 0; i + 1 < length; i++) {

        if (text[i] == '\\') {
            i++;

            if ((text[i] >= '1' && text[i] <= '9') || text[i] == 'g'
                || text[i] == 'k')
            {
                return 1;
            }

        } else if (i + 3 < length && memcmp(&text[i], "(?P=", 4) == 0) {
            return 1;
        }
    }

    return sluice_core_pattern_recurses(text, length);
}


int
sluice_core_regex_check(const char *pattern, uint32_t length, int is_path,
    char *message, size_t size)
{
    int          err;
    size_t       n, offset;
    pcre2_code  *code;

    code = sluice_core_pattern_careful(pattern, length, is_path, &err,
                                       &offset);
    if (code) {
        pcre2_code_free(code);
        return SLUICE_CORE_OK;
    }

    sluice_core_reason(err, message, size);
    n = strnlen(message, size);

    if (err > SLUICE_CORE_BY_GROUPS && n < size) {
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

    case SLUICE_CORE_BY_GROUPS:
        (void) snprintf(message, size, "more than %d groups",
                        SLUICE_CORE_GROUPS_MAX);
        break;

    case SLUICE_CORE_BY_SIZE:
        (void) snprintf(message, size,
                        "too large once its repetitions are unfolded");
        break;

    case SLUICE_CORE_BY_LOOKBEHIND:
        (void) snprintf(message, size, "a lookbehind beside a back reference "
                        "or a call of a group");
        break;

    case SLUICE_CORE_BY_COMPILING:
        (void) snprintf(message, size, "limit of compiling exceeded");
        break;

    case SLUICE_CORE_BY_LENGTH:
        (void) snprintf(message, size, "longer than %d bytes",
                        SLUICE_CORE_PATTERN_MAX);
        break;

    case SLUICE_CORE_BY_PROPERTIES:
        (void) snprintf(message, size, "more than %d Unicode properties",
                        CORE_PROPERTIES_MAX);
        break;

    case SLUICE_CORE_BY_TIME:
    case SLUICE_CORE_BY_ROUTES:
        (void) snprintf(message, size, "time limit exceeded");
        break;

    default:
        (void) pcre2_get_error_message(reason, (PCRE2_UCHAR *) message, size);
    }
}
