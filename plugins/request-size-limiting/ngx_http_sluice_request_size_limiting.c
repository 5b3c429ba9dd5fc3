
/*
 * The plugin request-size-limiting in nginx:
 * sluice_request_size_limiting.c decides.
 */


#include "ngx_http_sluice_plugin.h"
#include "sluice_request_size_limiting.h"


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_request_size_limiting = {
    .name = ngx_string("request-size-limiting"),
    .decision = &sluice_request_size_limiting
};
