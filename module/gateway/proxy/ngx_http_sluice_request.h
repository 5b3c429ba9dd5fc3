
/*
 * What the checks of a request say to others (ngx_http_sluice_request.c).
 */


#ifndef NGX_HTTP_SLUICE_REQUEST_H_INCLUDED
#define NGX_HTTP_SLUICE_REQUEST_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Whether climbs that only an upstream would see pass (climb.h). */
ngx_uint_t ngx_http_sluice_request_passes_climbs(ngx_http_request_t *r);


#endif /* NGX_HTTP_SLUICE_REQUEST_H_INCLUDED */
