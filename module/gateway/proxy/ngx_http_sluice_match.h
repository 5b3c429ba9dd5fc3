
/*
 * From a request of nginx to a route of the image (ngx_http_sluice_match.c).
 */


#ifndef NGX_HTTP_SLUICE_MATCH_H_INCLUDED
#define NGX_HTTP_SLUICE_MATCH_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_sluice_images.h"


/* FFI */

int sluice_match_request(ngx_http_request_t *r, const sluice_core_view_t *view,
    const u_char *path, size_t length, sluice_images_match_t *match);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_MATCH_H_INCLUDED */
