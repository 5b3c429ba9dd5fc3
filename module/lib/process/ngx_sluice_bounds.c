
/*
 * Bounds of a directive's value (ngx_sluice_bounds.h).
 */


#include "ngx_sluice_bounds.h"


char *
ngx_sluice_bounds_check(ngx_conf_t *cf, void *post, void *data)
{
    ngx_uint_t           *value = data;
    ngx_sluice_bounds_t  *bounds = post;

    if (*value < bounds->min || *value > bounds->max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, bounds->message, bounds->max);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
