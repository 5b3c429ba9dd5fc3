
/*
 * What the cache of compiled patterns keeps: the least recently used goes
 * first, of the account that has most (pattern.h).
 */


#include "pattern.h"

#include <stdlib.h>


/* ns: a pattern that nobody has asked for since goes before all others. */
#define CORE_STALE_NS  UINT64_C(60000000000)


static sluice_core_compiled_t *core_victim(
    const sluice_core_regexes_t *regexes, const sluice_core_compiled_t *keep);
static sluice_core_compiled_t *core_last(const sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *oldest, const sluice_core_compiled_t *keep);
static void core_unlink(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled);


void
sluice_core_kept_insert(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled)
{
    sluice_core_account_t   *account;
    sluice_core_compiled_t  **bucket;

    bucket = &regexes->buckets[compiled->hash % SLUICE_CORE_BUCKETS];
    compiled->next = *bucket;
    *bucket = compiled;

    account = &regexes->accounts[compiled->account];
    compiled->older = account->newest;

    if (account->newest) {
        account->newest->newer = compiled;

    } else {
        account->oldest = compiled;
    }

    account->newest = compiled;
    account->size += compiled->size;

    regexes->count++;
    regexes->compiled++;
    regexes->size += compiled->size;

    compiled->used = regexes->matches;
}


int
sluice_core_kept_shrink(sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *keep)
{
    int                      is_others;
    sluice_core_compiled_t  *victim;

    is_others = 1;

    while (regexes->size > regexes->limit) {
        victim = core_victim(regexes, keep);

        if (victim == NULL) {
            break;
        }

        if (victim->used == regexes->matches) {
            is_others = 0;
            victim = core_last(regexes, victim, keep);
        }

        sluice_core_kept_drop(regexes, victim);
    }

    return is_others;
}


/* keep: what was just added.  NULL: there is nothing else. */

static sluice_core_compiled_t *
core_victim(const sluice_core_regexes_t *regexes,
    const sluice_core_compiled_t *keep)
{
    uint32_t                      i;
    uint64_t                      most;
    sluice_core_compiled_t       *of_most, *oldest;
    const sluice_core_account_t  *account;

    most = 0;
    of_most = NULL;
    oldest = NULL;

    for (i = 0; i <= SLUICE_CORE_ACCOUNTS; i++) {
        account = &regexes->accounts[i];

        if (account->oldest == NULL || account->oldest == keep) {
            continue;
        }

        if (oldest == NULL || account->oldest->seen < oldest->seen) {
            oldest = account->oldest;
        }

        if (account->size > most) {
            most = account->size;
            of_most = account->oldest;
        }
    }

    return oldest && oldest->seen + CORE_STALE_NS < keep->seen ? oldest
                                                               : of_most;
}


/*
 * Of an account that this match needs all of: by order of use each pattern
 * would be gone when it is asked for again, and all be compiled each time.
 */

static sluice_core_compiled_t *
core_last(const sluice_core_regexes_t *regexes, sluice_core_compiled_t *oldest,
    const sluice_core_compiled_t *keep)
{
    sluice_core_compiled_t  *last;

    last = regexes->accounts[oldest->account].newest;

    return last == keep ? last->older : last;
}


void
sluice_core_kept_use(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled,
    uint64_t now)
{
    sluice_core_account_t  *account;

    compiled->used = regexes->matches;
    compiled->seen = now;

    account = &regexes->accounts[compiled->account];

    if (account->newest == compiled) {
        return;
    }

    core_unlink(regexes, compiled);

    compiled->newer = NULL;
    compiled->older = account->newest;
    account->newest->newer = compiled;
    account->newest = compiled;
}


/* From the order of use. */

static void
core_unlink(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled)
{
    sluice_core_account_t  *account;

    account = &regexes->accounts[compiled->account];

    if (compiled->newer) {
        compiled->newer->older = compiled->older;

    } else {
        account->newest = compiled->older;
    }

    if (compiled->older) {
        compiled->older->newer = compiled->newer;

    } else {
        account->oldest = compiled->newer;
    }
}


void
sluice_core_kept_drop(sluice_core_regexes_t *regexes,
    sluice_core_compiled_t *compiled)
{
    sluice_core_compiled_t  **link;

    link = &regexes->buckets[compiled->hash % SLUICE_CORE_BUCKETS];

    while (*link != compiled) {
        link = &(*link)->next;
    }

    *link = compiled->next;

    core_unlink(regexes, compiled);
    regexes->count--;
    regexes->size -= compiled->size;
    regexes->accounts[compiled->account].size -= compiled->size;

    pcre2_code_free(compiled->careful);
    pcre2_code_free(compiled->fast);
    free(compiled);
}
