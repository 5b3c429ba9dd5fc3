
/*
 * The text with which everything begins that a pattern matches.
 */


#include "layout.h"


#define CORE_PUNCTUATION  "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#define CORE_LITERALS     "/_-~%:@!&',;=<>\"# "

#define core_is_digit(c)  ((c) >= '0' && (c) <= '9')
#define core_is_letter(c)                                                     \
    (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z'))
#define core_is_one_of(set, c)  ((c) != '\0' && strchr(set, c) != NULL)


static int core_has_choice(const char *pattern, uint32_t length);
static uint32_t core_skip_class(const char *pattern, uint32_t length,
    uint32_t i);


/* May be shorter than possible, never longer: it only narrows the search. */

uint32_t
sluice_core_literal_head(const char *pattern, uint32_t length, char *head)
{
    char      c;
    uint32_t  i, n;

    if (core_has_choice(pattern, length)) {
        return 0;
    }

    for (i = 0, n = 0; i < length; n++) {
        c = pattern[i++];

        if (c == '\\' && i < length
            && core_is_one_of(CORE_PUNCTUATION, pattern[i]))
        {
            /* a backslash before punctuation makes it stand for itself */
            c = pattern[i++];

        } else if (!core_is_letter(c) && !core_is_digit(c)
                   && !core_is_one_of(CORE_LITERALS, c))
        {
            break;
        }

        if (i < length && core_is_one_of("*?+{", pattern[i])) {
            break;
        }

        head[n] = c;
    }

    return n;
}


/*
 * Could one of the alternatives begin differently from the pattern's text?
 * True when in doubt.
 */

static int
core_has_choice(const char *pattern, uint32_t length)
{
    int       depth;
    uint32_t  i, j;

    if (memchr(pattern, '|', length) == NULL) {
        return 0;
    }

    for (i = 0, depth = 0; i < length; i++) {

        switch (pattern[i]) {

        case '\\':
            i++;

            if (i < length && pattern[i] == 'Q') {
                return 1;
            }

            break;

        case '[':
            i = core_skip_class(pattern, length, i);

            if (i == length) {
                return 1;
            }

            break;

        case '(':
            depth++;

            if (i + 1 == length || pattern[i + 1] != '?') {
                break;
            }

            /* a comment, or white space and comments from here on */

            for (j = i + 2; j < length
                            && (core_is_letter(pattern[j])
                                || core_is_one_of("#^-", pattern[j])); j++)
            {
                if (pattern[j] == '#' || pattern[j] == 'x') {
                    return 1;
                }
            }

            break;

        case ')':
            depth--;
            break;

        case '|':
            if (depth <= 0) {
                return 1;
            }

            break;
        }
    }

    return depth != 0;
}


/* From its bracket to the one that closes the class; length when in doubt. */

static uint32_t
core_skip_class(const char *pattern, uint32_t length, uint32_t i)
{
    i++;

    if (i < length && pattern[i] == '^') {
        i++;
    }

    if (i < length && pattern[i] == ']') {
        i++;
    }

    for ( /* void */ ; i < length; i++) {

        if (pattern[i] == ']') {
            return i;
        }

        if (pattern[i] == '[') {
            return length;
        }

        if (pattern[i] == '\\') {
            i++;

            if (i < length && (pattern[i] == 'Q' || pattern[i] == 'E')) {
                return length;
            }
        }
    }

    return length;
}
