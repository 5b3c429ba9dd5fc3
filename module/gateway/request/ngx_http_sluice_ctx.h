
/*
 * What the gateway knows of a request: one context for the request and all of
 * its subrequests, in the request's pool.
 *
 * nginx clears the contexts of modules at an internal redirect, at the page of
 * an error and at a named location.  It keeps variables, so the context hangs
 * on one: $sluice_ctx, which has no value for whoever reads it.
 *
 * Each part has one writer, and all may read it.
 */


#ifndef NGX_HTTP_SLUICE_CTX_H_INCLUDED
#define NGX_HTTP_SLUICE_CTX_H_INCLUDED


#include "ngx_http_sluice_module.h"
#include "core.h"
#include "flags.h"


/* FFI */

/*
 * What of a request runs in Lua: a bit of gateway/kit/phases.lua, 0 for
 * nothing; which of all plugins, from 0; the slot of its configuration; and
 * the step's numbers (ngx_sluice_turn.h).  And who it comes from: the number
 * of sluice_identity_serial().
 */

typedef struct {
    double       identity;
    uint32_t     phase;
    uint32_t     plugin;
    uint32_t     slot;
    uint32_t     serial;
    uint32_t     root;
} sluice_running_t;


/* What a native plugin has for those in Lua (ngx_http_sluice_ctx_share()). */

typedef struct {
    sluice_core_text_t   name;
    sluice_core_text_t   value;            /* data NULL: nil */
} sluice_shared_t;


/* ngx_http_sluice_ctx_lua.c */

sluice_running_t *sluice_ctx_running(ngx_http_request_t *r);

int sluice_ctx_lua(ngx_http_request_t *r);
int sluice_ctx_set_lua(ngx_http_request_t *r, int place);
int sluice_ctx_shared(ngx_http_request_t *r, sluice_shared_t *shared);
void sluice_ctx_path(ngx_http_request_t *r, sluice_core_text_t *path);
int sluice_ctx_entity(ngx_http_request_t *r, int kind,
    sluice_core_entity_t *entity);

/* ngx_http_sluice_client.c */

int sluice_client_is_gone(ngx_http_request_t *r);

/* FFI end */


/* Whether the gateway has answered (answered), and at whose wish. */

#define NGX_HTTP_SLUICE_CTX_FAILED   1            /* nginx's, by a page */
#define NGX_HTTP_SLUICE_CTX_EXITED   2            /* a plugin's, or its own */


/* Whether the access log has a request; a plugin may decide it. */

#define NGX_HTTP_SLUICE_LOGGED         0
#define NGX_HTTP_SLUICE_LOGGED_ERRORS  1          /* if it ends with one */
#define NGX_HTTP_SLUICE_LOGGED_NOT     2


typedef struct ngx_http_sluice_ctx_s       ngx_http_sluice_ctx_t;
typedef struct ngx_http_sluice_compiled_s  ngx_http_sluice_compiled_t;
typedef struct ngx_http_sluice_chain_s     ngx_http_sluice_chain_t;
typedef struct ngx_http_sluice_service_s   ngx_http_sluice_service_t;
typedef struct ngx_http_sluice_named_s     ngx_http_sluice_named_t;
typedef struct ngx_http_sluice_names_s     ngx_http_sluice_names_t;
typedef struct ngx_http_sluice_changed_s   ngx_http_sluice_changed_t;
typedef struct ngx_http_sluice_buffered_s  ngx_http_sluice_buffered_t;
typedef struct ngx_http_sluice_log_edits_s  ngx_http_sluice_log_edits_t;


/* What plugins add to the log entry. */

typedef struct ngx_http_sluice_logged_s    ngx_http_sluice_logged_t;

struct ngx_http_sluice_logged_s {
    ngx_http_sluice_logged_t       *next;
    ngx_str_t                       name;
    ngx_str_t                       value;
};


/* What they have for plugins in Lua, which have not read it yet. */

typedef struct ngx_http_sluice_shared_s    ngx_http_sluice_shared_t;

struct ngx_http_sluice_shared_s {
    ngx_http_sluice_shared_t       *next;
    sluice_shared_t                 pair;
};


/* How much of the body is read (ngx_http_sluice_body_bound.c). */

typedef struct {
    off_t                           size;
    off_t                           received;
    ngx_uint_t                      status;       /* where it is longer */
    ngx_str_t                       message;
} ngx_http_sluice_bound_t;


struct ngx_http_sluice_ctx_s {

    /* of the match (ngx_http_sluice_route.c) */

    ngx_http_sluice_compiled_t     *compiled;     /* pinned until r is freed */
    ngx_http_sluice_chain_t        *chain;        /* in compiled's pool */
    ngx_http_sluice_service_t      *service;      /* the same; NULL: none */

    uint64_t                        route_revision;
    uint32_t                        route;        /* slots, or */
    uint32_t                        route_generation;
    uint32_t                        service_slot; /*   SLUICE_CORE_NOBODY */
    uint32_t                        service_generation;
    uint32_t                        route_flags;
    int32_t                         prefix;       /* of path; -1: none */

    ngx_str_t                       route_body;   /* the entities' own texts */
    ngx_str_t                       service_body; /*   if Lua needs them */
    ngx_str_t                       log_route;    /* members of log entries, */
    ngx_str_t                       log_service;  /*   if its chain logs */

    ngx_http_sluice_names_t        *names;        /* for logs; NULL: none */

    /* while others have their turn (ngx_http_sluice_turn.c) */

    ngx_event_t                    *turn;
    ngx_uint_t                      turns;        /* of this routing */

    ngx_str_t                       raw;          /* the path as it came */
    ngx_str_t                       path;         /* normalised */
    ngx_str_t                       query;        /* with its "?" */

    /* who asks (ngx_http_sluice_identity.c) */

    ngx_str_t                       consumer;     /* ids; of length 0: none */
    ngx_str_t                       credential;
    ngx_str_t                       username;     /* of the consumer */
    uint32_t                        consumer_slot;   /* NOBODY: only a */
    uint32_t                        consumer_generation;  /* plugin knows */
    uint32_t                        credential_slot;      /* the same */
    uint32_t                        credential_generation;

    ngx_str_t                       client_verify;  /* for logs; length 0: as
                                                       nginx says */

    /* where its plugins are (ngx_http_sluice_chain.c) */

    ngx_http_sluice_chain_t        *consumer_chain;  /* NULL: as chain */
    uint32_t                        step;         /* of the access phase */
    uint32_t                        answer;       /* that Lua is to give: a */
    ngx_str_t                       answer_message;  /* status, a text, */
    ngx_str_t                       answer_type;     /* of which type */

    /* whom its first try goes to (ngx_http_sluice_peer.c) */

    uint32_t                        peer;         /* of service */

    /* why tries have failed (ngx_http_sluice_tries.c) */

    ngx_array_t                    *tries;        /* of u_char; NULL: none */

    /* where Lua keeps ngx.ctx (gateway/proxy/phases.lua); 0: nowhere */

    int32_t                         lua;

    /* which step of it runs (gateway/plugin/chain.lua), and who asks */

    sluice_running_t                running;

    /* those that one of Lua has authenticated (proxy/..._chain_run.c) */

    ngx_str_t                       groups;       /* packed; NULL: none */

    /* what it changes of the request to the upstream, and how long the body
       is that the client has announced (proxy/ngx_http_sluice_framing.c) */

    ngx_http_sluice_changed_t      *changed;      /* NULL: nothing */
    off_t                           announced;

    /* a response that is held back (ngx_http_sluice_buffered.c) */

    ngx_http_sluice_buffered_t     *buffered;     /* NULL: none */

    ngx_http_sluice_bound_t        *bound;        /* NULL: none of a plugin */
    ngx_http_sluice_logged_t       *log_values;   /* the last one first */
    ngx_http_sluice_log_edits_t    *log_edits;    /* of Lua's; NULL: none */
    ngx_http_sluice_shared_t       *shared;       /* NULL: nothing */

    /* what native plugins keep, by number (ngx_http_sluice_early.c) */

    void                          **states;       /* NULL: nothing */

    unsigned                        logged:2;     /* NGX_HTTP_SLUICE_LOGGED */
    unsigned                        routed:1;     /* or no route matched */
    unsigned                        rewritten:1;  /* by native plugins */
    unsigned                        has_peer:1;
    unsigned                        in_lua:1;     /* Lua runs its plugins */
    unsigned                        said_groups:1;   /* groups is known */
    unsigned                        own_identity:1;  /* a Lua plugin's, in
                                                        ngx.ctx */
    unsigned                        own_credential:1;  /* it has given one */
    unsigned                        is_framed:1;  /* announced is known */
    unsigned                        answered:2;   /* _CTX_FAILED, */
};


typedef struct {
    ngx_uint_t  index;                        /* of $sluice_ctx */
} ngx_http_sluice_ctx_conf_t;


extern const size_t  ngx_http_sluice_ctx_at;


/* Before the configuration is read. */
ngx_int_t ngx_http_sluice_ctx_add_variable(ngx_conf_t *cf,
    ngx_http_sluice_ctx_conf_t *conf);

/* ngx_http_sluice_client.c: whether the client has asked by HEAD. */
ngx_uint_t ngx_http_sluice_client_heads(ngx_http_request_t *r);

/* NULL: it has none. */
ngx_http_sluice_ctx_t *ngx_http_sluice_ctx(ngx_http_request_t *r);

/* The one that it has, or a new one; NULL: no memory. */
ngx_http_sluice_ctx_t *ngx_http_sluice_ctx_make(ngx_http_request_t *r);

/*
 * Adds a value to the log entry, in place of that of the same static name.
 * Neither text is copied.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_ctx_log(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_text_t *name,
    const sluice_core_text_t *value);

/*
 * Has a value for kong.ctx.shared, in place of that of the same static name;
 * data NULL: nil.  Neither text is copied.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_ctx_share(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_text_t *name,
    const sluice_core_text_t *value);


#endif /* NGX_HTTP_SLUICE_CTX_H_INCLUDED */
