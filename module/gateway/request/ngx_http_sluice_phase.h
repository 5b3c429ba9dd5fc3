
/*
 * Handlers in nginx's phases.
 */


#ifndef NGX_HTTP_SLUICE_PHASE_H_INCLUDED
#define NGX_HTTP_SLUICE_PHASE_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * To be called in a module's postconfiguration.  nginx runs the handlers of a
 * phase from the last that was added to the first.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_phase_add(ngx_conf_t *cf, ngx_http_phases phase,
    ngx_http_handler_pt handler);


#endif /* NGX_HTTP_SLUICE_PHASE_H_INCLUDED */
