
/*
 * The plugin basic-auth in nginx: sluice_basic_auth.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_basic_auth.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_basic_auth = {
    .name = ngx_string("basic-auth"),
    .decision = &sluice_basic_auth
};
