
/*
 * A native plugin: what C has of one.  docs/plugin-development.md has the
 * whole shape.
 *
 * Its schema and all that looks at a configuration before it is live are Lua.
 * plugins/<name>/handler.lua has native = true: there pack(config) writes, by
 * lib/sluice/ffi/packed.lua, the bytes that stand in the image; here compile()
 * reads them by module/core/plugin/packed.h.  Both are made by one author: the
 * plugin's version says which bytes they are.
 */


#ifndef NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED
#define NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_refusal.h"
#include "decision.h"


/* Entries of a log plugin: ngx_sluice_lines.h. */

typedef struct ngx_sluice_lines_s  ngx_sluice_lines_t;


/* A configuration that is in force somewhere, as the image has it. */

typedef struct {
    ngx_str_t    id;            /* 36 bytes, with dashes */
    ngx_str_t    packed;        /* what the plugin's pack() has written */
    uint64_t     revision;
    uint32_t     slot;
    uint32_t     generation;
} ngx_http_sluice_binding_t;


typedef struct {
    ngx_str_t    name;          /* the folder's */

    /*
     * Its part in plain C: that does what compile, access and head have to,
     * where these are NULL.  Without one, the first two are there.
     */
    const sluice_decision_plugin_t  *decision;

    /*
     * Makes what requests use of a configuration, in a pool that lives as
     * long as they do.  The binding and its texts are gone afterwards.  Called
     * once a configuration, at its first request in this worker.  NULL: it
     * cannot.  Where words say why, requests are answered 500 until something
     * changes.  Without words there is no memory: this request is answered
     * 500, the next one calls again.
     */
    void      *(*compile)(ngx_pool_t *pool,
                          const ngx_http_sluice_binding_t *binding,
                          ngx_str_t *words);

    /*
     * NGX_OK: the next plugin runs.  NGX_AGAIN: it wants the body; it is
     * called again when that was read (r->request_body), and may not ask
     * twice.  Else what ngx_http_sluice_answer() has returned.  Texts of conf
     * that go into headers are copied: a response may outlive it.
     */
    ngx_int_t  (*access)(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
                         void *conf);

    /*
     * All others may be NULL; that costs requests nothing.  Of a worker that
     * begins; NGX_ERROR: it cannot serve.
     */
    ngx_int_t  (*init_worker)(ngx_cycle_t *cycle);

    /*
     * In a handshake that resumes no session, for a configuration that is
     * bound to nothing; the name is what the client asked for, or empty.
     * NGX_ERROR ends it.  A client with a ticket passes it: it is no check of
     * clients.
     */
    ngx_int_t  (*certificate)(ngx_connection_t *c, ngx_str_t *server_name,
                              void *conf);

    /*
     * Before the request is routed, once, for a configuration that is bound to
     * nothing; before any of Lua.  NGX_OK, or what ngx_http_sluice_refusal()
     * has returned.
     */
    ngx_int_t  (*rewrite)(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
                          void *conf, ngx_http_sluice_refusal_t *refusal);

    /*
     * Before the head of a response is sent, whoever has made it, by the
     * configuration of the request, which may never have come to access().
     * NGX_OK; NGX_ERROR ends the connection.
     */
    ngx_int_t  (*head)(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
                       void *conf);

    /*
     * Of requests in which the plugin has state, whatever they came to; conf
     * may be gone.  NGX_OK; NGX_ERROR ends the connection.  body_filter is
     * called for each piece, in memory, and may put another chain into in;
     * where that changes the length, header_filter has cleared it.
     */
    ngx_int_t  (*header_filter)(ngx_http_request_t *r,
                                ngx_http_sluice_ctx_t *ctx, void *state);
    ngx_int_t  (*body_filter)(ngx_http_request_t *r,
                              ngx_http_sluice_ctx_t *ctx, void *state,
                              ngx_chain_t **in);
    void       (*log)(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
                      void *state);

    /*
     * In the log phase, of all requests that have a configuration of it,
     * whatever they came to: also of those that another plugin has answered
     * before this one's turn.  Of conf its first finish_size bytes are there,
     * which have no pointers; the names of the route and the service are in
     * ctx->names.
     */
    void       (*finish)(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
                         void *conf);
    size_t       finish_size;

    /*
     * Of a plugin that writes an entry about each request that it runs for,
     * whatever came of it.  The gateway makes one entry of a request, in
     * Kong's layout, and puts it into the spool with each target.
     */
    ngx_uint_t   logs;

    /*
     * What it does with entries of one target that come out of the spool,
     * which it frees: in a thread of the control worker, which must not wait
     * here.  conf begins with an ngx_str_t, the target: up to 1,500 bytes that
     * say where entries go.  NULL: its handler.lua has deliver(), and the
     * target is the configuration.
     */
    void       (*deliver)(ngx_sluice_lines_t *lines);

    /* Whether it is done with all; a worker that ends waits a while. */
    ngx_uint_t (*settled)(void);

    ngx_uint_t   number;        /* the gateway's: its place in the order */
} ngx_http_sluice_plugin_t;


/*
 * What a plugin keeps of a request, in the request's pool; NULL: nothing yet.
 * It stays if the request begins again.  ngx_http_sluice_early.c
 */
void *ngx_http_sluice_plugin_state(ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_plugin_t *plugin);

/* NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_plugin_set_state(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_plugin_t *plugin,
    void *state);


/*
 * All there are, behind them NULL.  The build makes this table: of each folder
 * of plugins that has C, the ngx_http_sluice_plugin_<name>, "-" being "_".
 */

extern ngx_http_sluice_plugin_t  *ngx_http_sluice_plugins[];


#endif /* NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED */
