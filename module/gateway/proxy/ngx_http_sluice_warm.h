
/*
 * Patterns of routes and plugins are compiled before somebody asks for them
 * (ngx_http_sluice_warm.c).
 */


#ifndef NGX_HTTP_SLUICE_WARM_H_INCLUDED
#define NGX_HTTP_SLUICE_WARM_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/* In a worker that serves requests. */
void ngx_http_sluice_warm_init_process(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_SLUICE_WARM_H_INCLUDED */
