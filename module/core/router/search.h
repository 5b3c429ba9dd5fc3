
/*
 * A look-up on its way: match.c finds candidates, condition.c judges them.
 */


#ifndef SLUICE_CORE_SEARCH_H_INCLUDED
#define SLUICE_CORE_SEARCH_H_INCLUDED


#include "budget.h"
#include "hash.h"
#include "layout.h"


#define SLUICE_CORE_BATCH  16


/* A key that the request asks for. */

typedef struct {
    uint64_t                    hash;
    uint64_t                    best;      /* score of its best */
    const sluice_core_entry_t  *entry;     /* the first that was found */
    sluice_core_walk_t          walk;
} sluice_core_asked_t;


typedef struct {
    const sluice_core_view_t     *view;
    const sluice_core_request_t  *request;
    sluice_core_regexes_t        *regexes;

    const sluice_core_entry_t    *best;    /* NULL: none yet */
    const sluice_core_space_t    *space;   /* of best */
    uint32_t                      end;     /* of what its pattern matched */
    int                           gave_up; /* a pattern of best, and why */
    int                           reason;
    int                           is_over; /* no time is left: refuse */
    sluice_core_budget_t          budget;

    const sluice_core_chars_t    *name;    /* of the last header asked for */

    uint32_t                      method;  /* its bit, 0: it has none */
    uint32_t                      keys_count;
    sluice_core_asked_t                    keys[SLUICE_CORE_BATCH];
    sluice_core_heads_t           heads;
} sluice_core_search_t;


/*
 * Before so many units of work: whether there is no time left, so that the
 * look-up ends here, with a refusal.
 */

static inline int
sluice_core_search_ends(sluice_core_search_t *s, uint32_t units)
{
    if (sluice_core_budget_take(&s->budget, units)) {
        s->is_over = 1;
    }

    return s->is_over;
}


/* condition.c */

int sluice_core_try(sluice_core_search_t *s,
    const sluice_core_space_t *space, const sluice_core_entry_t *entry);


/* regexes.c */

/* Another match begins. */
void sluice_core_regexes_begin(sluice_core_regexes_t *regexes);


/* regex.c */

int sluice_core_regex_match(sluice_core_regexes_t *regexes,
    sluice_core_budget_t *budget, const sluice_core_space_t *space,
    uint32_t ref, const sluice_core_text_t *subject, uint32_t *end,
    int *reason);


#endif /* SLUICE_CORE_SEARCH_H_INCLUDED */
