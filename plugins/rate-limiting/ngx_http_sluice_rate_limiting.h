
/*
 * The rate-limiting plugin in nginx: what its files share.
 */


#ifndef NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED
#define NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED


#include "ngx_http_sluice_plugin.h"


/* ngx_http_sluice_rate_limiting.c */

extern ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_rate_limiting;

/* ngx_http_sluice_rate_rules.c */

/* One rule more, until the pool goes.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_rate_rules_add(ngx_pool_t *pool, uint32_t slot);

/* Lines that each rule may have for itself. */
uint32_t ngx_http_sluice_rate_share(void);


#endif /* NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED */
