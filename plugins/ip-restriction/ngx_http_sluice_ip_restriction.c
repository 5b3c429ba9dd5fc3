
/*
 * The plugin ip-restriction in nginx: sluice_ip_restriction.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_ip_restriction.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_ip_restriction = {
    .name = ngx_string("ip-restriction"),
    .decision = &sluice_ip_restriction
};
