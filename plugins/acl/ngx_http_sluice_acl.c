
/*
 * The plugin acl in nginx: sluice_acl.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_acl.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_acl = {
    .name = ngx_string("acl"),
    .decision = &sluice_acl
};
