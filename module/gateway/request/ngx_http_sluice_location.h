
/*
 * The locations of the proxy server: one for each set of phases that a request
 * may need (ngx_http_sluice_location.c).
 */


#ifndef NGX_HTTP_SLUICE_LOCATION_H_INCLUDED
#define NGX_HTTP_SLUICE_LOCATION_H_INCLUDED


#include "ngx_http_sluice_module.h"


/* of late phases in Lua (gateway/proxy/late_phases.lua) */

#define NGX_HTTP_SLUICE_LEVELS  4


typedef enum {
    NGX_HTTP_SLUICE_LOCATION_NONE = 0,
    NGX_HTTP_SLUICE_LOCATION_NATIVE,     /* its access phase is in C */
    NGX_HTTP_SLUICE_LOCATION_LUA,        /* and in Lua */
    NGX_HTTP_SLUICE_LOCATION_ERROR,      /* it answers for nginx's errors */
    NGX_HTTP_SLUICE_LOCATION_RESPONSE,   /* it has a whole response in hand */
    NGX_HTTP_SLUICE_LOCATION_KINDS
} ngx_http_sluice_location_e;


typedef struct {
    ngx_http_core_loc_conf_t    *locations[NGX_HTTP_SLUICE_LOCATION_KINDS]
                                          [NGX_HTTP_SLUICE_LEVELS];
} ngx_http_sluice_location_srv_conf_t;


typedef struct {
    ngx_http_sluice_location_e   kind;
} ngx_http_sluice_location_loc_conf_t;


#define NGX_HTTP_SLUICE_LOCATION_DIRECTIVES(at)                               \
    { ngx_string("sluice_location"),                                          \
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE2,                                       \
      ngx_http_sluice_location,                                               \
      NGX_HTTP_LOC_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_location_srv_at;
extern const size_t  ngx_http_sluice_location_loc_at;


char *ngx_http_sluice_location(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Of the location that the request is in. */
ngx_http_sluice_location_e ngx_http_sluice_location_kind(
    ngx_http_request_t *r);

/*
 * Puts the request into a location, at once: what nginx has not run yet of
 * this phase and of those that come runs as it has them.  Contexts of modules
 * and r->internal stay as they are.
 */
void ngx_http_sluice_location_enter(ngx_http_request_t *r,
    ngx_http_sluice_location_e kind, ngx_uint_t level);


#endif /* NGX_HTTP_SLUICE_LOCATION_H_INCLUDED */
