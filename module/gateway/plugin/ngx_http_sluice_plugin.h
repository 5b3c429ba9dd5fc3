
/*
 * A native plugin: what C has of one.  docs/plugin-development.md has the
 * whole shape.
 *
 * Its schema and all that looks at a configuration before it is live are Lua
 * (plugins/<name>/init.lua with native = true).  There pack(config) writes, by
 * lib/sluice/packed.lua, the bytes that stand in the image; here compile()
 * reads them by ngx_http_sluice_packed.h.  Both are made by one author: the
 * plugin's version says which bytes they are.
 */


#ifndef NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED
#define NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


/* A configuration that is in force somewhere, as the image has it. */

typedef struct {
    ngx_str_t    id;            /* 36 bytes, with dashes */
    ngx_str_t    packed;        /* what the plugin's pack() has written */
    uint64_t     revision;
    uint32_t     slot;
    uint32_t     generation;
} ngx_http_sluice_binding_t;


typedef struct {
    ngx_str_t    name;          /* "key-auth" */

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
} ngx_http_sluice_plugin_t;


/* ngx_http_sluice_plugins.c: all there are, behind them NULL */

extern ngx_http_sluice_plugin_t  *ngx_http_sluice_plugins[];

/* ngx_http_sluice_access_log.c */

extern ngx_http_sluice_plugin_t  ngx_http_sluice_access_log_plugin;

/* ngx_http_sluice_key_auth.c */

extern ngx_http_sluice_plugin_t  ngx_http_sluice_key_auth_plugin;

/* ngx_http_sluice_mtls_auth.c */

extern ngx_http_sluice_plugin_t  ngx_http_sluice_mtls_auth_plugin;


#endif /* NGX_HTTP_SLUICE_PLUGIN_H_INCLUDED */
