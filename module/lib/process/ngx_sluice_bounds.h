
/*
 * Bounds of a directive's number, size or time.
 */


#ifndef NGX_SLUICE_BOUNDS_H_INCLUDED
#define NGX_SLUICE_BOUNDS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/* A directive's "post"; nginx keeps all these kinds in words. */

typedef struct {
    ngx_conf_post_handler_pt  post_handler;   /* ngx_sluice_bounds_check */
    ngx_uint_t                min;
    ngx_uint_t                max;
    const char               *message;        /* may have a %ui for max */
} ngx_sluice_bounds_t;

char *ngx_sluice_bounds_check(ngx_conf_t *cf, void *post, void *data);


#endif /* NGX_SLUICE_BOUNDS_H_INCLUDED */
