
/*
 * The plugins that a request runs, in the order of their priority, each with
 * the configuration that its scope gives it.
 *
 * A chain is compiled at the first request that needs it and belongs to what
 * the worker has compiled of an epoch (ngx_http_sluice_live.h): routes without
 * plugins of their own share their service's.  Of the configurations of one
 * plugin the most specific wins, as in Kong: consumer+route+service,
 * consumer+route, consumer+service, route+service, consumer, route, service,
 * global.  A consumer is known only after authentication: then the steps that
 * are left are chosen anew, once a request.
 */


#ifndef NGX_HTTP_SLUICE_CHAIN_H_INCLUDED
#define NGX_HTTP_SLUICE_CHAIN_H_INCLUDED


#include "core.h"
#include "ngx_http_sluice_plugin.h"


/* What of a plugin runs in Lua: sluice_plugins_declare() has one mask each. */

#define NGX_HTTP_SLUICE_PHASE_REWRITE         0x01
#define NGX_HTTP_SLUICE_PHASE_ACCESS          0x02
#define NGX_HTTP_SLUICE_PHASE_HEADER_FILTER   0x04
#define NGX_HTTP_SLUICE_PHASE_BODY_FILTER     0x08
#define NGX_HTTP_SLUICE_PHASE_LOG             0x10


/* What ngx_http_sluice_chain_access() returns where the next step is Lua's. */

#define NGX_HTTP_SLUICE_CHAIN_LUA             -100


typedef struct ngx_http_sluice_step_s  ngx_http_sluice_step_t;


typedef struct {
    ngx_http_sluice_step_t  *steps;
    ngx_uint_t               nelts;
    ngx_uint_t               phases;       /* that some step has, in Lua */
    ngx_uint_t               level;        /* of late phases: 0 to 3 */
    ngx_str_t                failure;      /* why it must not run; len 0 */
    unsigned                 by_consumer:1; /* consumers may have their own */
} ngx_http_sluice_chain_t;


#endif /* NGX_HTTP_SLUICE_CHAIN_H_INCLUDED */
