
/*
 * Long on purpose: what is made at random, and the model that it is told by.
 *
 * Which configurations of plugins a request runs, beside a model that tries
 * the twelve scopes one after another and looks at all configurations each
 * time.  Under ASan and UBSan, in memory that ends where the image does.
 */


#include "flags.h"
#include "make.h"
#include "scope.h"

#include <stdlib.h>


#define SCOPE_PLUGINS   5          /* that the caller has; one more has none */
#define SCOPE_BINDINGS  12         /* the slots behind are placeholders' */
#define SCOPE_OWNERS    4          /* of a kind */
#define SCOPE_ENTITIES  (SLUICE_CORE_KINDS * MAKE_SLOTS)


typedef struct {
    uint32_t   route;
    uint32_t   service;
    uint32_t   consumer;           /* NOBODY: not known */
} scope_request_t;


/* From the most specific on, by the fields that a configuration has. */

static const struct {
    int  consumer, group, route, service;
} scopes[] = {
    { 1, 0, 1, 1 }, { 0, 1, 1, 1 }, { 1, 0, 1, 0 }, { 1, 0, 0, 1 },
    { 0, 1, 1, 0 }, { 0, 1, 0, 1 }, { 0, 0, 1, 1 }, { 1, 0, 0, 0 },
    { 0, 1, 0, 0 }, { 0, 0, 1, 0 }, { 0, 0, 0, 1 }, { 0, 0, 0, 0 }
};

static const char *const  all[] = { "acl", "b", "acl2", "key-auth", "", "zz" };

static uint64_t              state;
static make_t                make;
static sluice_core_text_t    plugins[SCOPE_PLUGINS + 1];
static sluice_core_entity_t  list[SCOPE_ENTITIES];


static uint32_t
number_of(const sluice_core_entity_t *entity, int field)
{
    return entity->fields[field].number;
}


static int
is_named(const sluice_core_entity_t *entity, uint32_t plugin)
{
    const sluice_core_value_t  *name;

    name = &entity->fields[SLUICE_CORE_PLUGIN_NAME];

    return !entity->gone && name->count == plugins[plugin].length
           && memcmp(name->data, plugins[plugin].data, name->count) == 0;
}


static int
is_twin(const sluice_core_entity_t *a, const sluice_core_entity_t *b)
{
    uint32_t  i;
    const int fields[] = {
        SLUICE_CORE_PLUGIN_CONSUMER, SLUICE_CORE_PLUGIN_GROUP,
        SLUICE_CORE_PLUGIN_ROUTE, SLUICE_CORE_PLUGIN_SERVICE
    };

    for (i = 0; i < 4; i++) {

        if (number_of(a, fields[i]) != number_of(b, fields[i])) {
            return 0;
        }
    }

    return a->fields[SLUICE_CORE_PLUGIN_NAME].data
           == b->fields[SLUICE_CORE_PLUGIN_NAME].data;
}


/* One configuration at most of each plugin and scope, as the schema has it. */

static void
make_bindings(void)
{
    uint32_t               i, j;
    sluice_core_text_t    *name;
    sluice_core_entity_t  *entity, *bindings;

    bindings = make.entities[SLUICE_CORE_PLUGIN];

    for (i = 0; i < SCOPE_BINDINGS; i++) {
        make_entity(&make, SLUICE_CORE_PLUGIN, i, 1);
        entity = &bindings[i];
        name = &plugins[test_below(&state, SCOPE_PLUGINS
                                           + (test_below(&state, 40) == 0))];

        entity->fields[SLUICE_CORE_PLUGIN_NAME].data = name->data;
        entity->fields[SLUICE_CORE_PLUGIN_NAME].count = name->length;
        entity->fields[SLUICE_CORE_PLUGIN_FLAGS].number =
            (uint32_t) test_below(&state, 3) * SLUICE_PLUGIN_LUA;

        if (number_of(entity, SLUICE_CORE_PLUGIN_CONSUMER)
            != SLUICE_CORE_NOBODY)
        {
            entity->fields[SLUICE_CORE_PLUGIN_GROUP].number =
                                                        SLUICE_CORE_NOBODY;
        }

        for (j = 0; j < i; j++) {
            entity->gone |= !bindings[j].gone && is_twin(entity, &bindings[j]);
        }
    }
}


/* Says of each plugin whether consumers have some of it, and groups. */

static void
make_placeholders(void)
{
    int                    field;
    uint32_t               i, plugin, at, flag;
    sluice_core_entity_t  *bindings, *entity;

    bindings = make.entities[SLUICE_CORE_PLUGIN];
    at = SCOPE_BINDINGS;

    for (i = at; i < MAKE_SLOTS; i++) {
        bindings[i].gone = 1;
    }

    for (plugin = 0; plugin <= SCOPE_PLUGINS; plugin++) {

        for (flag = 1; flag <= 2; flag++) {
            field = flag == SLUICE_PLUGIN_OF_CONSUMERS
                    ? SLUICE_CORE_PLUGIN_CONSUMER : SLUICE_CORE_PLUGIN_GROUP;

            for (i = 0; i < SCOPE_BINDINGS; i++) {

                if (is_named(&bindings[i], plugin)
                    && number_of(&bindings[i], field) != SLUICE_CORE_NOBODY)
                {
                    break;
                }
            }

            if (i == SCOPE_BINDINGS) {
                continue;
            }

            make_entity(&make, SLUICE_CORE_PLUGIN, at, 1);
            entity = &bindings[at++];

            for (i = 0; i < SLUICE_CORE_PLUGIN_NAME; i++) {
                entity->fields[i].number = SLUICE_CORE_NOBODY;
            }

            entity->fields[SLUICE_CORE_PLUGIN_NAME].data =
                                                    plugins[plugin].data;
            entity->fields[SLUICE_CORE_PLUGIN_NAME].count =
                                                    plugins[plugin].length;
            entity->fields[SLUICE_CORE_PLUGIN_FLAGS].number =
                flag | (test_below(&state, 2) ? SLUICE_PLUGIN_OF_LUA : 0);
        }
    }
}


static void
make_all(void)
{
    uint32_t  slot;

    for (slot = 0; slot < SCOPE_OWNERS; slot++) {
        make_entity(&make, SLUICE_CORE_ROUTE, slot, 1);
        make_entity(&make, SLUICE_CORE_SERVICE, slot, 1);
        make_entity(&make, SLUICE_CORE_CONSUMER, slot, 1);
        make_entity(&make, SLUICE_CORE_GROUP, slot, 1);

        if (test_below(&state, 8) == 0) {
            make.entities[SLUICE_CORE_GROUP][slot].gone = 1;
        }
    }

    for (slot = 0; slot < 6; slot++) {
        make_entity(&make, SLUICE_CORE_MEMBERSHIP, slot, 1);
    }

    make_bindings();
    make_placeholders();
}


static int
is_member(uint32_t consumer, uint32_t group)
{
    uint32_t                     i;
    const sluice_core_entity_t  *entity;

    for (i = 0; i < MAKE_SLOTS; i++) {
        entity = &make.entities[SLUICE_CORE_MEMBERSHIP][i];

        if (!entity->gone
            && number_of(entity, SLUICE_CORE_MEMBERSHIP_CONSUMER) == consumer
            && number_of(entity, SLUICE_CORE_MEMBERSHIP_GROUP) == group)
        {
            return 1;
        }
    }

    return 0;
}


/* Whether a configuration is of this scope, and the request is in it. */

static int
is_of(const sluice_core_entity_t *entity, size_t scope,
    const scope_request_t *request)
{
    uint32_t  consumer, group, route, service;

    consumer = number_of(entity, SLUICE_CORE_PLUGIN_CONSUMER);
    group = number_of(entity, SLUICE_CORE_PLUGIN_GROUP);
    route = number_of(entity, SLUICE_CORE_PLUGIN_ROUTE);
    service = number_of(entity, SLUICE_CORE_PLUGIN_SERVICE);

    return (consumer != SLUICE_CORE_NOBODY) == scopes[scope].consumer
           && (group != SLUICE_CORE_NOBODY) == scopes[scope].group
           && (route != SLUICE_CORE_NOBODY) == scopes[scope].route
           && (service != SLUICE_CORE_NOBODY) == scopes[scope].service
           && (!scopes[scope].route || route == request->route)
           && (!scopes[scope].service || service == request->service)
           && (!scopes[scope].consumer || consumer == request->consumer)
           && (!scopes[scope].group
               || (request->consumer != SLUICE_CORE_NOBODY
                   && is_member(request->consumer, group)));
}


/* A group that is gone has no name, which comes before all. */

static int
group_order(const sluice_core_entity_t *a, const sluice_core_entity_t *b)
{
    char                          texts[2][64];
    uint32_t                      i, slot;
    const sluice_core_entity_t   *group, *both[2] = { a, b };

    memset(texts, 0, sizeof(texts));

    for (i = 0; i < 2; i++) {
        slot = number_of(both[i], SLUICE_CORE_PLUGIN_GROUP);
        group = &make.entities[SLUICE_CORE_GROUP][slot];

        if (!group->gone) {
            memcpy(texts[i], group->fields[0].data, group->fields[0].count);
        }
    }

    return strcmp(texts[0], texts[1]);
}


/* The slot of the configuration that a request runs, or NOBODY. */

static uint32_t
model(uint32_t plugin, const scope_request_t *request)
{
    size_t                       scope;
    uint32_t                     i;
    const sluice_core_entity_t  *entity, *best;

    for (scope = 0; scope < sizeof(scopes) / sizeof(scopes[0]); scope++) {
        best = NULL;

        for (i = 0; i < SCOPE_BINDINGS; i++) {
            entity = &make.entities[SLUICE_CORE_PLUGIN][i];

            if (is_named(entity, plugin) && is_of(entity, scope, request)
                && (best == NULL || group_order(entity, best) < 0))
            {
                best = entity;
            }

            if (!scopes[scope].group && best) {
                break;
            }
        }

        if (best) {
            return best->slot;
        }
    }

    return SLUICE_CORE_NOBODY;
}


/*
 * Whether either of two configurations may run: of groups that are gone, and
 * so have no names that differ; no store makes an image with two of these.
 */

static int
is_tie(uint32_t slot, uint32_t want, uint32_t plugin,
    const scope_request_t *request)
{
    size_t                       scope;
    const sluice_core_entity_t  *a, *b;

    if (slot == SLUICE_CORE_NOBODY || want == SLUICE_CORE_NOBODY) {
        return 0;
    }

    a = &make.entities[SLUICE_CORE_PLUGIN][slot];
    b = &make.entities[SLUICE_CORE_PLUGIN][want];

    for (scope = 0; scope < sizeof(scopes) / sizeof(scopes[0]); scope++) {

        if (scopes[scope].group && is_of(b, scope, request)) {
            return is_named(a, plugin) && is_of(a, scope, request)
                   && group_order(a, b) == 0;
        }
    }

    return 0;
}


/* Whether a request's chain is made of it before its consumer is known. */

static int
is_looked_at(const sluice_core_entity_t *entity,
    const scope_request_t *request)
{
    uint32_t  route, service;

    route = number_of(entity, SLUICE_CORE_PLUGIN_ROUTE);
    service = number_of(entity, SLUICE_CORE_PLUGIN_SERVICE);

    if (number_of(entity, SLUICE_CORE_PLUGIN_CONSUMER) != SLUICE_CORE_NOBODY
        || number_of(entity, SLUICE_CORE_PLUGIN_GROUP) != SLUICE_CORE_NOBODY)
    {
        return 0;
    }

    if (route != SLUICE_CORE_NOBODY) {
        return route == request->route;
    }

    return service == SLUICE_CORE_NOBODY || service == request->service;
}


static void
check_rest(const sluice_scope_chosen_t *chosen, uint32_t looks,
    const scope_request_t *request)
{
    int                          missing;
    uint32_t                     i;
    const sluice_core_entity_t  *entity;

    for (i = 0, missing = 0; i < MAKE_SLOTS; i++) {
        entity = &make.entities[SLUICE_CORE_PLUGIN][i];

        if (entity->gone || !is_looked_at(entity, request)) {
            continue;
        }

        if (is_named(entity, SCOPE_PLUGINS)) {
            missing = 1;

        } else if ((number_of(entity, SLUICE_CORE_PLUGIN_FLAGS)
                    & SLUICE_PLUGIN_OF)
                   == 0)
        {
            test_check(looks > 0, "slot %u was not looked at", i);
            looks--;
        }
    }

    test_check(looks == 0, "%u looks too many", looks);
    test_check((chosen->missing.data != NULL) == missing, "missing");
}


/* What stands for others' configurations of a plugin. */

static uint32_t
owners_of(uint32_t plugin)
{
    uint32_t                     i, owners;
    const sluice_core_entity_t  *entity;

    for (i = SCOPE_BINDINGS, owners = 0; i < MAKE_SLOTS; i++) {
        entity = &make.entities[SLUICE_CORE_PLUGIN][i];

        if (!entity->gone && is_named(entity, plugin)) {
            owners |= number_of(entity, SLUICE_CORE_PLUGIN_FLAGS);
        }
    }

    return owners;
}


static int
count_looks(void *data, uint32_t plugin, const sluice_core_found_t *found)
{
    uint32_t            *left = data;
    sluice_core_text_t   name;

    name = sluice_core_text(found, SLUICE_CORE_PLUGIN_NAME);
    test_check(plugin < SCOPE_PLUGINS
               && name.length == plugins[plugin].length, "another's");

    return --*left == 0 ? 7 : 0;
}


static uint32_t
slot_of(const sluice_scope_step_t *step)
{
    sluice_core_entity_t  head;

    if (step->found.record == NULL) {
        return SLUICE_CORE_NOBODY;
    }

    sluice_core_head(&step->found, &head);

    return head.slot;
}


/* As the gateway does: owners without plugins have no chain of their own. */

static void
limit_scope(const sluice_core_view_t *view, sluice_scope_t *scope)
{
    const uint32_t  *slots;

    if (sluice_core_children(view, SLUICE_CORE_PLUGIN, SLUICE_CORE_ROUTE,
                             scope->route, &slots))
    {
        return;
    }

    scope->route = SLUICE_CORE_NOBODY;

    if (sluice_core_children(view, SLUICE_CORE_PLUGIN, SLUICE_CORE_SERVICE,
                             scope->service, &slots)
        == 0)
    {
        scope->service = SLUICE_CORE_NOBODY;
    }
}


/* Each plugin's configuration, and that the steps keep the plugins' order. */

static void
check_steps(const sluice_scope_step_t *steps, uint32_t count,
    const uint32_t *before, const scope_request_t *request)
{
    uint32_t  plugin, i, slot, want;

    for (plugin = 0, i = 0; plugin < SCOPE_PLUGINS; plugin++) {
        want = model(plugin, request);
        slot = SLUICE_CORE_NOBODY;

        if (i < count && steps[i].plugin == plugin) {
            slot = slot_of(&steps[i]);

            if (slot == SLUICE_CORE_NOBODY && before) {
                slot = before[i];
            }

            i++;
        }

        test_check(slot == want || is_tie(slot, want, plugin, request),
                   "plugin %u: slot %d, not %d", plugin, (int) slot,
                   (int) want);
    }

    test_check(i == count, "%u of %u steps in order", i, count);
}


static uint32_t
check_request(const sluice_core_view_t *view)
{
    uint32_t               i, won, left, before[SCOPE_PLUGINS];
    sluice_scope_t         scope;
    scope_request_t        request;
    sluice_scope_step_t   *steps;
    sluice_scope_chosen_t  chosen;

    steps = make_memory(SCOPE_PLUGINS * sizeof(sluice_scope_step_t));

    request.route = (uint32_t) test_below(&state, SCOPE_OWNERS);
    request.service = (uint32_t) test_below(&state, SCOPE_OWNERS + 1);
    request.consumer = SLUICE_CORE_NOBODY;

    if (request.service == SCOPE_OWNERS) {
        request.service = SLUICE_CORE_NOBODY;
    }

    scope.view = view;
    scope.plugins = plugins;
    scope.count = SCOPE_PLUGINS;
    scope.route = request.route;
    scope.service = request.service;

    limit_scope(view, &scope);

    left = 1 + (uint32_t) test_below(&state, 4);
    if (sluice_scope_choose(&scope, steps, &chosen, count_looks, &left)) {
        test_check(left == 0, "it was not stopped");
    }

    left = 1000;
    test_check(sluice_scope_choose(&scope, steps, &chosen, count_looks, &left)
               == 0, "it was stopped");
    check_rest(&chosen, 1000 - left, &request);
    check_steps(steps, chosen.count, NULL, &request);

    for (i = 0; i < chosen.count; i++) {
        before[i] = slot_of(&steps[i]);
        test_check(steps[i].owners == owners_of(steps[i].plugin),
                   "step %u has other owners", i);
    }

    request.consumer = (uint32_t) test_below(&state, SCOPE_OWNERS);
    scope.route = request.route;
    scope.service = request.service;

    won = sluice_scope_consumer(&scope, request.consumer, chosen.owners, steps,
                                chosen.count);
    check_steps(steps, chosen.count, before, &request);

    free(steps);

    return won;
}


int
main(void)
{
    uint8_t             *image;
    uint32_t             i;
    uint64_t             n, ops, size, won;
    sluice_core_view_t   view;

    state = test_seed("scope");
    ops = test_env("OPS", 3000);

    for (i = 0; i <= SCOPE_PLUGINS; i++) {
        plugins[i].data = all[i];
        plugins[i].length = (uint32_t) strlen(all[i]);
    }

    for (n = 0, won = 0; n < ops; n++) {
        make_start(&make, &state);
        make_all();

        image = make_image(list, make_list(&make, list), 1, &size);

        memset(&view, 0, sizeof(view));
        view.base.base = image;
        view.base.size = size;
        view.revision = 1;

        for (i = 0; i < 20; i++) {
            won += check_request(&view);
        }

        free(image);
        make_end(&make);
    }

    printf("scope: %lu configurations of consumers in %lu images\n", won, ops);
    test_check(won > ops, "consumers without configurations");

    return 0;
}
