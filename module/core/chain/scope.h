
/*
 * Which configurations of plugins a request runs, and in which order.
 *
 *
 * SYNOPSIS
 *
 *     when a route or a service is first asked for:
 *         rc = sluice_scope_choose(&scope, steps, &chosen, look, data);
 *     when a request's consumer is known:
 *         n = sluice_scope_consumer(&scope, consumer, chosen.owners, steps,
 *                                   chosen.count);
 *
 *
 * Of the configurations of one plugin a request runs that of the most specific
 * scope that it is in, as in Kong.  From the most specific on:
 *
 *     12  consumer, route and service     6  route and service
 *     11  group, route and service        5  consumer
 *     10  consumer and route              4  group
 *      9  consumer and service            3  route
 *      8  group and route                 2  service
 *      7  group and service               1  all requests
 *
 * Of several groups of one rank that of the first name wins, in the order of
 * bytes.  A consumer, and so his groups, is known only after authentication,
 * which plugins do: a chain is chosen without him first.
 *
 * Steps run in the order of the plugins that the caller has, whatever their
 * configurations.
 *
 * Costs a look-up for each configuration of the scopes' owners, and a search
 * for its name among the plugins.  No memory is taken.
 */


#ifndef SLUICE_SCOPE_H_INCLUDED
#define SLUICE_SCOPE_H_INCLUDED


#include "core.h"


/* FFI */

typedef struct {
    const sluice_core_view_t  *view;
    const sluice_core_text_t  *plugins;    /* names, in the order in which */
    uint32_t                   count;      /*   they run */
    uint32_t                   route;      /* slots, or NOBODY */
    uint32_t                   service;
} sluice_scope_t;


typedef struct {
    sluice_core_found_t  found;    /* the configuration; record NULL: none, */
    uint32_t             plugin;   /*   or (see below) that of before */
    uint32_t             rank;     /* 0: only consumers have one */
    uint32_t             owners;   /* SLUICE_PLUGIN_OF_*: who else has one */
} sluice_scope_step_t;


typedef struct {
    uint32_t             count;    /* of steps */
    uint32_t             owners;   /* SLUICE_PLUGIN_OF_*: who else has some */
    sluice_core_text_t   missing;  /* a plugin that the caller has not; data
                                      NULL: there is none */
} sluice_scope_chosen_t;


/* A configuration of a plugin, whether it wins or not; not 0: stop. */
typedef int (*sluice_scope_look_pt)(void *data, uint32_t plugin,
    const sluice_core_found_t *found);


/*
 * Those of a request before its consumer is known.  steps has room for one of
 * each plugin.  0, or what look has returned.
 */
int sluice_scope_choose(const sluice_scope_t *scope,
    sluice_scope_step_t *steps, sluice_scope_chosen_t *chosen,
    sluice_scope_look_pt look, void *data);

/*
 * Puts in those of a consumer (a slot) and of his groups where they win.  Of
 * steps only plugin and rank are read.  Returns in how many they have won: the
 * found of those have a record, those of others none.
 */
uint32_t sluice_scope_consumer(const sluice_scope_t *scope, uint32_t consumer,
    uint32_t owners, sluice_scope_step_t *steps, uint32_t count);

/* FFI end */


#endif /* SLUICE_SCOPE_H_INCLUDED */
