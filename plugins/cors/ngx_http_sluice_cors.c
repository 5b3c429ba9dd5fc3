
/*
 * The plugin cors in nginx: sluice_cors.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_cors.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_cors = {
    .name = ngx_string("cors"),
    .decision = &sluice_cors
};
