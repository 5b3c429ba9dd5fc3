
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


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core.h"


/* Of routes, services and plugins: those of gateway/image/flags.lua, which
   ngx_sluice_abi.c compares. */

#define NGX_HTTP_SLUICE_ROUTE_STRIP_PATH       0x01
#define NGX_HTTP_SLUICE_ROUTE_PRESERVE_HOST    0x02
#define NGX_HTTP_SLUICE_ROUTE_STREAM_REQUEST   0x04
#define NGX_HTTP_SLUICE_ROUTE_STREAM_RESPONSE  0x08
#define NGX_HTTP_SLUICE_ROUTE_HTTPS_ONLY       0x10
#define NGX_HTTP_SLUICE_ROUTE_PATH_V1          0x20
#define NGX_HTTP_SLUICE_ROUTE_REDIRECT         0x100

#define NGX_HTTP_SLUICE_SERVICE_HTTPS          0x01
#define NGX_HTTP_SLUICE_SERVICE_VERIFY         0x02
#define NGX_HTTP_SLUICE_SERVICE_DEPTH          0x100

#define NGX_HTTP_SLUICE_PLUGIN_OF_CONSUMERS    0x01
#define NGX_HTTP_SLUICE_PLUGIN_OF_GROUPS       0x02


typedef struct ngx_http_sluice_ctx_s          ngx_http_sluice_ctx_t;
typedef struct ngx_http_sluice_live_s         ngx_http_sluice_live_t;
typedef struct ngx_http_sluice_chain_s        ngx_http_sluice_chain_t;
typedef struct ngx_http_sluice_destination_s  ngx_http_sluice_destination_t;
typedef struct ngx_http_sluice_named_s        ngx_http_sluice_named_t;
typedef struct ngx_http_sluice_names_s        ngx_http_sluice_names_t;


struct ngx_http_sluice_ctx_s {

    /* of the match (ngx_http_sluice_route.c) */

    ngx_http_sluice_live_t         *live;         /* held until r is freed */
    ngx_http_sluice_chain_t        *chain;        /* in live's pool */
    ngx_http_sluice_destination_t  *destination;  /* the same; NULL: none */

    uint64_t                        route_revision;
    uint32_t                        route;        /* slots, or */
    uint32_t                        route_generation;
    uint32_t                        service;      /*   SLUICE_CORE_NOBODY */
    uint32_t                        service_generation;
    uint32_t                        route_flags;
    int32_t                         prefix;       /* of path; -1: none */

    ngx_str_t                       route_body;   /* the entities' own texts */
    ngx_str_t                       service_body; /*   if Lua needs them */

    ngx_http_sluice_names_t        *names;        /* for logs; NULL: none */

    /* while others have their turn (ngx_http_sluice_turn.c) */

    ngx_event_t                    *turn;
    ngx_uint_t                      turns;        /* of this match */

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

    /* where its plugins are (ngx_http_sluice_chain.c) */

    ngx_http_sluice_chain_t        *consumer_chain;  /* NULL: as chain */
    uint32_t                        step;         /* of the access phase */
    uint32_t                        answer;       /* that Lua is to give: a */
    ngx_str_t                       answer_message;  /* status, what to say */

    /* whom its first try goes to (ngx_http_sluice_peer.c) */

    uint32_t                        peer;         /* of destination */

    /* where Lua keeps ngx.ctx (gateway/proxy/phases.lua); 0: nowhere */

    int32_t                         lua;

    /* which of them the access log has (ngx_http_sluice_access_log.c) */

    uint32_t                        log_share;    /* of 2^31, if limited */

    unsigned                        log_limited:1;   /* by the plugin */
    unsigned                        log_errors:1;    /* has all of those */
    unsigned                        routed:1;     /* or no route matched */
    unsigned                        has_peer:1;
    unsigned                        in_lua:1;     /* Lua runs its plugins */
    unsigned                        own_identity:1;  /* a Lua plugin's, in
                                                        ngx.ctx */
};


/* NULL: it has none. */
ngx_http_sluice_ctx_t *ngx_http_sluice_ctx(ngx_http_request_t *r);

/* The one that it has, or a new one; NULL: no memory. */
ngx_http_sluice_ctx_t *ngx_http_sluice_ctx_make(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_CTX_H_INCLUDED */
