
/*
 * The native plugins: the only place that knows all of them.
 */


#include "ngx_http_sluice_plugin.h"
#include "ngx_http_sluice_rate_limiting.h"


ngx_http_sluice_plugin_t  *ngx_http_sluice_plugins[] = {
    &ngx_http_sluice_access_log_plugin,
    &ngx_http_sluice_key_auth_plugin,
    &ngx_http_sluice_mtls_auth_plugin,
    &ngx_http_sluice_rate_limiting,
    NULL
};
