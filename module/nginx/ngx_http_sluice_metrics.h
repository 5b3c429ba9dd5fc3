
/*
 * What a request's match tells its count.
 */


#ifndef NGX_HTTP_SLUICE_METRICS_H_INCLUDED
#define NGX_HTTP_SLUICE_METRICS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_sluice_images.h"


/* ngx_http_sluice_metrics.c */

/* The last call counts; NULL: no route. */

void ngx_http_sluice_metrics_note(ngx_http_request_t *r,
    const sluice_images_match_t *match);


#endif /* NGX_HTTP_SLUICE_METRICS_H_INCLUDED */
