
/*
 * The access-log plugin: which requests of a route, a service or all of them
 * the access log has.  It runs before all other plugins, so that those which
 * they refuse are counted among the rest.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_access_log.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_access_log = {
    .name = ngx_string("access-log"),
    .decision = &sluice_access_log
};
