
/*
 * The native plugins: the only place that knows all of them.
 */


#include "ngx_http_sluice_plugin.h"


ngx_http_sluice_plugin_t  *ngx_http_sluice_plugins[] = {
    &ngx_http_sluice_key_auth_plugin,
    NULL
};
