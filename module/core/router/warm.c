
/*
 * What routes and plugins of an image have is compiled before somebody asks
 * for it, so that the first requests of a worker do not wait for that.
 */


#include "pattern.h"
#include "search.h"


/*
 * Of a turn: what is compiled already takes some time, too.  Of a plugin's,
 * CPU time; for a request, or beforehand.
 */

#define CORE_WARM_SLOTS     256
#define CORE_WARM_ASKED_NS  250000
#define CORE_WARM_NS        125000

/* To look for a pattern, which takes 0.1 us. */
#define CORE_WARM_UNITS     4


typedef struct {
    sluice_core_regexes_t  *regexes;
    sluice_core_budget_t    budget;
    int                     is_asked;   /* for a request */
} core_warm_t;


static void core_warm_begin(core_warm_t *w, sluice_core_regexes_t *regexes,
    int is_asked);
static int core_warm_route(core_warm_t *w, const sluice_core_found_t *route);
static int core_warm_headers(core_warm_t *w, const sluice_core_space_t *space,
    uint32_t ref);
static int core_warm_plugin(core_warm_t *w, const sluice_core_found_t *plugin,
    uint32_t *item);
static int core_warm_one(core_warm_t *w, const char *data, uint32_t length,
    int is_path);


int
sluice_core_warm(const sluice_core_view_t *view,
    sluice_core_regexes_t *regexes, sluice_core_warm_t *at)
{
    int                          rc;
    uint64_t                     last, end, routes;
    core_warm_t                  w;
    sluice_core_found_t          found;
    const sluice_core_image_t   *head;

    head = sluice_core_header(&view->base);
    routes = head->slots[SLUICE_CORE_ROUTE].count;
    end = routes + head->slots[SLUICE_CORE_PLUGIN].count;
    last = (uint64_t) at->slot + CORE_WARM_SLOTS;
    last = last < end ? last : end;

    core_warm_begin(&w, regexes, 0);

    for ( /* void */ ; at->slot < last; at->slot++, at->item = 0) {

        if (at->slot < routes) {
            found = sluice_core_by_slot(view, SLUICE_CORE_ROUTE, at->slot);
            rc = found.record ? core_warm_route(&w, &found) : SLUICE_CORE_OK;

        } else {
            found = sluice_core_by_slot(view, SLUICE_CORE_PLUGIN,
                                        at->slot - (uint32_t) routes);
            rc = found.record ? core_warm_plugin(&w, &found, &at->item)
                              : SLUICE_CORE_OK;
        }

        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    return last == end ? SLUICE_CORE_OK : SLUICE_CORE_AGAIN;
}


int
sluice_core_prepare(const sluice_core_found_t *plugin,
    sluice_core_regexes_t *regexes, uint32_t *item)
{
    core_warm_t  w;

    if (regexes == NULL) {
        return SLUICE_CORE_OK;
    }

    core_warm_begin(&w, regexes, 1);

    return core_warm_plugin(&w, plugin, item);
}


static void
core_warm_begin(core_warm_t *w, sluice_core_regexes_t *regexes, int is_asked)
{
    w->regexes = regexes;
    w->is_asked = is_asked;

    sluice_core_budget_begin(&w->budget);
    sluice_core_budget_read(&w->budget);
    sluice_core_regexes_begin(regexes);
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
core_warm_plugin(core_warm_t *w, const sluice_core_found_t *plugin,
    uint32_t *item)
{
    int                 rc;
    uint32_t            count;
    uint64_t            limit;
    sluice_core_text_t  text;

    count = sluice_core_list(plugin, SLUICE_CORE_PLUGIN_PATTERNS);
    limit = w->is_asked ? CORE_WARM_ASKED_NS : CORE_WARM_NS;

    for ( /* void */ ; *item < count; (*item)++) {
        text = sluice_core_list_item(plugin, SLUICE_CORE_PLUGIN_PATTERNS,
                                     *item);

        if (text.length == 0) {
            continue;
        }

        if (sluice_core_budget_is_over(&w->budget, limit)) {
            return SLUICE_CORE_AGAIN;
        }

        (void) sluice_core_budget_take(&w->budget, CORE_WARM_UNITS
                                       + text.length / SLUICE_CORE_UNIT_BYTES);

        rc = core_warm_one(w, text.data + 1, text.length - 1,
                           text.data[0] == '~');

        if (rc != SLUICE_CORE_OK) {
            return rc;
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

    return sluice_core_regexes_warm(w->regexes, &w->budget, &run, w->is_asked);
}
