
/*
 * Scopes of plugins' configurations (scope.h).
 */


#include "flags.h"
#include "scope.h"

#include <string.h>


/* While steps are chosen there is one of each plugin, by its number. */

typedef struct {
    const sluice_scope_t   *scope;
    sluice_scope_step_t    *steps;
    sluice_scope_chosen_t  *chosen;
    sluice_scope_look_pt    look;
    void                   *data;
} scope_choice_t;


static int scope_gather(scope_choice_t *choice, int kind, uint32_t slot);
static int scope_compare(scope_choice_t *choice,
    const sluice_core_found_t *found);
static uint32_t scope_number(const sluice_scope_t *scope,
    const sluice_core_text_t *name);
static uint32_t scope_rank(const sluice_scope_t *scope,
    const sluice_core_found_t *found);
static void scope_put_owned(const sluice_scope_t *scope, int kind,
    uint32_t slot, sluice_scope_step_t *steps, uint32_t count);
static void scope_put(const sluice_scope_t *scope,
    const sluice_core_found_t *found, sluice_scope_step_t *steps,
    uint32_t count);
static int scope_precedes(const sluice_core_view_t *view,
    const sluice_core_found_t *found, const sluice_core_found_t *other);
static sluice_core_text_t scope_group_name(const sluice_core_view_t *view,
    const sluice_core_found_t *found);


int
sluice_scope_choose(const sluice_scope_t *scope, sluice_scope_step_t *steps,
    sluice_scope_chosen_t *chosen, sluice_scope_look_pt look, void *data)
{
    int              rc;
    uint32_t         i;
    scope_choice_t   choice = { scope, steps, chosen, look, data };

    memset(chosen, 0, sizeof(sluice_scope_chosen_t));

    for (i = 0; i < scope->count; i++) {
        memset(&steps[i], 0, sizeof(sluice_scope_step_t));
        steps[i].plugin = SLUICE_CORE_NOBODY;
    }

    rc = scope_gather(&choice, SLUICE_CORE_KINDS, 0);

    if (rc == 0 && scope->service != SLUICE_CORE_NOBODY) {
        rc = scope_gather(&choice, SLUICE_CORE_SERVICE, scope->service);
    }

    if (rc == 0 && scope->route != SLUICE_CORE_NOBODY) {
        rc = scope_gather(&choice, SLUICE_CORE_ROUTE, scope->route);
    }

    for (i = 0; i < scope->count; i++) {

        if (steps[i].plugin != SLUICE_CORE_NOBODY) {
            steps[chosen->count++] = steps[i];
        }
    }

    return rc;
}


/* Looks at what an owner has; kind KINDS, slot 0: what has none. */

static int
scope_gather(scope_choice_t *choice, int kind, uint32_t slot)
{
    int                         rc;
    uint32_t                    i, n;
    const uint32_t             *slots;
    sluice_core_found_t         found;
    const sluice_core_view_t   *view;

    view = choice->scope->view;
    n = sluice_core_children(view, SLUICE_CORE_PLUGIN, kind, slot, &slots);

    for (i = 0, rc = 0; rc == 0 && i < n; i++) {
        found = sluice_core_by_slot(view, SLUICE_CORE_PLUGIN, slots[i]);

        if (found.record) {
            rc = scope_compare(choice, &found);
        }
    }

    return rc;
}


static int
scope_compare(scope_choice_t *choice, const sluice_core_found_t *found)
{
    int                   rc;
    uint32_t              number, owners, rank;
    sluice_core_text_t    name;
    sluice_scope_step_t  *step;

    name = sluice_core_text(found, SLUICE_CORE_PLUGIN_NAME);
    number = scope_number(choice->scope, &name);

    if (number == SLUICE_CORE_NOBODY) {
        choice->chosen->missing = name;
        return 0;
    }

    step = &choice->steps[number];
    owners = sluice_core_number(found, SLUICE_CORE_PLUGIN_FLAGS)
             & SLUICE_PLUGIN_OF;

    if (owners) {
        step->plugin = number;
        step->owners |= owners;
        choice->chosen->owners |= owners;
        return 0;
    }

    rc = choice->look ? choice->look(choice->data, number, found) : 0;
    rank = scope_rank(choice->scope, found);

    if (rank > step->rank) {
        step->found = *found;
        step->plugin = number;
        step->rank = rank;
    }

    return rc;
}


static uint32_t
scope_number(const sluice_scope_t *scope, const sluice_core_text_t *name)
{
    uint32_t                   i;
    const sluice_core_text_t  *plugin;

    for (i = 0; i < scope->count; i++) {
        plugin = &scope->plugins[i];

        if (plugin->length == name->length
            && memcmp(plugin->data, name->data, name->length) == 0)
        {
            return i;
        }
    }

    return SLUICE_CORE_NOBODY;
}


/* 0: it is of another route or service. */

static uint32_t
scope_rank(const sluice_scope_t *scope, const sluice_core_found_t *found)
{
    uint32_t  owner, route, service;

    /* by its owner, whether it has a route, whether it has a service */

    static const uint8_t  ranks[3][2][2] = {
        { { 1, 2 }, { 3, 6 } },
        { { 4, 7 }, { 8, 11 } },         /* a group's */
        { { 5, 9 }, { 10, 12 } }         /* a consumer's */
    };

    route = sluice_core_number(found, SLUICE_CORE_PLUGIN_ROUTE);
    service = sluice_core_number(found, SLUICE_CORE_PLUGIN_SERVICE);

    if ((route != SLUICE_CORE_NOBODY && route != scope->route)
        || (service != SLUICE_CORE_NOBODY && service != scope->service))
    {
        return 0;
    }

    owner = 0;

    if (sluice_core_number(found, SLUICE_CORE_PLUGIN_CONSUMER)
        != SLUICE_CORE_NOBODY)
    {
        owner = 2;

    } else if (sluice_core_number(found, SLUICE_CORE_PLUGIN_GROUP)
               != SLUICE_CORE_NOBODY)
    {
        owner = 1;
    }

    return ranks[owner][route != SLUICE_CORE_NOBODY]
                [service != SLUICE_CORE_NOBODY];
}


uint32_t
sluice_scope_consumer(const sluice_scope_t *scope, uint32_t consumer,
    uint32_t owners, sluice_scope_step_t *steps, uint32_t count)
{
    uint32_t              i, n, group, won;
    const uint32_t       *slots;
    sluice_core_found_t   found;

    for (i = 0; i < count; i++) {
        memset(&steps[i].found, 0, sizeof(sluice_core_found_t));
    }

    if (owners & SLUICE_PLUGIN_OF_CONSUMERS) {
        scope_put_owned(scope, SLUICE_CORE_CONSUMER, consumer, steps, count);
    }

    n = 0;

    if (owners & SLUICE_PLUGIN_OF_GROUPS) {
        n = sluice_core_children(scope->view, SLUICE_CORE_MEMBERSHIP,
                                 SLUICE_CORE_CONSUMER, consumer, &slots);
    }

    for (i = 0; i < n; i++) {
        found = sluice_core_by_slot(scope->view, SLUICE_CORE_MEMBERSHIP,
                                    slots[i]);

        if (found.record) {
            group = sluice_core_number(&found, SLUICE_CORE_MEMBERSHIP_GROUP);
            scope_put_owned(scope, SLUICE_CORE_GROUP, group, steps, count);
        }
    }

    for (i = 0, won = 0; i < count; i++) {
        won += steps[i].found.record != NULL;
    }

    return won;
}


/* Puts in what a consumer or a group has. */

static void
scope_put_owned(const sluice_scope_t *scope, int kind, uint32_t slot,
    sluice_scope_step_t *steps, uint32_t count)
{
    uint32_t              i, n;
    const uint32_t       *slots;
    sluice_core_found_t   found;

    n = sluice_core_children(scope->view, SLUICE_CORE_PLUGIN, kind, slot,
                             &slots);

    for (i = 0; i < n; i++) {
        found = sluice_core_by_slot(scope->view, SLUICE_CORE_PLUGIN, slots[i]);

        if (found.record) {
            scope_put(scope, &found, steps, count);
        }
    }
}


static void
scope_put(const sluice_scope_t *scope, const sluice_core_found_t *found,
    sluice_scope_step_t *steps, uint32_t count)
{
    uint32_t             i, rank, number;
    sluice_core_text_t   name;

    rank = scope_rank(scope, found);

    if (rank == 0) {
        return;
    }

    name = sluice_core_text(found, SLUICE_CORE_PLUGIN_NAME);
    number = scope_number(scope, &name);

    for (i = 0; i < count; i++) {

        if (steps[i].plugin == number) {
            break;
        }
    }

    if (i == count || rank < steps[i].rank) {
        return;
    }

    if (rank == steps[i].rank
        && steps[i].found.record
        && !scope_precedes(scope->view, found, &steps[i].found))
    {
        return;
    }

    steps[i].found = *found;
    steps[i].rank = rank;
}


/* Only groups' have one rank: whether this group's name is the first. */

static int
scope_precedes(const sluice_core_view_t *view,
    const sluice_core_found_t *found, const sluice_core_found_t *other)
{
    int                 order;
    size_t              least;
    sluice_core_text_t  name, other_name;

    name = scope_group_name(view, found);
    other_name = scope_group_name(view, other);
    least = name.length < other_name.length ? name.length : other_name.length;

    order = least ? memcmp(name.data, other_name.data, least) : 0;

    return order < 0 || (order == 0 && name.length < other_name.length);
}


static sluice_core_text_t
scope_group_name(const sluice_core_view_t *view,
    const sluice_core_found_t *found)
{
    sluice_core_text_t   none = { NULL, 0 };
    sluice_core_found_t  group;

    group = sluice_core_by_slot(view, SLUICE_CORE_GROUP,
                       sluice_core_number(found, SLUICE_CORE_PLUGIN_GROUP));

    return group.record ? sluice_core_text(&group, SLUICE_CORE_GROUP_NAME)
                        : none;
}
