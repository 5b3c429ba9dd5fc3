
/*
 * The plugins that a request runs, in the order of their priority, each with
 * the configuration that its scope gives it.
 *
 * A chain is compiled at the first request that needs it and belongs to what
 * the worker has compiled of an epoch (ngx_http_sluice_live.h): routes without
 * plugins of their own share their service's, and services without any share
 * that of the global ones.  Of the configurations of one
 * plugin the most specific wins, as in Kong: consumer+route+service,
 * group+route+service, consumer+route, consumer+service, group+route,
 * group+service, route+service, consumer, group, route, service, global.  Of
 * several groups that of the first name wins, in the order of bytes.  A
 * consumer, and so his groups, is known only after authentication: then the
 * chain is copied, with their configurations, once a request.
 *
 * A plugin may run because another one has let the request pass, and most of
 * them refuse something: so what cannot be run as it is configured (a plugin
 * that is not loaded, a configuration that it cannot do with) makes its chain
 * fail, and its requests are answered 500.
 *
 * What a Lua plugin makes of a configuration only Lua knows.  So a new chain
 * with one is not ready: its first request has Lua in its access phase, which
 * looks at all of them before the first step.
 */


#ifndef NGX_HTTP_SLUICE_CHAIN_H_INCLUDED
#define NGX_HTTP_SLUICE_CHAIN_H_INCLUDED


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_plugin.h"


/* What of a plugin runs in Lua; gateway/plugin/chain.lua has the same. */

#define NGX_HTTP_SLUICE_PHASE_REWRITE         0x01
#define NGX_HTTP_SLUICE_PHASE_ACCESS          0x02
#define NGX_HTTP_SLUICE_PHASE_HEADER_FILTER   0x04
#define NGX_HTTP_SLUICE_PHASE_BODY_FILTER     0x08
#define NGX_HTTP_SLUICE_PHASE_LOG             0x10

/* It has an access phase, which is in C. */

#define NGX_HTTP_SLUICE_PHASE_NATIVE          0x20


/*
 * What sluice_chain_access() returns beside NGX_OK (the chain is done) and
 * NGX_ERROR (no memory).  After the first three it is to be called again: a
 * step of Lua is to be run; a configuration is to be looked at; the body is to
 * be read.  After the last an error is to be answered.
 */

#define NGX_HTTP_SLUICE_CHAIN_STEP            -100
#define NGX_HTTP_SLUICE_CHAIN_CONFIGURE       -101
#define NGX_HTTP_SLUICE_CHAIN_BODY            -102
#define NGX_HTTP_SLUICE_CHAIN_ANSWER          NGX_HTTP_SLUICE_ANSWER_LATER


/* A plugin of the registry, and a configuration of it. */

typedef struct {
    uint64_t     revision;
    uint32_t     plugin;        /* as it was declared, from 0 */
    uint32_t     slot;
    uint32_t     generation;
    uint32_t     zero;
} sluice_step_t;


typedef struct {
    ngx_str_t                   name;
    ngx_http_sluice_plugin_t   *native;
    ngx_uint_t                  phases;
    uint32_t                    number;
} ngx_http_sluice_declared_t;


/* A configuration, compiled: one an epoch, whatever chains it is in. */

typedef struct {
    uint64_t     revision;
    uint32_t     slot;
    uint32_t     generation;
    void        *data;          /* a native plugin's */
    ngx_str_t    failure;       /* why it must not run; of length 0: it may */

    unsigned     ready:1;       /* it was looked at by its language */
} ngx_http_sluice_conf_t;


typedef struct {
    ngx_http_sluice_declared_t  *plugin;
    ngx_http_sluice_conf_t      *conf;   /* NULL: only consumers have one */
    ngx_uint_t                   rank;   /* of conf, among scopes */
} ngx_http_sluice_step_t;


struct ngx_http_sluice_chain_s {
    ngx_http_sluice_step_t  *steps;
    ngx_uint_t               nelts;
    ngx_array_t              looks;      /* of steps: what Lua looks at, the
                                            configurations that lose, too */
    uint64_t                 revision;   /* of the route, if it is a route's */
    uint32_t                 route;      /* whose it is, or NOBODY */
    uint32_t                 service;
    ngx_uint_t               phases;     /* that some plugin has */
    ngx_uint_t               owners;     /* PLUGIN_OF_: who else has some */
    ngx_str_t                failure;    /* of length 0: it can be run */

    unsigned                 ready:1;
};


/*
 * The chain of a route that has plugins of its own; NOBODY: of all others of
 * the service, or of a request that has neither; in live.  has_plugins:
 * whether some are the service's own.  The view has to be of live's epoch:
 * call it where the match was made.  NULL: no memory.
 */
ngx_http_sluice_chain_t *ngx_http_sluice_chain(ngx_http_sluice_live_t *live,
    uint32_t route, uint64_t revision, uint32_t service,
    ngx_uint_t has_plugins);

/* Of late phases in Lua, as gateway/proxy/late_phases.lua has it: 0 to 3. */
ngx_uint_t ngx_http_sluice_chain_level(ngx_http_sluice_chain_t *chain);

/* Whether the access phase has to be one with Lua. */
ngx_uint_t ngx_http_sluice_chain_needs_lua(ngx_http_sluice_chain_t *chain);

/* ngx_http_sluice_chain_plugins.c */

/* All that were declared, in the order in which they run. */
ngx_http_sluice_declared_t *ngx_http_sluice_chain_plugins(ngx_uint_t *count);

/* That of a plugin's entity; NULL: it is not loaded. */
ngx_http_sluice_declared_t *ngx_http_sluice_chain_plugin(
    sluice_core_found_t *found);

/*
 * How specific a plugin's entity is, from 1 (global) on; 0: it is of another
 * route or service.  Of groups whose consumer has one the rank is the same.
 */
ngx_uint_t ngx_http_sluice_chain_rank(sluice_core_found_t *found,
    ngx_http_sluice_chain_t *chain);

/* A configuration, in live; NULL: no memory. */
ngx_http_sluice_conf_t *ngx_http_sluice_chain_conf(
    ngx_http_sluice_live_t *live, ngx_http_sluice_declared_t *plugin,
    sluice_core_found_t *found);

/* The same for one request, in its pool. */
ngx_http_sluice_conf_t *ngx_http_sluice_chain_compile_conf(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, sluice_core_found_t *found);

/* ngx_http_sluice_chain_consumer.c */

/* The chain, with what its consumer has configured; NULL: no memory. */
ngx_http_sluice_chain_t *ngx_http_sluice_chain_now(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* ngx_http_sluice_chain_leave.c */

/*
 * Leaves live's pool, after the access phase: the late phases run by a copy in
 * the request's own.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_chain_leave(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* ngx_http_sluice_chain_run.c */

/*
 * Runs the native steps that are left, in the access phase.  NGX_OK: all have
 * let the request pass; else what the access handler is to return: the request
 * was answered, or waits for its body, after which nginx calls the handler
 * again.
 */
ngx_int_t ngx_http_sluice_chain_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);


#endif /* NGX_HTTP_SLUICE_CHAIN_H_INCLUDED */
