
/*
 * The plugin key-auth in nginx: sluice_key_auth.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_key_auth.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_key_auth = {
    .name = ngx_string("key-auth"),
    .decision = &sluice_key_auth
};
