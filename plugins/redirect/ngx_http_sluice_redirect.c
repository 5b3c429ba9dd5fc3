
/*
 * The plugin redirect in nginx: sluice_redirect.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_redirect.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_redirect = {
    .name = ngx_string("redirect"),
    .decision = &sluice_redirect
};
