
/*
 * What routes of an image have is compiled before somebody asks for it, so
 * that the first requests of a worker do not wait for that.
 */


#include "pattern.h"
#include "search.h"


#define CORE_WARM_SLOTS  256       /* of a turn */


typedef struct {
    sluice_core_regexes_t  *regexes;
    sluice_core_budget_t    budget;
} core_warm_t;


static int core_warm_route(core_warm_t *w, const sluice_core_found_t *route);
static int core_warm_headers(core_warm_t *w, const sluice_core_space_t *space,
    uint32_t ref);
static int core_warm_one(core_warm_t *w, const char *data, uint32_t length,
    int is_path);


int
sluice_core_warm(const sluice_core_view_t *view,
    sluice_core_regexes_t *regexes, uint32_t *slot)
{
    int                  rc;
    uint64_t             last, end;
    core_warm_t          w;
    sluice_core_found_t  route;

    end = sluice_core_header(&view->base)->slots[SLUICE_CORE_ROUTE].count;
    last = (uint64_t) *slot + CORE_WARM_SLOTS;
    last = last < end ? last : end;

    w.regexes = regexes;
    sluice_core_budget_begin(&w.budget);
    sluice_core_budget_read(&w.budget);
    sluice_core_regexes_begin(regexes);

    for ( /* void */ ; *slot < last; (*slot)++) {
        route = sluice_core_by_slot(view, SLUICE_CORE_ROUTE, *slot);

        if (route.record == NULL) {
            continue;
        }

        rc = core_warm_route(&w, &route);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return last == end ? SLUICE_CORE_OK : SLUICE_CORE_AGAIN;
}


static int
core_warm_route(core_warm_t *w, const sluice_core_found_t *route)
{
    int                 rc;
    uint32_t            i, count;
    sluice_core_text_t  path;

    count = sluice_core_list(route, SLUICE_CORE_ROUTE_PATHS);

    for (i = 0; i < count; i++) {
        path = sluice_core_list_item(route, SLUICE_CORE_ROUTE_PATHS, i);

        if (path.length == 0 || path.data[0] != '~') {
            continue;
        }

        rc = core_warm_one(w, path.data + 1, path.length - 1, 1);

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return core_warm_headers(w, &route->space,
                             route->record->fields[SLUICE_CORE_ROUTE_HEADERS]);
}


static int
core_warm_headers(core_warm_t *w, const sluice_core_space_t *space,
    uint32_t ref)
{
    int                              rc;
    uint32_t                         i, j;
    const sluice_core_list_t        *list;
    const sluice_core_regex_t       *regex;
    const sluice_core_chars_t       *chars;
    const sluice_core_conditions_t  *conditions;

    if (ref == 0) {
        return SLUICE_CORE_OK;
    }

    conditions = sluice_core_at(space, ref);

    for (i = 0; i < conditions->count; i++) {
        list = sluice_core_refs(space, conditions->conditions[i].patterns);

        for (j = 0; j < list->count; j++) {
            regex = sluice_core_at(space, list->items[j]);
            chars = sluice_core_chars(space, regex->text);

            rc = core_warm_one(w, chars->data + regex->skip,
                               chars->length - regex->skip, 0);

            if (rc != SLUICE_CORE_OK) {
                return rc;
            }
        }
    }

    return SLUICE_CORE_OK;
}


static int
core_warm_one(core_warm_t *w, const char *data, uint32_t length, int is_path)
{
    sluice_core_run_t  run;

    memset(&run, 0, sizeof(run));
    run.pattern.data = data;
    run.pattern.length = length;
    run.is_path = is_path;

    return sluice_core_regexes_warm(w->regexes, &w->budget, &run);
}
