
/*
 * The plugins that a request runs, in the order of their priority, each with
 * the configuration that its scope gives it.
 *
 * A chain is compiled at the first request that needs it and belongs to what
 * the worker has compiled of an epoch (ngx_http_sluice_compiled.h): routes
 * without plugins of their own share their service's, and services without any
 * share that of the global ones.  Which configurations are in it is said by
 * scope.h.
 * A consumer, and so his groups, is known only after authentication: then the
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
#include "scope.h"


/* FFI */

/*
 * What of a plugin runs in Lua; gateway/image/flags.lua has the same.  A
 * configuration may need less of it, and one of a native plugin the log phase:
 * its record says so (SLUICE_PLUGIN_LUA).
 */

#define NGX_HTTP_SLUICE_PHASE_REWRITE         0x01
#define NGX_HTTP_SLUICE_PHASE_ACCESS          0x02
#define NGX_HTTP_SLUICE_PHASE_HEADER_FILTER   0x04
#define NGX_HTTP_SLUICE_PHASE_BODY_FILTER     0x08
#define NGX_HTTP_SLUICE_PHASE_LOG             0x10

#define NGX_HTTP_SLUICE_PHASE_RESPONSE        0x800
#define NGX_HTTP_SLUICE_PHASE_CERTIFICATE     0x1000

/* It has an access phase, which is in C. */

#define NGX_HTTP_SLUICE_PHASE_NATIVE          0x20


/*
 * What sluice_chain_access() returns beside NGX_OK (the chain is done) and
 * NGX_ERROR (no memory).  But for one of them it is to be called again: a step
 * of Lua is to be run; a configuration is to be looked at; the body is to be
 * read; an error is to be answered, and no more; sluice_chain_groups() is to
 * be told groups.
 */

#define NGX_HTTP_SLUICE_CHAIN_STEP            -100
#define NGX_HTTP_SLUICE_CHAIN_CONFIGURE       -101
#define NGX_HTTP_SLUICE_CHAIN_BODY            -102
#define NGX_HTTP_SLUICE_CHAIN_ANSWER          -103    /* _ANSWER_LATER */
#define NGX_HTTP_SLUICE_CHAIN_GROUPS          -104


/* A plugin of the registry, and a configuration of it. */

typedef struct {
    uint64_t     revision;
    uint32_t     plugin;        /* as it was declared, from 0 */
    uint32_t     slot;
    uint32_t     generation;
    uint32_t     zero;
} sluice_step_t;


/* ngx_http_sluice_chain_plugins.c */

int sluice_chain_declare(const char *name, size_t length, uint32_t phases);

/* ngx_http_sluice_chain_run.c */

int sluice_chain_access(ngx_http_request_t *r, sluice_step_t *next);
int sluice_chain_failure(ngx_http_request_t *r, const sluice_step_t *step,
    sluice_core_text_t *failure);
int sluice_chain_configured(ngx_http_request_t *r, const sluice_step_t *step,
    const char *failure, size_t length);
int sluice_chain_groups(ngx_http_request_t *r, const char *packed,
    size_t length);
int sluice_chain_answer(ngx_http_request_t *r, sluice_core_text_t *message,
    sluice_core_text_t *type);

/* ngx_http_sluice_chain_consumer.c */

int sluice_chain_steps(ngx_http_request_t *r, uint32_t phase,
    sluice_step_t *steps, uint32_t max);

/* FFI end */


/*
 * More that it has in C: ngx_http_sluice_early.c, ngx_http_sluice_targets.c.
 * And all that is Lua's.
 */

#define NGX_HTTP_SLUICE_PHASE_NATIVE_REWRITE      0x40
#define NGX_HTTP_SLUICE_PHASE_NATIVE_CERTIFICATE  0x80
#define NGX_HTTP_SLUICE_PHASE_NATIVE_HEAD         0x100
#define NGX_HTTP_SLUICE_PHASE_NATIVE_FINISH       0x200
#define NGX_HTTP_SLUICE_PHASE_NATIVE_LOG          0x400

#define NGX_HTTP_SLUICE_PHASES_THAT_LOG                                       \
    (NGX_HTTP_SLUICE_PHASE_LOG | NGX_HTTP_SLUICE_PHASE_NATIVE_LOG)

#define NGX_HTTP_SLUICE_PHASES_IN_LUA                                         \
    (NGX_HTTP_SLUICE_PHASE_REWRITE | NGX_HTTP_SLUICE_PHASE_ACCESS             \
     | NGX_HTTP_SLUICE_PHASE_HEADER_FILTER                                    \
     | NGX_HTTP_SLUICE_PHASE_BODY_FILTER | NGX_HTTP_SLUICE_PHASE_LOG          \
     | NGX_HTTP_SLUICE_PHASE_RESPONSE)


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
    ngx_uint_t   phases;        /* of its plugin's, those that it needs */
    ngx_str_t    failure;       /* why it must not run; of length 0: it may */

    uint32_t     pattern;       /* which of its patterns is to be compiled */

    unsigned     ready:1;       /* it was looked at by its language */
    unsigned     prepared:1;    /* its patterns were compiled */
} ngx_http_sluice_conf_t;


typedef struct {
    ngx_http_sluice_declared_t  *plugin;
    ngx_http_sluice_conf_t      *conf;   /* NULL: only consumers have one */
    ngx_uint_t                   rank;   /* of conf, among scopes */
    ngx_uint_t                   owners; /* SLUICE_PLUGIN_OF_*: who else has
                                            one */
} ngx_http_sluice_step_t;


struct ngx_http_sluice_chain_s {
    ngx_http_sluice_step_t  *steps;
    ngx_uint_t               nelts;
    ngx_array_t              looks;      /* of steps: what Lua looks at, the
                                            configurations that lose, too */
    uint64_t                 revision;   /* of the route, if it is a route's */
    uint32_t                 route;      /* whose it is, or NOBODY */
    uint32_t                 service;
    ngx_uint_t               phases;     /* that some step may need */
    ngx_uint_t               owners;     /* SLUICE_PLUGIN_OF_*: who else */
    ngx_str_t                failure;    /* of length 0: it can be run */

    unsigned                 ready:1;
    unsigned                 prepared:1; /* the patterns of its steps are
                                            compiled */
};


/*
 * The chain of a route that has plugins of its own; NOBODY: of all others of
 * the service; in compiled.  has_plugins: whether some are the service's own.
 * The view has to be of its epoch: call it where the match was made.  NULL: no
 * memory.
 */
ngx_http_sluice_chain_t *ngx_http_sluice_chain(
    ngx_http_sluice_compiled_t *compiled, uint32_t route, uint64_t revision,
    uint32_t service, ngx_uint_t has_plugins);

/* The same of requests without a route, and where only global plugins are. */
ngx_http_sluice_chain_t *ngx_http_sluice_chain_global(
    ngx_http_sluice_compiled_t *compiled);

/* Of late phases in Lua, as gateway/proxy/late_phases.lua has it: 0 to 3. */
ngx_uint_t ngx_http_sluice_chain_level(ngx_http_sluice_chain_t *chain);

/* Whether the access phase has to be one with Lua. */
ngx_uint_t ngx_http_sluice_chain_needs_lua(ngx_http_sluice_chain_t *chain);

/* ngx_http_sluice_chain_prepare.c */

/*
 * Compiles what a chain's plugins run, as far as this turn has time, by the
 * view that it was made of.  NGX_AGAIN: in another turn.
 */
ngx_int_t ngx_http_sluice_chain_prepare(ngx_http_sluice_chain_t *chain,
    const sluice_core_view_t *view);

/* ngx_http_sluice_chain_plugins.c */

/* All that were declared, in the order in which they run. */
ngx_http_sluice_declared_t *ngx_http_sluice_chain_plugins(ngx_uint_t *count);

/* For a chain's route and service: all plugins, and what is published. */
void ngx_http_sluice_chain_scope(sluice_scope_t *scope,
    ngx_http_sluice_chain_t *chain);

/* A configuration, in compiled; NULL: no memory. */
ngx_http_sluice_conf_t *ngx_http_sluice_chain_conf(
    ngx_http_sluice_compiled_t *compiled, ngx_http_sluice_declared_t *plugin,
    const sluice_core_found_t *found);

/* The same for one request, in its pool. */
ngx_http_sluice_conf_t *ngx_http_sluice_chain_compile_conf(ngx_pool_t *pool,
    ngx_http_sluice_declared_t *plugin, const sluice_core_found_t *found);

/* ngx_http_sluice_late.c: of native plugins with state in the request */

ngx_int_t ngx_http_sluice_late_log_handler(ngx_http_request_t *r);

/* ngx_http_sluice_targets.c: of native plugins that log */

/* Sends the request's entry to where its chain wants it. */
void ngx_http_sluice_targets_log(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* What of a configuration's data is needed for that; NULL: no memory. */
void *ngx_http_sluice_targets_copy(ngx_pool_t *pool,
    const ngx_http_sluice_plugin_t *plugin, const void *conf);

/* ngx_http_sluice_targets_write.c */

void ngx_http_sluice_targets_write(const ngx_http_sluice_plugin_t *plugin,
    const ngx_http_sluice_conf_t *conf, const sluice_core_text_t *text);

/* What could not be written yet. */
void ngx_http_sluice_targets_exit_process(void);

/*
 * This worker begins to use a configuration: who delivers in Lua has to know
 * it, since it may be gone when its requests end.
 */
void ngx_http_sluice_targets_announce(const ngx_http_sluice_plugin_t *plugin,
    const ngx_http_sluice_conf_t *conf);

/* ngx_http_sluice_early.c */

/*
 * In a handshake, when its certificate was chosen.  NGX_OK; NGX_DONE: some
 * plugin has the phase in Lua, which is to run; NGX_ERROR ends the handshake.
 */
ngx_int_t ngx_http_sluice_early_certificate(ngx_connection_t *c,
    ngx_str_t *server_name);

/*
 * Runs what native plugins of the request's chain have before it is routed.
 * NGX_OK; else refusal is filled.
 */
ngx_int_t ngx_http_sluice_early_rewrite(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);

/* ngx_http_sluice_chain_consumer.c */

/* The chain, with what its consumer has configured; NULL: no memory. */
ngx_http_sluice_chain_t *ngx_http_sluice_chain_now(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/* ngx_http_sluice_chain_detach.c */

/*
 * Detaches from its epoch's pool, after the access phase: late phases run by a
 * copy in the request's own.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_chain_detach(ngx_http_request_t *r,
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
